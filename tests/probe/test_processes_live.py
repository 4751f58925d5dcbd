"""Processes on GPUs, with real processes of this machine in the driver's place."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpulse_probe.collectors.processes import Processes
from gpulse_probe.proc_pid import parse_stat
from gpulse_probe.system import System
from tests.patience import PATIENCE_SECONDS

SLEEP = b"sleep\0" + b"60\0"


def use(pid: int) -> dict[str, Any]:
    return {"pid": pid, "uuid": "GPU-a", "kinds": ["compute"]}


def never(message: str) -> None:
    raise AssertionError(message)


class Missing(System):
    """What cannot be read is gone, also where the tests run in a container and the kernel would not tell."""

    def process_exists(self, _pid: int) -> bool:
        return False


@pytest.fixture
def started() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    running: list[subprocess.Popen[bytes]] = []

    def start(*command: Any, **options: Any) -> subprocess.Popen[bytes]:
        running.append(subprocess.Popen(command, **options))
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


def wait_for(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        result = condition()
        if result:
            return result
        time.sleep(0.01)
    raise AssertionError("did not come about within 10 s")


def state_of(pid: int) -> str:
    stat = parse_stat(Path(f"/proc/{pid}/stat").read_bytes())
    assert stat is not None
    return stat.state


def wait_for_command(pid: int, command: bytes) -> None:
    """A new program has its name, and whoever started it goes on, a little before it has its command line."""
    wait_for(lambda: Path(f"/proc/{pid}/cmdline").read_bytes() == command)


def test_a_real_process(started: Callable[..., subprocess.Popen[bytes]]) -> None:
    before = time.time()
    process = started("nice", "-n", "7", "sleep", "60")
    wait_for_command(process.pid, SLEEP)
    after = time.time()
    (record,) = Processes(System()).collect(0.0, never, [use(process.pid)])
    assert record["command"] == "sleep 60"
    assert record["name"] == "sleep"
    assert record["nice"] == os.nice(0) + 7
    assert record["state"] in "SRD"
    assert record["uid"] == os.getuid()
    assert record["parent_pid"] == os.getpid()
    assert before - 3 <= record["start_time"] <= after + 3
    assert 0 < record["memory_bytes"] < 1 << 26
    assert 0 <= record["cpu_seconds_total"] < 5
    assert "vanished" not in record


def test_a_real_process_with_odd_bytes(started: Callable[..., subprocess.Popen[bytes]]) -> None:
    command = [
        os.fsencode(sys.executable),
        b"-c",
        b"import time; time.sleep(60)",
        b"\xff\xfe",
        b"a\nb",
        b"--token",
        b"S3cr3t",
    ]
    process = started(*command)
    wait_for(lambda: Path(f"/proc/{process.pid}/cmdline").read_bytes().endswith(b"S3cr3t\0"))
    (record,) = Processes(System()).collect(0.0, never, [use(process.pid)])
    assert record["command"].endswith(" -c 'import time; time.sleep(60)' $'\\xff\\xfe' $'a\\nb' --token ***")


def test_a_program_that_becomes_another_is_read_again(started: Callable[..., subprocess.Popen[bytes]]) -> None:
    process = started("sh", "-c", "read x; exec sleep 60", stdin=subprocess.PIPE)
    assert process.stdin is not None
    wait_for(lambda: state_of(process.pid) == "S" and b"read" in Path(f"/proc/{process.pid}/cmdline").read_bytes())
    collector = Processes(System())
    assert collector.collect(0.0, never, [use(process.pid)])[0]["command"] == "sh -c 'read x; exec sleep 60'"
    process.stdin.write(b"\n")
    process.stdin.close()
    wait_for_command(process.pid, SLEEP)
    assert collector.collect(60.0, never, [use(process.pid)])[0]["command"] == "sleep 60"


def test_a_zombie_is_not_vanished(started: Callable[..., subprocess.Popen[bytes]]) -> None:
    process = started("sleep", "60")
    wait_for_command(process.pid, SLEEP)
    collector = Processes(System())
    collector.collect(0.0, never, [use(process.pid)])
    process.send_signal(signal.SIGKILL)
    wait_for(lambda: state_of(process.pid) == "Z")
    (record,) = collector.collect(1.0, never, [use(process.pid)])
    assert record["state"] == "Z"
    assert record["command"] == "sleep 60"
    assert "vanished" not in record


@pytest.mark.parametrize("seen_alive", [True, False], ids=["seen alive", "found dead"])
def test_a_process_that_died_shows_the_child_that_lives(
    started: Callable[..., subprocess.Popen[bytes]], seen_alive: bool
) -> None:
    parent = started(
        "sh", "-c", "sleep 60 & echo $!; read x", stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    assert parent.stdin is not None
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    # Alone, the session would tell of the child; here what was remembered must do too.
    collector = Processes(Missing())
    if seen_alive:
        collector.collect(0.0, never, [use(parent.pid)])
        collector._survivors._scan_due = 1e9
    parent.stdin.close()
    parent.wait()
    try:
        collector.collect(1.0, never, [use(parent.pid)])
        (record,) = collector.collect(1.5, never, [use(parent.pid)])
        assert record["vanished"] is True
        assert record["children"] == [child]
        assert ("command" in record) is seen_alive
    finally:
        os.kill(child, signal.SIGKILL)
    wait_for(lambda: "children" not in collector.collect(2.0, never, [use(parent.pid)])[0])
