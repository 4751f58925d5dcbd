"""Nodes that freeze, die, lie and flood, networks that are cut or fall silent, hubs that are killed: no other
node is delayed, and all come back."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from gpulse.transport.ssh import SshTarget
from gpulse.transport.supervisor import Pace
from tests.system.conftest import target
from tests.system.hub import SHORT_SILENCE, hub
from tests.system.proxy import Proxy
from tests.system.stalls import Stalls

# A hub of its own, which a test can kill: prints every node's name when its first line has come.
HUB = """
import asyncio, json, sys
from gpulse.transport.ssh import Ssh, SshSettings, SshTarget
from gpulse.transport.supervisor import Supervisor

class Sink:
    seen = set()
    def connecting(self, name, detail): pass
    def down(self, name, reason): print(json.dumps({"down": name, "reason": reason}), flush=True)
    def log(self, name, message): pass
    def line(self, name, data):
        json.loads(data)
        if name not in self.seen:
            self.seen.add(name)
            print(json.dumps({"up": name}), flush=True)

async def main():
    ports = json.loads(sys.argv[1])
    ssh = Ssh(SshSettings(config_files=(), system_known_hosts=()))
    supervisor = Supervisor(Sink(), {SshTarget: ssh.stream})
    supervisor.set_targets([SshTarget(name=str(port), host="127.0.0.1", port=port) for port in ports])
    await asyncio.Event().wait()

asyncio.run(main())
"""


def gaps(seen, name: str, since: float) -> float:
    """The longest time without a line of a node, since a moment; the machine's own stalls do not count."""
    times = [since, *(moment for moment in seen.times[name] if moment > since), time.monotonic()]
    # Each later by the stalls that followed it: between two of them is what passed without any.
    calm = [moment + seen.stalls.since(moment) for moment in times]
    return max(after - before for before, after in pairwise(calm))


def test_a_frozen_node_is_told_of_and_comes_back(serve, settings):
    bad, good = serve(), serve()

    async def run():
        async with hub(settings, target(bad, "bad"), target(good, "good"), pace=SHORT_SILENCE) as seen:
            await seen.up("bad", "good")
            began = time.monotonic()
            bad.signal(signal.SIGSTOP)
            await seen.until(lambda: seen.downs["bad"])
            assert "silent for 6 s" in seen.downs["bad"][0]
            # It still takes TCP connections, so that every try hangs in the login.
            await asyncio.sleep(2)
            assert gaps(seen, "good", began) < 5
            before = len(seen.lines["bad"])
            bad.signal(signal.SIGCONT)
            await seen.until(lambda: len(seen.lines["bad"]) > before, 15)

    asyncio.run(run())


def test_a_killed_probe_is_started_again(serve, settings):
    bad, good = serve(), serve()

    async def run():
        async with hub(settings, target(bad, "bad"), target(good, "good")) as seen:
            await seen.up("bad", "good")
            began = time.monotonic()
            bad.signal(signal.SIGKILL, bad.login_processes())
            await seen.until(lambda: seen.downs["bad"])
            await seen.up("bad")
            assert gaps(seen, "good", began) < 5
            return seen.downs["bad"][0]

    assert asyncio.run(run()).startswith("its probe ended")


def test_a_killed_sshd(serve, settings):
    bad, good = serve(), serve()

    async def run():
        async with hub(settings, target(bad, "bad"), target(good, "good")) as seen:
            await seen.up("bad", "good")
            began = time.monotonic()
            logins = set(bad.login_processes())
            bad.signal(signal.SIGKILL, [pid for pid in bad.everything() if pid not in logins])
            await seen.until(lambda: any("refuses connections" in reason for reason in seen.downs["bad"]))
            # Their sshd is gone, and with it their standard input.
            await seen.until(lambda: not bad.login_processes(), 10)
            bad.process.wait()
            bad.start()
            await seen.up("bad")
            assert gaps(seen, "good", began) < 5
            return seen.downs["bad"][0]

    assert asyncio.run(run()).startswith("the connection was lost")


@pytest.mark.parametrize("how", ["cut", "half-open"])
def test_a_network_that_fails(serve, settings, client, how):
    bad, good = serve(), serve()

    async def run():
        async with Proxy(bad.port) as proxy:
            client.known_hosts.open("a").write(f"[127.0.0.1]:{proxy.port} {bad.public_host_key}\n")
            far = SshTarget(name="bad", host="127.0.0.1", port=proxy.port, interval_seconds=0.5)
            async with hub(settings, far, target(good, "good"), pace=SHORT_SILENCE) as seen:
                await seen.up("bad", "good")
                began = time.monotonic()
                if how == "cut":
                    proxy.cut()
                else:
                    proxy.open.clear()
                took = await seen.until(lambda: seen.downs["bad"]) - seen.stalls.since(began)
                silent = time.monotonic() - seen.times["bad"][-1]
                assert gaps(seen, "good", began) < 5
                proxy.open.set()
                await seen.up("bad")
                return took, silent, seen.downs["bad"][0]

    took, silent, reason = asyncio.run(run())
    if how == "cut":
        assert took < 5
        assert reason.startswith("the connection was lost")
    else:
        assert silent > 5
        assert "silent for 6 s" in reason


