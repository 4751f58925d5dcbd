"""What 12,500 nodes that push cost a real hub: real WebSockets, one core for the hub, the agents on the other.

    python -m bench.ingest [--nodes 12500] [--seconds 60] [--largest] [--plain] [--post] [--tls]

The hub is `gpulse up` in a process of its own, pinned to one core; bench.pushers is pinned to the other and holds the
agents and the people who watch. Lines are those of the simulated crowd, which bench.fleet compares with the real
probe's: 8 GPUs, 16 processes, every figure that moves moves every second.
"""

import argparse
import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import quantiles

from bench.fleet import MIX, PEOPLE, SHARES, START, TEMPLATES, compare_lines, decoding
from bench.measure import cpu_seconds
from bench.pushers import Settings
from gpulse.auth.tokens import Tokens
from gpulse.simulate.crowd import Crowd
from gpulse.store import Records

ROOT = Path(__file__).resolve().parent.parent
HUB_CORE, AGENTS_CORE = 0, 1
ACCEPTED_BAR, P99_BAR, CPU_BAR, CPU_AMBITION, MEMORY_BAR = 0.999, 1.2, 0.60, 0.35, 1.5e9
# As many connections as the machine lets one process have, with room for the rest.
MOST_CONNECTIONS = 19_000
LISTENERS = 20
POSTING = 500


@dataclass
class Result:
    """One run."""

    nodes: int
    rate: float
    accepted: float
    bytes_a_line: float
    cpu: float
    memory: int
    p50: float
    p99: float
    frames: int
    frame_bytes: float
    listeners_lost: int
    agents_cpu: float
    agents_late: float

    @property
    def good(self) -> bool:
        return self.accepted >= ACCEPTED_BAR and self.p99 <= P99_BAR

    def row(self) -> str:
        return (
            f"| {self.nodes:,} | {self.rate:,.0f}/s | {self.bytes_a_line:,.0f} | {self.accepted:.3%} | {self.cpu:.1%} "
            f"| {self.cpu / self.rate * 1e6:.1f} µs | {self.memory / 1e6:,.0f} MB | {self.p50:.2f} s "
            f"| {self.p99:.2f} s |"
        )


HEAD = (
    "| nodes | lines | bytes a line | accepted | of one core | a line | memory | p50 | p99 |\n"
    "|---|---|---|---|---|---|---|---|---|"
)


class HubProcess:
    """A real hub with tokens for so many nodes."""

    def __init__(
        self, folder: Path, nodes: int, command: list[str] | None = None, pinned: bool = True, tls: bool = False
    ):
        self.folder = folder
        (folder / "gpulse.toml").write_text(f"[tls]\nself_signed = {'true' if tls else 'false'}\n", "ascii")
        self.tokens = folder / "tokens.json"
        names = [place.name for place in crowd_of(nodes, templates=1, seconds=2).places()]
        self.tokens.write_text(json.dumps(_tokens(folder, names)), "ascii")
        command = command or [str(Path(sys.executable).with_name("gpulse")), "up"]
        self.process = subprocess.Popen(
            [*(_on(HUB_CORE) if pinned else ()), *command, "--no-local", "--port", "0", "--data", str(folder)],
            stdout=subprocess.PIPE,
            # It says who comes and goes.
            stderr=subprocess.DEVNULL,
            env=dict(os.environ, PYTHONPATH=str(ROOT)),
            cwd=folder,
            text=True,
        )
        assert self.process.stdout
        self.url = self.process.stdout.readline().strip()
        self.port = int(self.url.rsplit(":", 1)[1].strip("/"))

    def metric(self, name: str) -> float:
        own = self.folder / "tls" / "certificate.pem"
        context = ssl.create_default_context(cafile=own) if own.exists() else None
        with urllib.request.urlopen(f"{self.url}metrics", timeout=20, context=context) as answer:  # noqa: S310 - our own
            for line in answer.read().decode().splitlines():
                if line.startswith(name + " "):
                    return float(line.split()[1])
        raise RuntimeError(f"the hub has no metric {name}")

    def cpu_seconds(self) -> float:
        return cpu_seconds([self.process.pid])

    def resident_bytes(self) -> int:
        for line in Path(f"/proc/{self.process.pid}/status").read_text("ascii").splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise RuntimeError("the hub is gone")

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(30)


def _on(core: int) -> list[str]:
    return ["taskset", "--cpu-list", str(core)]


def _tokens(folder: Path, names: list[str]) -> dict[str, str]:
    with Records(folder) as records:
        return Tokens(records).create_nodes(names)


def crowd_of(nodes: int, templates: int = TEMPLATES, seconds: int = 300) -> Crowd:
    return Crowd(nodes, 1, START, templates=templates, seconds=seconds, every=5, mix=MIX, people=PEOPLE, shares=SHARES)


