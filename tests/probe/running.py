"""A probe started as people start it, whose snapshots a test reads one by one."""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE_SECONDS

Snapshot = dict[str, Any]


def once(environment: Mapping[str, str], *options: str) -> Snapshot:
    """The one snapshot of `python -m gpulse_probe --once`."""
    command = [sys.executable, "-m", "gpulse_probe", "--once", *options]
    ran = subprocess.run(command, env=environment, capture_output=True, check=True, timeout=PATIENCE_SECONDS)
    assert ran.stderr == b""
    return json.loads(ran.stdout)


class RunningProbe:
    """`python -m gpulse_probe --stream`, or another command that prints snapshots; a context manager."""

    def __init__(self, environment: Mapping[str, str], *options: str, command: list[str] | None = None):
        self.process = subprocess.Popen(
            (command or [sys.executable, "-m", "gpulse_probe", "--stream"]) + list(options),
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._received = b""

    def __enter__(self) -> "RunningProbe":
        return self

    def __exit__(self, *_error: object) -> None:
        self.process.kill()
        self.process.communicate()

    def line(self, seconds: float = PATIENCE_SECONDS) -> bytes:
        """The next line; fails when it does not come in time."""
        assert self.process.stdout
        end = time.monotonic() + seconds
        while b"\n" not in self._received:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise AssertionError(f"no line within {seconds} s")
            piece = os.read(self.process.stdout.fileno(), 1 << 16)
            if not piece:
                assert self.process.stderr
                raise AssertionError(f"the probe ended: {self.process.stderr.read().decode()}")
            self._received += piece
        line, _, self._received = self._received.partition(b"\n")
        return line

    def next(self, seconds: float = PATIENCE_SECONDS) -> Snapshot:
        return json.loads(self.line(seconds))

    def until(self, condition: Callable[[Snapshot], object], seconds: float = PATIENCE_SECONDS) -> Snapshot:
        """The first snapshot that satisfies the condition."""
        end = time.monotonic() + seconds
        snapshot = None
        while time.monotonic() < end:
            snapshot = self.next(end - time.monotonic() + 1)
            if condition(snapshot):
                return snapshot
        raise AssertionError(f"not within {seconds} s; the last snapshot was {json.dumps(snapshot)[:4000]}")


def messages(snapshot: Snapshot) -> list[str]:
    return [report["message"] for report in snapshot["reports"]]


def children(pid: int) -> list[int]:
    """The live children of a process."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]


def only_child(pid: int, seconds: float = 20.0) -> int:
    """The one child of a process; others, which do one thing and end, are given the time to."""
    end = time.monotonic() + seconds
    while len(alive := children(pid)) != 1:
        assert time.monotonic() < end, f"process {pid} has the children {alive}"
        time.sleep(0.02)
    return alive[0]
