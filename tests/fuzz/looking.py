"""Reads everything a fleet tells, as the page, the API and live frames do."""

import asyncio

import msgspec

from gpulse.api.access import NOBODY, NOTHING
from gpulse.api.bodies import Incoming
from gpulse.api.exposition import TEXT
from gpulse.api.get_status import get_status
from gpulse.api.hub import Hub
from gpulse.api.live_json import JsonSource
from gpulse.api.metrics import MetricsQuery, get_metrics
from gpulse.api.selection import matching, select
from gpulse.fleet.filter import parse
from gpulse.fleet.fleet import BadLine, Fleet
from gpulse.fleet.frames import Frames
from gpulse.fleet.places import Place
from gpulse.fleet.sight import Sight
from tests.api.people import open_access
from tests.fleet.lines import gpu, process, snapshot

BASE = snapshot(gpu(0), gpu(1), processes=[process(7, "GPU-0"), process(8, "GPU-1", user="bob")], node="x")
OTHER = BASE.replace(b"GPU-", b"GPU-y")
# One for all: to make one takes longer than to look.
_loop = asyncio.new_event_loop()
SIGHT = Sight("names", frozenset({"alice"}))
FILTER = parse('-user:bob util>=0 mem>1G "h100" node:x -flag:vanished,throttled', sight=SIGHT)


class Looking:
    """A fleet with a node whose lines are not to be trusted, and one that is as it should be."""

    def __init__(self) -> None:
        # Time stands still: on a busy machine nobody goes stale meanwhile.
        self.fleet = Fleet(clock=lambda: 5000.0, wall=lambda: 1000.0)
        self.fleet.place(Place(name="x"))
        self.fleet.place(Place(name="y"))
        self.fleet.line("x", BASE)
        self.fleet.line("y", OTHER)
        self._frames = Frames(self.fleet)
        self._hub = Hub(self.fleet, "test", list, open_access())
        self._json = JsonSource(self._hub, FILTER, "text", 100, SIGHT)

    def take(self, line: bytes) -> bool:
        """Whether the line was taken; whatever it is, nothing but BadLine may come of it, with words."""
        try:
            self.fleet.line("x", line)
        except BadLine as refused:
            assert str(refused)
            return False
        return True

    def look(self) -> None:
        fleet = self.fleet
        fleet.tick()
        self._frames.step(1000.0)
        assert self._frames.full().startswith(b"GPLS")
        self._frames.delta()
        for view in (
            fleet.nodes(),
            fleet.node("x", detail=True),
            fleet.gpus(),
            fleet.people(),
            fleet.summary(),
            fleet.log_of("x"),
        ):
            # Whoever asks gets JSON that can be read.
            msgspec.json.decode(msgspec.json.encode(view))
        _loop.run_until_complete(self._look_later())
        # Nobody else is worse off.
        other = fleet.node("y", detail=True)
        assert other is not None
        assert (other.state, len(other.processes or ())) == ("up", 2)
        assert [(each.id, each.people[0].person) for each in other.gpus] == [("GPU-y0", "alice"), ("GPU-y1", "bob")]
        assert [fleet.node_of_gpu(each.id) for each in other.gpus] == ["y", "y"]
        # An id is one GPU's.
        ids = [each.id for each in fleet.gpus()]
        assert len(set(ids)) == len(ids)
        assert max(map(len, ids)) < 300

    async def _look_later(self) -> None:
        async for node, gpus in matching(self.fleet, *await select(self.fleet, FILTER), SIGHT):
            msgspec.json.encode((node, gpus))
        incoming = Incoming(headers={}, media=TEXT, who=NOBODY, sight=NOTHING)
        await get_status(self._hub, None, {}, incoming)
        await get_metrics(self._hub, MetricsQuery(), {}, incoming)
        await self._json.step()
        msgspec.json.decode(self._json.full())
        msgspec.json.decode(self._json.delta() or "null")

    def recover(self) -> None:
        """A good line makes everything good."""
        assert self.take(BASE)
        self.fleet.tick()
        node = self.fleet.node("x", detail=True)
        assert node is not None
        assert (node.state, [each.id for each in node.gpus]) == ("up", ["GPU-0", "GPU-1"])
