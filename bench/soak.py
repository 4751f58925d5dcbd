"""Whether the hub's memory stays flat: 1,000 nodes that push for an hour, one in twenty of them flapping.

    python -m bench.soak [--nodes 1000] [--minutes 60]

Flapping nodes are cut off, say goodbye, fall silent or send garbage, and come back some seconds later, all the time;
people come and go as well. Memory is the hub's resident set, read every half minute.
"""

import argparse
import asyncio
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

import uvloop

from bench.ingest import HubProcess, crowd_of
from bench.pushers import Agent, Listener, Refused, tokens_of
from gpulse.simulate.crowd import Crowd

FLAPPING = 0.05
SLICES = 20
# The first minutes are not counted: caches fill, and the collector's generations settle.
SETTLE_SHARE = 0.25
# Growth over the counted time that is still called flat.
FLAT = 0.03


class Flapper:
    """A node that comes and goes."""

    def __init__(self, name: str, chance: random.Random):
        self.name = name
        self.agent: Agent | None = None
        self.returns_at = 0.0
        self._chance = chance

    def step(self, crowd: Crowd, now: float) -> None:
        """Send, or leave in one of several ways."""
        agent = self.agent
        if agent is None:
            return
        if agent.transport.is_closing():
            self._leave(now)
            return
        if self._chance.random() > 0.1:
            agent.send(crowd.line(self.name))
            return
        way = self._chance.randrange(4)
        if way == 0:
            agent.transport.abort()
        elif way == 1:
            agent.goodbye()
        elif way == 2:
            agent.send(b'{"update":1,"seq":')
            return
        # Way 3: it falls silent with an open connection, which the hub must end; the next one takes its place.
        self._leave(now)

    def _leave(self, now: float) -> None:
        self.agent = None
        self.returns_at = now + self._chance.uniform(2, 20)


async def _open(hub: HubProcess, tokens: dict[str, str], crowd: Crowd, name: str) -> Agent:
    loop = asyncio.get_running_loop()
    opened = loop.create_future()
    await loop.create_connection(lambda: Agent(name, tokens[name], hub.port, opened), "127.0.0.1", hub.port)
    agent = await opened
    crowd.new_stream(name)
    agent.send(crowd.line(name))
    return agent


class Soak:
    def __init__(self, hub: HubProcess, nodes: int, minutes: float):
        self._hub = hub
        self._minutes = minutes
        self._chance = random.Random(1)  # noqa: S311 - it only has to flap
        self._crowd = crowd_of(nodes)
        self._tokens = tokens_of(hub.tokens)
        self._names = [place.name for place in self._crowd.places()]
        self.memory: list[tuple[float, int]] = []
        self.returns = 0
        self.refused = 0

    async def run(self) -> None:
        flapping = self._names[:: round(1 / FLAPPING)]
        steady = [await self._connect(name) for name in self._names if name not in set(flapping)]
        flappers = [Flapper(name, self._chance) for name in flapping]
        began = time.monotonic()
        watching = asyncio.create_task(self._watch())
        slices = [(steady[n::SLICES], flappers[n::SLICES]) for n in range(SLICES)]
        due, number, measured = began, 0, began
        cpu = self._hub.cpu_seconds()
        while (now := time.monotonic()) < began + 60 * self._minutes:
            self._crowd.advance(time.time())
            agents, some = slices[number]
            for agent in agents:
                assert not agent.transport.is_closing(), f"{agent.name} was disconnected"
                agent.send(self._crowd.line(agent.name))
            for flapper in some:
                flapper.step(self._crowd, now)
                if flapper.agent is None and now >= flapper.returns_at:
                    await self._return(flapper, now)
            if now >= measured + 30:
                measured = now
                self.memory.append((now - began, self._hub.resident_bytes()))
                minute, size = (now - began) / 60, self.memory[-1][1]
                print(f"{minute:6.1f} min  {size / 1e6:7.1f} MB  {self.returns} returns", flush=True)
            number = (number + 1) % SLICES
            due = max(due + 1 / SLICES, now - 1)
            await asyncio.sleep(max(0.0, due - time.monotonic()))
        self.cpu = (self._hub.cpu_seconds() - cpu) / (time.monotonic() - began)
        watching.cancel()

    async def _connect(self, name: str) -> Agent:
        return await _open(self._hub, self._tokens, self._crowd, name)

    async def _return(self, flapper: Flapper, now: float) -> None:
        try:
            flapper.agent = await self._connect(flapper.name)
            self.returns += 1
        except Refused:
            # Its former connection is not known to be dead yet: 409, as an agent would see it.
            self.refused += 1
            flapper.returns_at = now + self._chance.uniform(1, 5)

    async def _watch(self) -> None:
        """People who open the page and go."""
        loop = asyncio.get_running_loop()
        while True:
            transport, _ = await loop.create_connection(lambda: Listener(self._hub.port), "127.0.0.1", self._hub.port)
            await asyncio.sleep(self._chance.uniform(1, 10))
            transport.abort()


def report(nodes: int, minutes: float) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        hub = HubProcess(Path(folder), nodes, pinned=False)
        try:
            soak = Soak(hub, nodes, minutes)
            uvloop.run(soak.run())
        finally:
            hub.end()
    counted = [(at, size) for at, size in soak.memory if at >= SETTLE_SHARE * 60 * minutes]
    third = max(1, len(counted) // 3)
    first = statistics.fmean(size for _, size in counted[:third])
    last = statistics.fmean(size for _, size in counted[-third:])
    growth = last / first - 1
    print(
        f"\n{nodes} nodes, {minutes:g} min, {soak.returns} returns of flapping nodes "
        f"({soak.refused} refused at first): {first / 1e6:.1f} MB in the first third after settling, "
        f"{last / 1e6:.1f} MB in the last: {growth:+.2%} "
        f"(bar {FLAT:+.0%}) {'flat' if growth <= FLAT else 'GROWS'}; {soak.cpu:.1%} of a core"
    )
    return growth <= FLAT


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Whether the hub's memory stays flat.")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=60.0)
    arguments = parser.parse_args()
    sys.exit(0 if report(arguments.nodes, arguments.minutes) else 1)
