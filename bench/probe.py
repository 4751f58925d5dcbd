"""What a snapshot costs: ours beside nvitop-exporter, gpustat and the bare NVML calls, on the fake NVML.

    make bench        or        python -m bench.probe [--seconds 30]

No driver cost is in these figures: the fake library answers from memory. What is compared is what each
program adds to it.
"""

import argparse
import compileall
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench.measure import cpu_seconds, family, pss_bytes
from gpulse.transport.bundle import make_bundle
from tests.fake_nvml import FakeNvml, Process, h100_node

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / ".venv-peers" / "bin"
GPUS, PROCESSES = 8, 16
# The bars: CPU at most a quarter of nvitop-exporter's and a fiftieth of gpustat's, memory at most 70 %.
BARS = {"nvitop-exporter": ("cpu", 1 / 4), "gpustat --json": ("cpu", 1 / 50)}
MEMORY_BAR = 0.7


@dataclass
class Figure:
    name: str
    cpu: float
    memory: float
    # What the memory is: PSS while it runs, or the most it held at a time (RSS) where it runs for each snapshot anew.
    kind: str = "PSS"


class Contestant:
    """A program that takes a snapshot a second until it is stopped."""

    def __init__(self, name: str, command: list[str], environment: dict[str, str], feed: bytes | None = None):
        self.name = name
        self.process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=ROOT,
        )
        if feed:
            assert self.process.stdin
            self.process.stdin.write(feed)
            self.process.stdin.flush()

    def begin(self) -> None:
        if self.process.poll() is not None:
            sys.exit(f"{self.name} ended with code {self.process.returncode}")
        self._pids = family(self.process.pid)
        self._cpu = cpu_seconds(self._pids)

    def end(self, seconds: float) -> Figure:
        spent = cpu_seconds(self._pids) - self._cpu
        return Figure(self.name, spent / seconds, pss_bytes(self._pids))

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def gpustat(environment: dict[str, str], until: float) -> Figure:
    """CPU and memory per run, by the kernel's account of the ended process; it holds none in between."""
    spent, runs, most = 0.0, 0, 0
    while time.monotonic() < until or runs < 3:
        process = subprocess.Popen([PEERS / "gpustat", "--json"], env=environment, stdout=subprocess.DEVNULL)
        _pid, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit(f"gpustat ended with code {process.returncode}")
        spent += usage.ru_utime + usage.ru_stime
        most = max(most, usage.ru_maxrss * 1024)
        runs += 1
        time.sleep(1)
    return Figure("gpustat --json", spent / runs, most, "peak RSS")


def run(seconds: float) -> list[Figure]:
    sleepers: list[subprocess.Popen[bytes]] = []
    contestants: list[Contestant] = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            fake = FakeNvml(Path(folder))
            sleepers += [subprocess.Popen(["sleep", "3600"]) for _ in range(PROCESSES)]
            used = [
                Process(sleeper.pid, gpu=number * GPUS // PROCESSES, sm=40) for number, sleeper in enumerate(sleepers)
            ]
            fake.describe(h100_node(GPUS, used, moving=True))
            environment = fake.environment()
            bundle = make_bundle()
            # An installed package has its bytecode; a checkout may not.
            compileall.compile_dir(str(ROOT / "src" / "gpulse_probe"), quiet=1)
            stream = ["--stream", "--interval", "1"]
            boot = bundle.command(*stream, "--until-eof", python=sys.executable)
            updates = bundle.command(*stream, "--updates", "--until-eof", python=sys.executable)
            exporter = ["--interval", "1", "--hostname", "127.0.0.1", "--port", "0"]
            # One by one, so that those that were started are stopped also when the next cannot be.
            for name, command, feed in (
                ("gpulse, installed", [str(Path(sys.executable).with_name("gpulse")), "probe", *stream], None),
                ("gpulse, booted", ["sh", "-c", "exec " + boot], bundle.data),
                ("gpulse, booted, --updates", ["sh", "-c", "exec " + updates], bundle.data),
                ("nvitop-exporter", [str(PEERS / "nvitop-exporter"), *exporter], None),
                ("bare NVML calls", [sys.executable, "-m", "bench.bare_nvml"], None),
            ):
                contestants.append(Contestant(name, command, environment, feed))
            time.sleep(12)
            began = time.monotonic()
            for contestant in contestants:
                contestant.begin()
            command_figure = gpustat(environment, began + seconds)
            spent = time.monotonic() - began
            return [contestant.end(spent) for contestant in contestants] + [command_figure]
        finally:
            for sleeper in sleepers:
                sleeper.kill()
                sleeper.wait()
            for contestant in contestants:
                contestant.stop()


def report(figures: list[Figure]) -> bool:
    """Print the table; whether every bar is met."""
    by_name = {figure.name: figure for figure in figures}
    ours = [figure for figure in figures if figure.name.startswith("gpulse")]
    print(f"{GPUS} GPUs, {PROCESSES} processes, one snapshot a second\n")
    print(f"| {'program':25} | CPU ms/snapshot | of ours | memory MB | of ours |")
    print("|---|---|---|---|---|")
    for figure in figures:
        memory = f"{figure.memory / 1e6:.1f} {figure.kind} | {figure.memory / ours[0].memory:.2f}"
        print(f"| {figure.name:25} | {figure.cpu * 1e3:.2f} | {figure.cpu / ours[0].cpu:.2f} | {memory} |")
    print()
    good = True
    for mine in ours:
        for peer, (_what, bar) in BARS.items():
            good &= _check(f"{mine.name}: CPU against {peer}", mine.cpu / by_name[peer].cpu, bar)
        ratio = mine.memory / by_name["nvitop-exporter"].memory
        good &= _check(f"{mine.name}: memory against nvitop-exporter", ratio, MEMORY_BAR)
    return good


def _check(what: str, ratio: float, bar: float) -> bool:
    print(f"{what}: {ratio:.3f} (bar {bar:.3f}) {'met' if ratio <= bar else 'MISSED'}")
    return ratio <= bar


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What a snapshot costs.")
    parser.add_argument("--seconds", type=float, default=30.0)
    sys.exit(0 if report(run(parser.parse_args().seconds)) else 1)
