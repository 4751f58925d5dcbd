import os
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse_probe.collectors.machine import Machine, parse_os_release, parse_uptime
from gpulse_probe.system import System
from tests.conform import conforms
from tests.recorded import MACHINES, expected, machine


@pytest.mark.parametrize("name", MACHINES)
def test_recorded_machines(name):
    collected = Machine(machine(name)).collect(0.0, pytest.fail)
    assert collected == expected(name, "machine")
    assert conforms("Host", collected) == []


def test_this_machine():
    collected = Machine(System()).collect(0.0, pytest.fail)
    assert collected["hostname"] == socket.gethostname()
    assert collected["kernel"] == os.uname().release
    assert collected["architecture"] == os.uname().machine
    assert collected["uptime_seconds"] > 0
    assert conforms("Host", collected) == []


def test_an_empty_machine_has_no_fields(tmp_path):
    assert Machine(System(str(tmp_path))).collect(0.0, pytest.fail) == {}


def test_facts_are_read_once_and_the_uptime_always(tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "proc").mkdir()
    (tmp_path / "etc/os-release").write_text("PRETTY_NAME=One\n")
    (tmp_path / "proc/uptime").write_text("1.00 1.00\n")
    collector = Machine(System(str(tmp_path)))
    assert collector.collect(0.0, pytest.fail) == {"os": "One", "uptime_seconds": 1.0}
    (tmp_path / "etc/os-release").write_text("PRETTY_NAME=Two\n")
    (tmp_path / "proc/uptime").write_text("2.00 1.00\n")
    assert collector.collect(1.0, pytest.fail) == {"os": "One", "uptime_seconds": 2.0}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('PRETTY_NAME="Rocky Linux 8.10 (Green Obsidian)"', "Rocky Linux 8.10 (Green Obsidian)"),
        ("PRETTY_NAME='SUSE \"15\"'", 'SUSE "15"'),
        (r'PRETTY_NAME="a \"b\" \$c \\d"', r'a "b" $c \d'),
        ("NAME=Alpine\nVERSION=3.20", "Alpine 3.20"),
        ("# nothing\n\nID=x", None),
        ("PRETTY_NAME=\nNAME=Arch", "Arch"),
        ("", None),
    ],
)
def test_os_release(text, name):
    assert parse_os_release(text) == name


@pytest.mark.parametrize(
    ("data", "seconds"),
    [(b"12.34 1.0\n", 12.34), (b"", None), (b"nan 1", None), (b"-1 2", None), (b"9" * 400, None), (b"up 1", None)],
)
def test_uptime(data, seconds):
    assert parse_uptime(data) == seconds


@given(st.binary())
def test_any_bytes(data):
    assert parse_uptime(data) is None or parse_uptime(data) >= 0
    assert parse_os_release(data.decode("utf-8", "backslashreplace")) != ""
    assert parse_os_release("PRETTY_NAME=" + data.decode("latin-1")) != ""
