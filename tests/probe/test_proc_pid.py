"""What the files of /proc/PID say, on other people's machines and with any bytes in them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse_probe.proc_pid import (
    parse_boot_time,
    parse_cgroup,
    parse_command,
    parse_name,
    parse_pids,
    parse_stat,
    parse_uid,
)
from tests.testdata import archive, capture


def test_recorded_stats(tmp_path: Path) -> None:
    stat = parse_stat(capture("kellyjonbrazil+jc/linux-proc_pid_stat"))
    assert stat == (b"systemd", "S", 0, 1, 1, 107 + 461, 0, 128, 3313)
    proc = archive("prometheus+procfs/proc_pids.ttar", tmp_path) / "fixtures" / "proc"
    odd = parse_stat((proc / "584" / "stat").read_bytes())
    assert odd is not None
    assert (odd.name, odd.state, odd.parent, odd.start_ticks) == (b"(a b ) ( c d) ", "R", 28378, 10839175)
    kernel = parse_stat((proc / "26232" / "stat").read_bytes())
    assert kernel is not None
    assert (kernel.name, kernel.nice, kernel.resident_pages) == (b"ata_sff", -20, 0)
    assert parse_command((proc / "26231" / "cmdline").read_bytes()) == "vim test.go +10"
    assert parse_command((proc / "26232" / "cmdline").read_bytes()) is None
    assert parse_command((proc / "26233" / "cmdline").read_bytes()) == "com.github.uiautomator"
    assert parse_uid((proc / "26231" / "status").read_bytes()) == 1000


@pytest.mark.parametrize(
    ("number", "path"),
    [
        (100, "/system.slice/docker.service"),
        (200, "/docker/b43d92bf1e5c6f78bb9b7bc6f40721280299855ba692092716e3a1b6c0b86f3f"),
        (
            300,
            "/kubepods/burstable/pod6a4ce4a0-ba47-11ea-b2a7-0cc47ac5979e/"
            "17db96a24ae1e9dd57143e62b1cb0d2d35e693c65c774c7470e87b0572e07c1a",
        ),
        (
            400,
            "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod8712f785_1a3e_41ec_a00b_e2dcc77431cb.slice/"
            "docker-73051af271105c07e1f493b34856a77e665e3b0b4fc72f76c807dfbffeb881bd.scope",
        ),
        (550, "/system.slice/ssh.service"),
        (800, "/system.slice/docker-cf87ba651579c9231db817909e7865e5747bd7abcac0c57ce23cf4abbaee046b.scope"),
        (900, "/system.slice/python-app.service"),
        (1000, "/system.slice/system-getty.slice/getty@tty1.service"),
    ],
)
def test_recorded_control_groups(number: int, path: str) -> None:
    assert parse_cgroup(capture(f"coroot+coroot-node-agent/proc_{number}_cgroup.txt")) == path


def test_recorded_slurm_processes(tmp_path: Path) -> None:
    proc = archive("treydock+cgroup_exporter/proc_fixtures.ttar", tmp_path) / "fixtures" / "proc"
    assert parse_cgroup((proc / "49276" / "cgroup").read_bytes()) == (
        "/system.slice/slurmstepd.scope/job_4/step_0/user/task_0"
    )
    assert parse_uid((proc / "49276" / "status").read_bytes()) == 20821


def test_the_job_is_told_though_a_session_has_the_longer_path() -> None:
    adopted = (
        b"9:memory:/slurm/uid_7/job_3/step_extern\n1:name=systemd:/user.slice/user-7.slice/user-7-session-33.scope\n"
    )
    assert parse_cgroup(adopted) == "/slurm/uid_7/job_3/step_extern"
    assert (
        parse_cgroup(b"5:cpuset:/some/very/long/path/of/nothing/much\n1:name=systemd:/user.slice/u\n")
        == "/user.slice/u"
    )


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", None),
        (b"\0\0\0", None),
        (b"sleep\x0060\0", "sleep 60"),
        (b"sleep\x0060", "sleep 60"),
        (b"a\0\0b\0", "a '' b"),
        (b"a\0b\0\0", "a b ''"),
        (b"a\0b c\0$d\0e'f\0g'h$\0*\0", "a 'b c' '$d' \"e'f\" 'g'\"'\"'h$' '*'"),
        (b"a\0\xff\xfe\0b\xc3\xa9\0", "a $'\\xff\\xfe' bé"),
        (b"a\0b\nc\td'e\\\0\x1b[1m\0", "a $'b\\nc\\td\\'e\\\\' $'\\x1b[1m'"),
        ("a\0b\u202ec\0d e\0".encode(), "a $'b\\u202ec' 'd e'"),
        (b"\xed\xa0\x80\0x\0", "$'\\xed\\xa0\\x80' x"),
        (b"nginx: worker process\0\0\0\0", "nginx: worker process"),
        (b"ray::train() token=abc\x1b\0\0", "ray::train() token=***"),
        (b"x\0--password\0a b\0--token=c\0", "x --password *** --token=***"),
    ],
)
def test_a_command_line_reads_as_it_would_be_typed(data: bytes, text: str | None) -> None:
    assert parse_command(data) == text


def test_a_long_command_line_is_cut_and_shows_it() -> None:
    text = parse_command(b"x\0" + b"y" * 5000 + b"\0")
    assert text is not None
    assert len(text) == 4096
    assert text.endswith("y…")
    text = parse_command(b"x\0--password\0" + b"y" * 30000, cut=True)
    assert text == "x --password ***…"


def test_a_name_may_be_a_title_with_a_secret() -> None:
    assert parse_name("t token=abcdefg") == "t token=***"
    assert parse_name("kworker/0:1") == "kworker/0:1"
    assert parse_name("a\nb") == "a\\nb"


PARSERS = [parse_stat, parse_uid, parse_boot_time, parse_pids, parse_cgroup, parse_command]
SNIPPETS = st.sampled_from(
    [
        b"1 (",
        b") ",
        b"R ",
        b"Uid:\t",
        b"\nUid:",
        b"0::/",
        b":",
        b"/",
        b"\0",
        b"\n",
        b"\xff",
        b" 9",
        b" -1",
        b"btime ",
        b"\n",
    ]
)
BYTES = st.one_of(st.binary(), st.lists(SNIPPETS, max_size=60).map(b"".join))


@pytest.mark.parametrize("parse", PARSERS, ids=lambda parse: parse.__name__)
@given(data=BYTES)
def test_any_bytes_are_taken(parse: Callable[[bytes], Any], data: bytes) -> None:
    result = parse(data)
    if isinstance(result, str):
        assert result.isprintable()
        assert len(result) <= 4096 or parse is parse_cgroup
        json.dumps(result, ensure_ascii=False).encode("utf-8")


@given(name=st.binary(max_size=16), numbers=st.lists(st.integers(-(2**63), 2**64), min_size=21, max_size=50))
def test_a_stat_is_read_whatever_the_name(name: bytes, numbers: list[int]) -> None:
    stat = parse_stat(b"7 (" + name + b") S " + " ".join(map(str, numbers)).encode() + b"\n")
    assert stat is not None
    assert (stat.name, stat.state, stat.parent, stat.start_ticks) == (name, "S", numbers[0], numbers[18])
