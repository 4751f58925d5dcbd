"""Feeds a simulated cluster to whoever takes the lines of real nodes, from one task."""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

from gpulse.fleet.places import Place
from gpulse.simulate.cluster import Cluster, Condition
from gpulse.simulate.crowd import Crowd
from gpulse.transport.sink import Sink

# Up to so many nodes each lives a life of its own; beyond, it would cost more than the hub it is to load.
MOST_LIVED = 400
_SLICES = 25


class Scene(Protocol):
    """Nodes that move with the clock: advance() to a moment, then ask those that are up for their lines."""

    def places(self) -> list[Place]: ...

    def advance(self, now: float) -> None: ...

    def condition(self, name: str) -> Condition: ...

    def new_stream(self, name: str) -> None:
        """Whoever reads this node begins anew: its next line is a full one."""

    def line(self, name: str) -> bytes: ...


def scene(nodes: int, seed: int = 1, start: float | None = None) -> Scene:
    """A cluster of so many nodes, from now on unless told."""
    began = time.time() if start is None else start
    return Cluster(nodes, seed, began) if nodes <= MOST_LIVED else Crowd(nodes, seed, began)


class SimulatedTransport:
    """One line a second from every node, spread over the second as real nodes are."""

    def __init__(
        self,
        scene: Scene,
        sink: Sink,
        interval_seconds: float = 1.0,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._scene = scene
        self._sink = sink
        self._interval = interval_seconds
        self._wall = wall
        self._clock = clock
        names = [place.name for place in scene.places()]
        # Neighbours in the list fall into different slices, so that a rack does not move as one.
        self._slices = [names[first::_SLICES] for first in range(_SLICES)]
        self._told: dict[str, str] = {}

    async def run(self) -> None:
        """Until it is cancelled. Moments the loop was too late for are left out."""
        due = self._clock()
        number = 0
        while True:
            self.step(number)
            number = (number + 1) % _SLICES
            due = max(due + self._interval / _SLICES, self._clock() - self._interval)
            await asyncio.sleep(max(0.0, due - self._clock()))

    def step(self, number: int) -> None:
        """Send what the nodes of one slice have to say now."""
        self._scene.advance(self._wall())
        for name in self._slices[number]:
            self._tell(name)

    def _tell(self, name: str) -> None:
        state, reason = self._scene.condition(name)
        before = self._told.get(name)
        self._told[name] = state
        if state == "down":
            if before != "down":
                self._sink.down(name, reason)
        elif state == "up":
            if before in {None, "down"}:
                self._sink.connecting(name, "simulated")
                self._scene.new_stream(name)
            self._sink.line(name, self._scene.line(name))
