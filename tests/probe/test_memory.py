import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse_probe.collectors.memory import Memory, parse_meminfo
from gpulse_probe.system import System
from tests.conform import conforms
from tests.recorded import MACHINES, expected, machine
from tests.testdata import capture


@pytest.mark.parametrize("name", MACHINES)
def test_recorded_machines(name):
    collected = Memory(machine(name)).collect(0.0, pytest.fail)
    assert collected == expected(name, "memory")
    assert conforms("Host", collected) == []


def test_this_machine():
    collected = Memory(System()).collect(0.0, pytest.fail)
    assert collected["memory_total_bytes"] == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < collected["memory_used_bytes"] < collected["memory_total_bytes"]
    assert collected["swap_used_bytes"] <= collected["swap_total_bytes"]
    assert conforms("Host", collected) == []


def test_no_meminfo_is_a_failure(tmp_path):
    with pytest.raises(OSError, match="meminfo"):
        Memory(System(str(tmp_path))).collect(0.0, pytest.fail)


def test_capture_of_another_machine():
    lines = dict(line.split(":") for line in capture("kellyjonbrazil+jc/linux-proc_meminfo").decode().splitlines())
    size = {key: int(value.split()[0]) * 1024 for key, value in lines.items()}
    assert parse_meminfo(capture("kellyjonbrazil+jc/linux-proc_meminfo")) == {
        "memory_total_bytes": size["MemTotal"],
        "memory_available_bytes": size["MemAvailable"],
        "memory_used_bytes": size["MemTotal"] - size["MemAvailable"],
        "memory_cached_bytes": size["Cached"] + size["Buffers"] + size["SReclaimable"],
        "swap_total_bytes": size["SwapTotal"],
        "swap_used_bytes": size["SwapTotal"] - size["SwapFree"],
    }


def test_an_unreadable_field_costs_itself_only():
    assert parse_meminfo(b"MemTotal: x kB\nMemAvailable: 2 kB\nSwapTotal: 3 kB\nSwapFree:\nCached: -1 kB") == {
        "memory_available_bytes": 2048,
        "swap_total_bytes": 3072,
    }


def test_a_key_is_matched_as_a_whole():
    assert parse_meminfo(b"NoMemTotal: 1 kB\nSwapCached: 5 kB\nMemTotalX: 3 kB\n") == {}


@given(st.binary())
def test_any_bytes(data):
    assert conforms("Host", parse_meminfo(data)) == []


@given(
    st.lists(st.tuples(st.sampled_from([b"MemTotal", b"MemFree", b"Cached", b"SwapTotal", b"SwapFree"]), st.binary()))
)
def test_any_values(lines):
    data = b"\n".join(key + b":" + value for key, value in lines)
    assert conforms("Host", parse_meminfo(data)) == []
