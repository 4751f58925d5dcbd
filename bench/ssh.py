"""What a node over SSH costs the hub: ours, beside a connection per poll and beside gpustat-web, on the same hosts.

    make bench        or        python -m bench.ssh [--nodes 240] [--seconds 20]

The connections are real (OpenSSH servers on loopback), and so is the Fleet that takes the lines. What runs behind
them are not probes, which would need more cores than are here, but small programs that print what a probe
with 8 GPUs and 16 processes printed, once a second.
"""

import argparse
import asyncio
import getpass
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import asyncssh
import uvloop

from bench.measure import cpu_seconds, pss_bytes
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.places import Place
from gpulse.transport.ssh import Ssh, SshSettings, SshTarget
from gpulse.transport.supervisor import Supervisor
from tests.fake_nvml import FakeNvml, Process, h100_node
from tests.ports import free_port
from tests.system.sshd import Client, Sshd

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / ".venv-peers" / "bin"
SERVERS, POLLS, PEER_HOSTS = 8, 40, 8
RECORDED_SECONDS = 40
SETTLE_SECONDS = 8.0
# The bars, for 1,000 nodes at one snapshot a second.
CPU_BAR, MEMORY_BAR = 0.5, 300e3


def record(folder: Path) -> tuple[Path, Path]:
    """What a probe, and what gpustat, prints of a busy node."""
    sleepers = [subprocess.Popen(["sleep", "300"]) for _ in range(16)]
    try:
        fake = FakeNvml(folder)
        used = [Process(sleeper.pid, gpu=number // 2, sm=40) for number, sleeper in enumerate(sleepers)]
        fake.describe(h100_node(8, used, moving=True))
        environment = fake.environment()
        stream = [sys.executable, "-m", "gpulse_probe", "--stream", "--updates", "--interval", "0.25"]
        probe = subprocess.Popen(stream, env=environment, stdout=subprocess.PIPE, cwd=ROOT)
        assert probe.stdout
        lines, answer = folder / "lines", folder / "answer"
        recorded = [probe.stdout.readline() for _ in range(RECORDED_SECONDS)]
        probe.kill()
        probe.wait()
        # An interval of a second, as the hub is told.
        lines.write_bytes(b"".join(recorded).replace(b'"interval_seconds":0.25', b'"interval_seconds":1.0'))
        gpustat = subprocess.run([PEERS / "gpustat", "--color"], env=environment, capture_output=True, check=True)
        answer.write_bytes(gpustat.stdout)
        return lines, answer
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()


class Bench:
    def __init__(self, folder: Path, servers: int) -> None:
        self.client = Client(folder / "person")
        lines, answer = record(folder)
        replay = folder / "replay"
        subprocess.run(["gcc", "-O2", "-o", replay, ROOT / "bench" / "replay.c"], check=True)
        wrapper = f'case "$SSH_ORIGINAL_COMMAND" in *--stream*) exec {replay} {lines};; *) exec cat {answer};; esac'
        self.bytes_a_line = lines.stat().st_size / RECORDED_SECONDS
        self.servers = [
            Sshd(folder / f"server{number}", self.client, wrapper=wrapper, fake=False) for number in range(servers)
        ]
        self.client.know(*self.servers)
        self.environment = dict(os.environ, HOME=str(self.client.home))
        self.environment.pop("SSH_AUTH_SOCK", None)

    def stop(self) -> None:
        for server in self.servers:
            server.stop()

    def ours(self, nodes: int, seconds: float) -> dict[str, float]:
        """In a process of its own, so that its memory is the hub's."""
        ports = [server.port for server in self.servers]
        command = [sys.executable, "-m", "bench.ssh", "--hub", json.dumps([ports, nodes, seconds])]
        ran = subprocess.run(command, env=self.environment, cwd=ROOT, stdout=subprocess.PIPE, check=True)
        found: dict[str, float] = json.loads(ran.stdout)
        return found

    def per_poll(self) -> float:
        """CPU of a poll that opens a connection, as a client must that keeps none."""
        ports = [server.port for server in self.servers]
        command = [sys.executable, "-m", "bench.ssh", "--polls", json.dumps(ports)]
        ran = subprocess.run(command, env=self.environment, cwd=ROOT, stdout=subprocess.PIPE, check=True)
        return float(ran.stdout)

    def gpustat_web(self, seconds: float) -> dict[str, float]:
        """CPU for each of its hosts, and memory in all: it keeps its connections and starts gpustat for each poll."""
        hosts = [f"127.0.0.1:{server.port}" for server in self.servers[:PEER_HOSTS]]
        options = ["--interval", "1", "--port", str(free_port()), "--exec", "gpustat --color"]
        process = subprocess.Popen(
            [PEERS / "gpustat-web", *options, *hosts],
            env=dict(self.environment, USER=getpass.getuser()),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            time.sleep(SETTLE_SECONDS)
            before, memory = cpu_seconds([process.pid]), pss_bytes([process.pid])
            time.sleep(seconds)
            spent = cpu_seconds([process.pid]) - before
            return {"cpu": spent / seconds / len(hosts), "memory": memory}
        finally:
            process.terminate()
            process.wait(10)


async def hub(ports: list[int], nodes: int, seconds: float) -> None:
    fleet = Fleet()
    ssh = Ssh(SshSettings(config_files=(), system_known_hosts=()))
    supervisor = Supervisor(fleet, {SshTarget: ssh.stream})
    targets = [SshTarget(name=f"n{each}", host="127.0.0.1", port=ports[each % len(ports)]) for each in range(nodes)]
    for target in targets:
        fleet.place(Place(name=target.name))
    ticking = asyncio.create_task(_tick(fleet))
    # Everything that connecting adds, also what is paid once: an upper bound.
    before = pss_bytes([os.getpid()])
    supervisor.set_targets(targets)
    took = await _until_up(fleet, nodes)
    memory = (pss_bytes([os.getpid()]) - before) / nodes
    spent, began = time.process_time(), time.monotonic()
    await asyncio.sleep(seconds)
    cpu = (time.process_time() - spent) / (time.monotonic() - began) / nodes
    down = nodes - fleet.summary().nodes_up
    ticking.cancel()
    await supervisor.stop()
    await ssh.close()
    print(json.dumps({"cpu": cpu, "memory": memory, "down": down, "connected": took}))


async def _tick(fleet: Fleet) -> None:
    while True:
        fleet.tick()
        await asyncio.sleep(1)


async def _until_up(fleet: Fleet, count: int) -> float:
    began = time.monotonic()
    while fleet.summary().nodes_up < count:
        if time.monotonic() - began > 60:
            reasons = {f"{node.state}: {node.reason}" for node in fleet.nodes() if node.state != "up"}
            sys.exit(f"only {fleet.summary().nodes_up} of {count} nodes came up: {sorted(reasons)[:5]}")
        await asyncio.sleep(0.1)
    took = time.monotonic() - began
    await asyncio.sleep(SETTLE_SECONDS)
    return took


async def polls(ports: list[int]) -> None:
    async def poll(port: int) -> None:
        async with asyncssh.connect("127.0.0.1", port, config=None, compression_algs=None) as connection:
            ran = await connection.run("gpustat --color", check=True)
            assert ran.stdout

    await poll(ports[0])
    spent = time.process_time()
    for each in range(POLLS):
        await poll(ports[each % len(ports)])
    print((time.process_time() - spent) / POLLS)


def report(bench: Bench, nodes: int, ours: dict[str, float], poll: float, peer: dict[str, float]) -> bool:
    print(f"{nodes} real SSH connections to {SERVERS} servers, one line a second ({bench.bytes_a_line:.0f} bytes on")
    print("average, recorded from a probe with 8 GPUs and 16 processes), into one Fleet that ticks once a second\n")
    print("| way | hub's CPU ms/node/s | of ours | for 1,000 nodes | hub's kB/node |")
    print("|---|---|---|---|---|")
    rows = [
        ("gpulse", ours["cpu"], f"{ours['memory'] / 1e3:.0f}"),
        ("a connection per poll", poll, "–"),
        (f"gpustat-web ({PEER_HOSTS} hosts)", peer["cpu"], f"{peer['memory'] / 1e6:.0f} MB in all"),
    ]
    for name, cpu, memory in rows:
        print(f"| {name} | {cpu * 1e3:.3f} | {cpu / ours['cpu']:.1f} | {cpu * 1e5:.0f} % of a core | {memory} |")
    print(f"\nall {nodes} nodes were connected after {ours['connected']:.1f} s; {ours['down']} were down at the end")
    good = ours["down"] == 0
    for what, value, bar in (
        ("cores for 1,000 nodes", ours["cpu"] * 1000, CPU_BAR),
        ("kB a node", ours["memory"] / 1e3, MEMORY_BAR / 1e3),
    ):
        print(f"{what}: {value:.2f} (bar {bar:g}) {'met' if value <= bar else 'MISSED'}")
        good &= value <= bar
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description="What a node over SSH costs the hub.")
    parser.add_argument("--nodes", type=int, default=240)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--hub", help=argparse.SUPPRESS)
    parser.add_argument("--polls", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.hub:
        uvloop.run(hub(*json.loads(chosen.hub)))
        return 0
    if chosen.polls:
        uvloop.run(polls(json.loads(chosen.polls)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), SERVERS)
        try:
            ours = bench.ours(chosen.nodes, chosen.seconds)
            poll = bench.per_poll()
            peer = bench.gpustat_web(chosen.seconds)
        finally:
            bench.stop()
        return 0 if report(bench, chosen.nodes, ours, poll, peer) else 1


if __name__ == "__main__":
    sys.exit(main())
