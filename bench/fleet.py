"""What the fleet costs: 12,500 simulated nodes of 8 GPUs at one line a second, up to the live frame of each tick.

    python -m bench.fleet [--nodes 12500] [--ticks 30]

Lines are made beforehand and are not counted; neither are sockets. CPU is that of the one thread that does it all.
"""

import argparse
import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

import msgspec

from gpulse.fleet.fleet import Fleet
from gpulse.fleet.frames import Frames
from gpulse.fleet.model import Snapshot
from gpulse.fleet.updates import Arrival
from gpulse.simulate.cluster import Shares
from gpulse.simulate.crowd import Crowd
from gpulse.simulate.machines import A100_40_NODE, A100_80_NODE, H100_NODE, L40S_NODE
from gpulse.simulate.people import Person
from tests.fake_nvml import FakeNvml, Process, h100_node

BAR = 0.25
GPUS, PROCESSES = 8, 16
# So many that equal nodes are too far apart in a frame for its compression to find them, as in life there are none.
TEMPLATES = 100
START = 1_700_000_000.0
# Nodes of 8 GPUs, and people whose small runs share cards, so that a node has 16 processes or so.
MIX = ((H100_NODE, 0.5), (A100_80_NODE, 0.2), (A100_40_NODE, 0.15), (L40S_NODE, 0.15))
PEOPLE = tuple(
    Person(f"user{number:02d}", 3000 + number, {"sweep": 12, "training": 1, "notebook": 1}) for number in range(60)
)

SHARES = Shares(wide=0.0, narrow=1.0)


@dataclass
class Spent:
    """CPU seconds and bytes, tick by tick."""

    lines: int = 0
    fulls: int = 0
    line_bytes: int = 0
    line: list[float] = field(default_factory=list)
    tick: list[float] = field(default_factory=list)
    frame: list[float] = field(default_factory=list)
    frame_bytes: list[int] = field(default_factory=list)

    def of_a_core(self) -> list[float]:
        return [sum(parts) for parts in zip(self.line, self.tick, self.frame, strict=True)]