def run(
    nodes: int,
    seconds: float,
    interval: float = 1.0,
    command: list[str] | None = None,
    post: bool = False,
    tls: bool = False,
) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        hub = HubProcess(Path(folder), nodes, command, tls=tls)
        settings = Settings(hub.port, nodes, str(hub.tokens), LISTENERS, seconds, interval, post=post, tls=tls)
        told = Path(folder) / "settings.json"
        told.write_text(json.dumps(asdict(settings)), "ascii")
        agents = subprocess.Popen(
            [*_on(AGENTS_CORE), sys.executable, "-m", "bench.pushers", str(told)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            _until(agents, "connected")
            _until(agents, "begun")
            cpu, began = hub.cpu_seconds(), time.monotonic()
            _until(agents, "ended")
            cpu, took = hub.cpu_seconds() - cpu, time.monotonic() - began
            memory = hub.resident_bytes()
            outcome = _until(agents, "sent")
            accepted = hub.metric("gpulse_hub_lines_total") / outcome["sent"]
        finally:
            agents.kill()
            agents.wait()
            hub.end()
    lags = quantiles(outcome["lags"], n=100)
    return Result(
        nodes=nodes,
        rate=nodes / interval,
        accepted=accepted,
        bytes_a_line=outcome["bytes_a_line"],
        cpu=cpu / took,
        memory=memory,
        p50=lags[49],
        p99=lags[98],
        frames=min(outcome["frames"]),
        frame_bytes=outcome["frame_bytes"] / max(1, outcome["frames"][0]),
        listeners_lost=outcome["listeners_lost"],
        agents_cpu=outcome["cpu_ratio"],
        agents_late=outcome["late_seconds"],
    )


def _until(process: subprocess.Popen, word: str) -> dict:
    assert process.stdout
    for line in process.stdout:
        told = json.loads(line)
        if word in told:
            return told
    raise RuntimeError(f"the agents ended before they said {word!r}")


def largest(seconds: float) -> list[Result]:
    """More nodes until the bars are missed: first more connections, then more lines on each."""
    found = []
    for wanted in (15_000, 20_000, 25_000, 30_000, 35_000, 40_000, 45_000, 50_000):
        nodes = min(wanted, MOST_CONNECTIONS)
        result = run(nodes, seconds, interval=nodes / wanted)
        found.append(result)
        print(result.row(), flush=True)
        if not result.good:
            break
    return found


def report(nodes: int, seconds: float, with_largest: bool, with_plain: bool, with_post: bool, with_tls: bool) -> bool:
    crowd = crowd_of(nodes)
    compare_lines(crowd)
    names = [place.name for place in crowd.places()]
    for name in names:
        crowd.line(name)
    floor, plain = decoding(crowd, names)
    del crowd
    print(HEAD)
    result = run(nodes, seconds)
    print(result.row(), flush=True)
    if with_largest:
        largest(min(20.0, seconds))
    print()
    if with_plain:
        plain_result = run(nodes, min(20.0, seconds), command=[sys.executable, "-m", "bench.plain_hub", "up"])
        print(f"uvicorn's own WebSocket and a task for each node instead of the shortcut:\n\n{HEAD}")
        print(f"{plain_result.row()}\n\n{plain_result.cpu / result.cpu:.1f} × the CPU time\n", flush=True)
    if with_post:
        posted = run(POSTING, min(20.0, seconds), post=True)
        print(
            f"whole snapshots by plain POST instead, on connections that are kept:\n\n{HEAD}\n{posted.row()}\n",
            flush=True,
        )
    if with_tls:
        secured = run(nodes, min(20.0, seconds), tls=True)
        print(
            f"the same at https:\n\n{HEAD}\n{secured.row()}\n\n{secured.cpu / result.cpu:.2f} × the CPU time\n",
            flush=True,
        )
    line = result.cpu / result.rate
    print(
        f"- bare decoding of what is read on arrival: {floor * 1e6:.1f} µs a line; "
        f"the whole hub is {line / floor:.1f} ×"
    )
    print(f"- bare decoding of all of a line: {plain * 1e6:.1f} µs: the whole hub is {line / plain:.1f} ×")
    print(
        f"- 20 listeners, {result.frames} frames each of {result.frame_bytes / 1e3:.0f} kB; "
        f"{result.listeners_lost} lost"
    )
    print(f"- the agents' core: {result.agents_cpu:.0%}, at most {result.agents_late * 1e3:.0f} ms late")
    bars = (
        ("accepted", result.accepted >= ACCEPTED_BAR, f"{result.accepted:.3%} (bar {ACCEPTED_BAR:.1%})"),
        ("p99", result.p99 <= P99_BAR, f"{result.p99:.2f} s (bar {P99_BAR} s)"),
        ("CPU", result.cpu <= CPU_BAR, f"{result.cpu:.1%} (bar {CPU_BAR:.0%}, ambition {CPU_AMBITION:.0%})"),
        ("memory", result.memory <= MEMORY_BAR, f"{result.memory / 1e9:.2f} GB (bar {MEMORY_BAR / 1e9} GB)"),
    )
    print()
    for what, met, words in bars:
        print(f"{what}: {words} {'met' if met else 'MISSED'}")
    return all(met for _, met, _ in bars)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What nodes that push cost.")
    parser.add_argument("--nodes", type=int, default=12_500)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--largest", action="store_true", help="also search the largest number of nodes")
    parser.add_argument("--plain", action="store_true", help="also measure a hub without its shortcut")
    parser.add_argument("--post", action="store_true", help="also measure plain POST")
    parser.add_argument("--tls", action="store_true", help="also measure a hub at https")
    given = parser.parse_args()
    good = report(given.nodes, given.seconds, given.largest, given.plain, given.post, given.tls)
    sys.exit(0 if good else 1)
