import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse_probe.collectors.cpu import Cpu, parse_cpu_list, parse_cpuinfo, parse_loadavg, parse_stat
from gpulse_probe.system import System
from tests.conform import conforms
from tests.recorded import MACHINES, expected, machine


@pytest.mark.parametrize("name", MACHINES)
def test_recorded_machines(name):
    collected = Cpu(machine(name)).collect(0.0, pytest.fail)
    assert collected == expected(name, "cpu")
    assert conforms("Host", collected) == []


def test_this_machine():
    collector = Cpu(System())
    first, second = collector.collect(0.0, pytest.fail), collector.collect(1.0, pytest.fail)
    assert first["cpu_threads"] == os.cpu_count()
    assert 1 <= first["cpu_sockets"] <= first["cpu_cores"] <= first["cpu_threads"]
    assert 0 < first["cpu_user_seconds_total"] <= second["cpu_user_seconds_total"]
    assert first["load_1m"] == pytest.approx(os.getloadavg()[0], abs=2)
    assert conforms("Host", first) == []


def test_an_empty_machine_has_no_fields(tmp_path):
    assert Cpu(System(str(tmp_path))).collect(0.0, pytest.fail) == {}


def test_offline_threads_do_not_count(tmp_path):
    cpus = tmp_path / "sys/devices/system/cpu"
    for cpu, siblings in ((0, "0,2"), (1, "1"), (2, "0,2")):
        (cpus / f"cpu{cpu}/topology").mkdir(parents=True)
        (cpus / f"cpu{cpu}/topology/core_cpus_list").write_text(siblings + "\n")
        (cpus / f"cpu{cpu}/topology/package_cpus_list").write_text("0-2\n")
    (cpus / "online").write_text("0-2\n")
    collected = Cpu(System(str(tmp_path))).collect(0.0, pytest.fail)
    assert collected == {"cpu_threads": 3, "cpu_cores": 2, "cpu_sockets": 1}


def test_a_board_names_the_processor_where_nothing_else_does(tmp_path):
    (tmp_path / "proc/device-tree").mkdir(parents=True)
    (tmp_path / "proc/device-tree/model").write_bytes(b"NVIDIA Jetson AGX Orin\0")
    (tmp_path / "proc/cpuinfo").write_text("processor\t: 0\nCPU implementer\t: 0xee\nCPU part\t: 0x001\n")
    collected = Cpu(System(str(tmp_path))).collect(0.0, pytest.fail)
    assert collected == {"cpu_model": "NVIDIA Jetson AGX Orin", "cpu_threads": 1}


def arm(*cores):
    return b"".join(
        b"processor : %d\nCPU implementer : %s\nCPU part : %s\n\n" % (place, *core) for place, core in enumerate(cores)
    )


@pytest.mark.parametrize(
    ("data", "facts"),
    [
        (
            b"processor\t: 0\ncpu\t\t: POWER9, altivec supported\nclock\t\t: 3800.000000MHz\n",
            {"cpu_model": "POWER9, altivec supported", "cpu_threads": 1},
        ),
        (arm((b"0xc0", b"0xac3")), {"cpu_model": "Ampere-1", "cpu_threads": 1}),
        (
            arm((b"0x41", b"0xd87"), (b"0x41", b"0xd85"), (b"0x41", b"0xd87")),
            {"cpu_model": "Cortex-A725 + Cortex-X925", "cpu_threads": 3},
        ),
        (
            b"model name : ARMv7 Processor rev 1 (v7l)\n" + arm((b"0x41", b"0xd08")),
            {"cpu_model": "Cortex-A72", "cpu_threads": 1},
        ),
        (b"processor : 0\nCPU part : 0xd0c\n", {"cpu_threads": 1}),
        (b"", {}),
    ],
)
def test_cpuinfo(data, facts):
    assert parse_cpuinfo(data) == facts


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("0-3,8", [0, 1, 2, 3, 8]),
        ("5", [5]),
        ("", []),
        ("3-1", []),
        ("0-99999999999", []),
        ("x,-,1-,2", [2]),
        ("1,1", [1]),
    ],
)
def test_cpu_list(text, cpus):
    assert parse_cpu_list(text) == cpus


def test_stat_counts_guests_once():
    counters = parse_stat(b"cpu  1000 200 300 400 50 6 7 8 900 100\ncpu0 1 1 1 1\n", 100)
    assert counters == {
        "cpu_user_seconds_total": 10.0,
        "cpu_nice_seconds_total": 2.0,
        "cpu_system_seconds_total": 3.0,
        "cpu_idle_seconds_total": 4.0,
        "cpu_iowait_seconds_total": 0.5,
        "cpu_irq_seconds_total": 0.13,
        "cpu_steal_seconds_total": 0.08,
    }


def test_stat_of_another_shape():
    assert parse_stat(b"cpu0 1 2 3 4\n", 100) == {}
    assert parse_stat(b"cpu 100 x 300\n", 100) == {"cpu_user_seconds_total": 1.0}
    assert parse_stat(b"cpu 100", 100) == {"cpu_user_seconds_total": 1.0}


def test_loadavg():
    assert parse_loadavg(b"0.10 12.50 3.00 1/2 3\n") == {"load_1m": 0.1, "load_5m": 12.5, "load_15m": 3.0}
    assert parse_loadavg(b"nan 12.50 inf\n") == {"load_5m": 12.5}


@given(st.binary())
def test_any_bytes(data):
    fields = {**parse_cpuinfo(data), **parse_stat(b"cpu " + data, 100), **parse_stat(data, 100), **parse_loadavg(data)}
    assert conforms("Host", fields) == []
    parse_cpu_list(data.decode("utf-8", "backslashreplace"))


@given(st.text("0123456789,- "))
def test_any_cpu_list(text):
    cpus = parse_cpu_list(text)
    assert cpus == sorted(set(cpus))
    assert all(0 <= cpu < 1 << 16 for cpu in cpus)


KEYS = st.sampled_from(["processor", "model name", "cpu", "CPU implementer", "CPU part", "physical id", "core id"])


@given(st.lists(st.tuples(KEYS, st.text())))
def test_any_values_in_cpuinfo(lines):
    data = "\n".join(f"{key}\t: {value}" for key, value in lines).encode("utf-8", "replace")
    assert conforms("Host", parse_cpuinfo(data)) == []
