"""Which nodes have a disk that is nearly full: looked for seldom, as it means to look at all of them."""

import asyncio
import time

from gpulse.api.turns import Turn
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.fullness import is_full

KEPT_SECONDS = 30.0


class Fullness:
    """One search for all who ask."""

    def __init__(self, fleet: Fleet):
        self._fleet = fleet
        self._found: frozenset[str] = frozenset()
        self._until = float("-inf")
        self._search: asyncio.Task[frozenset[str]] | None = None

    async def nodes(self) -> frozenset[str]:
        if time.monotonic() < self._until:
            return self._found
        if self._search is None:
            self._search = asyncio.create_task(self._look())
            self._search.add_done_callback(self._done)
        # Who goes away does not take it from the others.
        return await asyncio.shield(self._search)

    async def _look(self) -> frozenset[str]:
        turn = Turn()
        found = set()
        ratio = self._fleet.settings.thresholds.full_disk_ratio
        for node in self._fleet.roster().nodes:
            if is_full(node, ratio):
                found.add(node.place.name)
            await turn.give()
        return frozenset(found)

    def _done(self, search: "asyncio.Task[frozenset[str]]") -> None:
        self._search = None
        if not search.cancelled() and search.exception() is None:
            self._found, self._until = search.result(), time.monotonic() + KEPT_SECONDS