def test_a_slow_network_is_no_fault(serve, settings, client):
    server = serve()

    async def run():
        async with Proxy(server.port) as proxy:
            proxy.bytes_per_second = 100_000
            client.known_hosts.open("a").write(f"[127.0.0.1]:{proxy.port} {server.public_host_key}\n")
            far = SshTarget(name="n0", host="127.0.0.1", port=proxy.port, interval_seconds=0.5)
            async with hub(settings, far) as seen:
                await seen.until(lambda: len(seen.lines["n0"]) >= 3, 20)
                return seen.downs["n0"]

    assert asyncio.run(run()) == []


@pytest.mark.parametrize(
    ("lie", "words"),
    [
        ("while :; do echo rubbish; sleep 0.01; done", "its last 5 lines cannot be read"),
        ("exec /usr/bin/yes '{}'", "lines a second"),
        ("exec /bin/cat /dev/zero", "longer than 4 MiB"),
    ],
)
def test_a_lying_probe(serve, settings, lie, words):
    good, bad = serve(), serve(python=None)
    bad.program("python3", f"echo; echo --gpulse-probe-start--; {lie}")

    async def run():
        async with hub(settings, target(good, "good")) as seen:
            await seen.up("good")
            began = time.monotonic()
            seen.set_targets([target(good, "good"), target(bad, "bad")])
            await seen.until(lambda: len(seen.downs["bad"]) >= 2, 15)
            assert gaps(seen, "good", began) < 5
            return seen.downs["bad"]

    reasons = asyncio.run(run())
    assert all(words in reason for reason in reasons)


def test_a_login_that_prints_without_end(serve, settings):
    server = serve(wrapper="exec /usr/bin/yes welcome")

    async def run():
        async with hub(settings, target(server)) as seen:
            await seen.until(lambda: seen.downs["n0"], 10)
            return seen.downs["n0"][0]

    assert asyncio.run(run()).startswith("its login scripts print without end")


def test_many_dead_nodes_delay_none(serve, settings):
    good, frozen = serve(), serve()

    async def run_alone():
        async with hub(settings, target(good, "good"), pace=Pace()) as seen:
            return await seen.until(lambda: seen.lines["good"], 60)

    alone = asyncio.run(run_alone())
    frozen.signal(signal.SIGSTOP)
    dead = [target(frozen, f"frozen{number}") for number in range(100)]
    dead += [SshTarget(name=f"lost{number}", host=f"no-such-host-{number}.invalid") for number in range(50)]
    dead += [SshTarget(name=f"away{number}", host=f"192.0.2.{number}") for number in range(1, 50)]

    async def run():
        # A pace as in life: a hundred hanging logins take their turns.
        async with hub(settings, *dead, target(good, "good"), pace=Pace()) as seen:
            took = await seen.until(lambda: seen.lines["good"], 60)
            began = time.monotonic()
            await asyncio.sleep(4)
            return took, gaps(seen, "good", began)

    took, longest = asyncio.run(run())
    # On a busy machine a login takes longer, also without the others.
    assert took < max(10, 2 * alone)
    assert longest < 5


def start_hub(client, ports: list[int]) -> subprocess.Popen[str]:
    environment = dict(os.environ, HOME=str(client.home))
    return subprocess.Popen(
        [sys.executable, "-c", HUB, json.dumps(ports)], env=environment, stdout=subprocess.PIPE, text=True
    )


def wait_for_all(process: subprocess.Popen[str], count: int) -> float:
    began, up = time.monotonic(), set()
    assert process.stdout
    while len(up) < count:
        line = json.loads(process.stdout.readline())
        assert "up" in line, line
        up.add(line["up"])
    return time.monotonic() - began


def gone_in_10_seconds(gone: Callable[[], bool], since: float, stalls: Stalls) -> None:
    while not gone():
        assert time.monotonic() - since - stalls.since(since) < 10
        time.sleep(0.05)


def test_a_killed_hub_leaves_nothing_and_the_next_has_all_nodes_in_10_seconds(serve, client):
    servers = [serve() for _ in range(4)]
    ports = [server.port for server in servers]
    process = start_hub(client, ports)
    try:
        first = wait_for_all(process, len(ports))
        assert all(server.login_processes() for server in servers)
        old = {pid for server in servers for pid in server.login_processes()}
        with Stalls() as stalls:
            process.kill()
            process.wait()
            killed = time.monotonic()
            again = start_hub(client, ports)
            try:
                # On a busy machine Python and four logins take longer, also when no hub was killed before.
                assert wait_for_all(again, len(ports)) < max(10, 2 * first)
                gone_in_10_seconds(lambda: not any(Path(f"/proc/{pid}").exists() for pid in old), killed, stalls)
            finally:
                again.kill()
                again.wait()
            ended = time.monotonic()
            gone_in_10_seconds(lambda: not any(server.login_processes() for server in servers), ended, stalls)
    finally:
        process.kill()
        process.wait()


def test_a_hub_that_does_not_read_does_not_hold_its_probes_alive(serve, client):
    server = serve()
    process = start_hub(client, [server.port])
    try:
        wait_for_all(process, 1)
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(2)
    finally:
        process.kill()
        process.wait()
    with Stalls() as stalls:
        gone_in_10_seconds(lambda: not server.login_processes(), time.monotonic(), stalls)


def test_the_pace_of_the_tests_is_quicker_than_life():
    assert SHORT_SILENCE.silence_seconds < Pace().silence_seconds == 10.0
    assert Pace().silence_intervals == 5
