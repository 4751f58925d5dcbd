"""One task a node: connects, listens, waits and begins again, so that no node can delay another."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol

import msgspec

from gpulse.errors import NodeLost
from gpulse.transport.feed import Feed
from gpulse.transport.sink import Sink

_log = logging.getLogger(__name__)
_jitter = random.uniform


class Target(Protocol):
    """A node and how it is reached; equal targets are the same connection."""

    @property
    def name(self) -> str: ...

    @property
    def interval_seconds(self) -> float: ...


# Connects to a target and feeds its lines until that ends: raises NodeLost with the reason. When it is cancelled
# it leaves nothing behind, within a second or so.
Way = Callable[[Any, Feed], Awaitable[None]]


class Pace(msgspec.Struct, frozen=True):
    """How patient the supervisor is."""

    first_pause_seconds: float = 1.0
    longest_pause_seconds: float = 60.0
    # After so long of good data a failure counts as the first again.
    good_seconds: float = 60.0
    silence_seconds: float = 10.0
    silence_intervals: float = 5.0
    # Many nodes begin within this time, a few at once.
    spread_seconds: float = 2.0
    stop_seconds: float = 4.0


class Supervisor:
    def __init__(self, sink: Sink, ways: Mapping[type, Way], pace: Pace | None = None) -> None:
        self._sink = sink
        self._ways = ways
        self._pace = pace or Pace()
        self._tasks: dict[str, tuple[Target, asyncio.Task[None]]] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def set_targets(self, targets: Iterable[Target]) -> None:
        """From now on these nodes: new ones are begun, missing ones ended, changed ones begun again."""
        wanted = {target.name: target for target in targets}
        for name, (target, task) in list(self._tasks.items()):
            if wanted.get(name) != target:
                del self._tasks[name]
                self._end(task)
        new = [target for name, target in wanted.items() if name not in self._tasks]
        spread = min(self._pace.spread_seconds, len(new) / 100)
        for target in new:
            task = asyncio.create_task(self._keep(target, _jitter(0, spread)), name=f"node {target.name}")
            self._tasks[target.name] = (target, task)

    async def stop(self) -> None:
        """End every node's task; returns when their connections are gone, or gives up on them."""
        self.set_targets([])
        if self._ending:
            _done, late = await asyncio.wait(self._ending, timeout=self._pace.stop_seconds)
            if late:
                _log.warning("%d connections did not end in time", len(late))

    def _end(self, task: asyncio.Task[None]) -> None:
        task.cancel()
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _keep(self, target: Target, delay: float) -> None:
        await asyncio.sleep(delay)
        pause = 0.0
        while True:
            lasted = await self._attempt(target)
            pause = self._next_pause(pause, lasted)
            await asyncio.sleep(pause * _jitter(0.75, 1.25))

    def _next_pause(self, pause: float, lasted: float) -> float:
        if not pause or lasted >= self._pace.good_seconds:
            return self._pace.first_pause_seconds
        return min(2 * pause, self._pace.longest_pause_seconds)

    async def _attempt(self, target: Target) -> float:
        """Connect and listen until that ends; how long there were data, in seconds."""
        clock = asyncio.get_running_loop().time
        silence = max(self._pace.silence_seconds, self._pace.silence_intervals * target.interval_seconds)
        feed: Feed | None = None
        try:
            async with asyncio.timeout(silence) as deadline:
                feed = Feed(target.name, self._sink, target.interval_seconds, silence, deadline)
                await self._ways[type(target)](target, feed)
            reason = "its stream ended"
        except TimeoutError:
            reason = str(feed.overdue) if feed else "it did not answer in time"
        except NodeLost as problem:
            reason = str(problem)
        except Exception as problem:  # noqa: BLE001 - whatever goes wrong with one node is its trouble alone
            _log.exception("node %s: its connection ended by a fault of gpulse", target.name)
            reason = f"a fault of gpulse: {type(problem).__name__}: {problem}"
        self._sink.log(target.name, reason)
        self._sink.down(target.name, reason)
        if feed is None or feed.first_line_at is None:
            return 0.0
        return clock() - feed.first_line_at
