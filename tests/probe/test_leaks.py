"""Two thousand ticks at full speed, with processes that come and go: memory and descriptors stay flat."""

import json
import subprocess
import sys
from statistics import median

from tests.fake_nvml import Process, h100_node

TICKS = 2000
# Takes snapshots as fast as it can; a line of standard input lets it take the next hundred.
DRIVER = """
import json, os, sys
sys.path[:0] = %r
from bench.measure import family, anonymous_bytes
from gpulse_probe.sampler import Sampler
from gpulse_probe.system import System

sampler = Sampler(System(), interval=0.05)
for line in sys.stdin:
    seen = set()
    for _ in range(100):
        snapshot = json.loads(sampler.line().decode("ascii"))
        assert snapshot["reports"] == [], snapshot["reports"]
        seen.update(process["pid"] for process in snapshot["processes"])
    # What is still at work, on a busy machine, has a child or a file more.
    sampler._watchdog.wait(20.0)
    for collector in sampler._collectors:
        aside = getattr(collector, "_aside", None)
        if aside is not None and aside._asked_at is not None:
            aside._take(aside._asked_at, 20.0)
    pids = family(os.getpid())
    print(json.dumps({
        "ticks": snapshot["seq"] + 1,
        "pids": sorted(seen),
        "memory": anonymous_bytes(pids),
        "processes": len(pids),
        "descriptors": [len(os.listdir("/proc/%%d/fd" %% pid)) for pid in pids],
    }), flush=True)
sampler.close()
"""


def test_two_thousand_ticks(fake):
    sleepers = [subprocess.Popen(["sleep", "300"]) for _ in range(16)]
    fake.describe(h100_node(8, moving=True))
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER % [path for path in sys.path if path]],
        env=fake.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as driver:
        assert driver.stdin
        assert driver.stdout
        taken = []
        all_pids = set()
        try:
            for _ in range(TICKS // 100):
                # Four go, four come.
                for sleeper in sleepers[:4]:
                    sleeper.kill()
                    sleeper.wait()
                sleepers = sleepers[4:] + [subprocess.Popen(["sleep", "300"]) for _ in range(4)]
                fake.describe(
                    h100_node(
                        8,
                        [Process(sleeper.pid, gpu=number // 2, sm=30) for number, sleeper in enumerate(sleepers)],
                        moving=True,
                    )
                )
                driver.stdin.write("go\n")
                driver.stdin.flush()
                line = driver.stdout.readline()
                assert line, "the driver ended"
                taken.append(json.loads(line))
                all_pids.update(taken[-1]["pids"])
        finally:
            driver.stdin.close()
            for sleeper in sleepers:
                sleeper.kill()
                sleeper.wait()
    assert taken[-1]["ticks"] == TICKS
    assert len(all_pids) >= 16 + 4 * (TICKS // 100 - 1)
    assert {one["processes"] for one in taken} == {2}
    assert len({tuple(one["descriptors"]) for one in taken[2:]}) == 1
    # Caches fill and arenas settle in the first half; a median evens out what a moment adds.
    settled = [one["memory"] for one in taken[len(taken) // 2 :]]
    grown = median(settled[-5:]) - median(settled[:5])
    assert grown <= 150_000, [round(size / 1000) for size in settled]