class Clock:
    """The hub's clocks, moved by hand: a tick is a second, however fast it goes here."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return 1000.0 + self.seconds

    def wall(self) -> float:
        return START + self.seconds


class Run:
    def __init__(self, crowd: Crowd):
        self.crowd = crowd
        self.clock = Clock()
        self.fleet = Fleet(clock=self.clock.monotonic, wall=self.clock.wall)
        self.frames = Frames(self.fleet)
        self.names = [place.name for place in crowd.places()]
        for place in crowd.places():
            self.fleet.place(place)
            crowd.new_stream(place.name)

    def ticks(self, count: int, spent: Spent, *, full: bool = False) -> None:
        """So many seconds; `full`: every line is a full Snapshot, as of probes that know no updates."""
        for _ in range(count):
            self.clock.seconds += 1
            self.crowd.advance(self.clock.wall())
            if full:
                for name in self.names:
                    self.crowd.new_stream(name)
            lines = [self.crowd.line(name) for name in self.names]
            spent.lines += len(lines)
            spent.line_bytes += sum(map(len, lines))
            spent.fulls += sum(not line.startswith(b'{"update":') for line in lines)
            self._tick(lines, spent)

    def _tick(self, lines: list[bytes], spent: Spent) -> None:
        take = self.fleet.line
        began = time.thread_time()
        for name, line in zip(self.names, lines, strict=True):
            take(name, line)
        told = time.thread_time()
        self.fleet.tick()
        ticked = time.thread_time()
        self.frames.step(self.clock.wall())
        frame = self.frames.delta()
        framed = time.thread_time()
        spent.line.append(told - began)
        spent.tick.append(ticked - told)
        spent.frame.append(framed - ticked)
        if frame is not None:
            spent.frame_bytes.append(len(frame))


def decoding(crowd: Crowd, names: list[str]) -> tuple[float, float]:
    """Seconds a line for nothing but decoding: into what the fleet reads on arrival (the floor), and all of it."""
    update, snapshot = msgspec.json.Decoder(Arrival).decode, msgspec.json.Decoder(Snapshot).decode
    lines = [crowd.line(name) for name in names]
    began = time.thread_time()
    for line in lines:
        (update if line.startswith(b'{"update":') else snapshot)(line)
    typed = time.thread_time() - began
    plain = msgspec.json.Decoder().decode
    began = time.thread_time()
    for line in lines:
        plain(line)
    return typed / len(lines), (time.thread_time() - began) / len(lines)


def real_lines() -> Iterator[bytes]:
    """A full line and some updates of the real probe, on the fake NVML."""
    sleepers = [subprocess.Popen(["sleep", "600"]) for _ in range(PROCESSES)]
    with tempfile.TemporaryDirectory() as folder:
        fake = FakeNvml(Path(folder))
        used = [Process(sleeper.pid, gpu=number * GPUS // PROCESSES, sm=40) for number, sleeper in enumerate(sleepers)]
        fake.describe(h100_node(GPUS, used, moving=True))
        command = [sys.executable, "-m", "gpulse_probe", "--stream", "--updates", "--interval", "1"]
        probe = subprocess.Popen(command, env=fake.environment(), stdout=subprocess.PIPE)
        try:
            assert probe.stdout
            for _ in range(5):
                yield probe.stdout.readline()
        finally:
            probe.terminate()
            probe.wait(10)
            for sleeper in sleepers:
                sleeper.kill()
                sleeper.wait()


def compare_lines(crowd: Crowd) -> None:
    """Show that what is replayed is what the real probe sends."""
    full, *updates = real_lines()
    update = updates[-1]
    name = crowd.places()[0].name
    crowd.new_stream(name)
    ours = [crowd.line(name) for _ in range(5)]
    print("| line of one node | full, bytes | update, bytes | columns of GPUs, processes, uses |")
    print("|---|---|---|---|")
    for what, whole, part in (("real probe, fake NVML", full, update), ("simulated", ours[0], ours[-1])):
        record = json.loads(part)
        counts = ", ".join(str(len(record.get(key, ()))) for key in ("gpus", "processes", "uses"))
        print(f"| {what} | {len(whole)} | {len(part)} | {counts} |")
    print()


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * 4096


def tune_gc() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def report(nodes: int, ticks: int) -> bool:
    crowd = Crowd(nodes, 1, START, templates=TEMPLATES, seconds=300, every=5, mix=MIX, people=PEOPLE, shares=SHARES)
    compare_lines(crowd)
    processes = [json.loads(b"{" + recording.fulls[0])["processes"] for recording in crowd.recordings]
    before = resident_bytes()
    run = Run(crowd)
    run.ticks(3, Spent())
    tune_gc()
    spent = Spent()
    run.ticks(ticks, spent)
    resident = resident_bytes() - before
    began = time.thread_time()
    full_frame = run.frames.full()
    full_frame_seconds = time.thread_time() - began
    floor, plain = decoding(crowd, run.names)
    whole = Spent()
    run.ticks(3, whole, full=True)

    per_node = sum(map(len, processes)) / len(processes)
    print(f"{nodes} nodes × {GPUS} GPUs, {per_node:.1f} processes a node; {ticks} ticks, ", end="")
    print(f"{spent.fulls / spent.lines:.2%} of the lines are full, {spent.line_bytes / spent.lines:.0f} bytes a line\n")
    total = fmean(spent.of_a_core())
    print("| CPU of a tick | mean | least | most | of the whole |")
    print("|---|---|---|---|---|")
    parts = (("lines: decode, apply", spent.line), ("states", spent.tick), ("delta frame", spent.frame))
    for what, seconds in (*parts, ("all", spent.of_a_core())):
        figures = " | ".join(f"{figure * 1e3:.1f} ms" for figure in (fmean(seconds), min(seconds), max(seconds)))
        print(f"| {what} | {figures} | {fmean(seconds) / total:.0%} |")
    print()
    line, whole_line = fmean(spent.line) / nodes, fmean(whole.line) / nodes
    print(f"- a line: {line * 1e6:.1f} µs; bare decoding of what is read on arrival: {floor * 1e6:.1f} µs ", end="")
    print(f"({line / floor:.1f} ×), of all of it: {plain * 1e6:.1f} µs ({line / plain:.1f} ×)")
    print(f"- a full Snapshot every tick instead: {whole_line * 1e6:.0f} µs a line ({whole_line / line:.1f} × ours)")
    delta = sum(spent.frame_bytes) / max(1, len(spent.frame_bytes))
    print(f"- frames: delta {delta / 1e3:.0f} kB, full {len(full_frame) / 1e3:.0f} kB ", end="")
    print(f"(made in {full_frame_seconds * 1e3:.0f} ms when somebody asks)")
    print(f"- memory: {resident / 1e6:.0f} MB for the fleet, {resident / nodes / 1e3:.1f} kB a node")
    scaled = total * 12_500 / nodes
    print(f"\nof one core at 1 Hz, 12,500 nodes: {scaled:.1%} (bar {BAR:.0%}) {'met' if scaled <= BAR else 'MISSED'}")
    return scaled <= BAR


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What the fleet costs.")
    parser.add_argument("--nodes", type=int, default=12_500)
    parser.add_argument("--ticks", type=int, default=30)
    arguments = parser.parse_args()
    sys.exit(0 if report(arguments.nodes, arguments.ticks) else 1)
