"""The NVML collector in a process of its own, with a clock that the test moves: ten seconds take no time."""

import json
import subprocess
import sys
import time
from typing import Any, NamedTuple

from tests.fake_nvml import FakeNvml

# Reads {"seconds": how far the clocks move, "wall": how far the wall clock is set forth or back} a line.
SERVER = """
import json, sys, time
from gpulse_probe.collectors.nvidia_nvml import NvidiaNvml
from gpulse_probe.page import Page
from gpulse_probe.system import System

class Clocked(System):
    wall = 0.0
    def time(self):
        return time.time() + self.wall

system = Clocked()
collector = NvidiaNvml(system, Page(), json.loads(sys.argv[1]))
now = 1000.0
for line in sys.stdin:
    step = json.loads(line)
    now += step["seconds"]
    system.wall += step["wall"]
    reports = []
    gpus, uses = collector.collect(now, reports.append)
    print(json.dumps([gpus, uses, reports, collector.xid_events()]), flush=True)
"""


class Collected(NamedTuple):
    gpus: list[dict[str, Any]]
    uses: list[dict[str, Any]]
    reports: list[str]
    xid_events: dict[str, Any]


class Collecting:
    """A context manager; after(seconds) collects so much later, by the collector's clock."""

    def __init__(self, fake: FakeNvml, inherited_events: dict[str, Any] | None = None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVER, json.dumps(inherited_events)],
            env=fake.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> "Collecting":
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.kill()
        self._process.communicate()

    def after(self, seconds: float = 1.0, wall: float = 0.0) -> Collected:
        # The library looks at its description every 20 ms at most.
        time.sleep(0.05)
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps({"seconds": seconds, "wall": wall}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the collector ended"
        return Collected(*json.loads(line))
