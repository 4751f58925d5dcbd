"""Codes of links that are none, in the audit log: anybody can send them, so an address has one entry a minute."""

import time
from collections.abc import Callable

from gpulse.auth.audit import Audit
from gpulse.auth.identity import Identity

_SECONDS = 60.0
# So many addresses at a time have entries of their own; the rest share one.
_MOST = 100
_OTHERS = "other addresses"
_NOBODY = Identity(None, None, None, "anonymous", frozenset())


class RefusedLinks:
    """The first of an address is noted at once; those of each minute after it together, with how many they were."""

    def __init__(self, audit: Audit, clock: Callable[[], float] = time.time) -> None:
        self._audit = audit
        self._clock = clock
        # By address: when the last entry was written, and how many there were since.
        self._counts: dict[str, tuple[float, int]] = {}

    async def note(self, address: str, why: str) -> None:
        place = address if address in self._counts or len(self._counts) < _MOST else _OTHERS
        if place in self._counts:
            written, count = self._counts[place]
            self._counts[place] = (written, count + 1)
            return
        self._counts[place] = (self._clock(), 0)
        await self._audit.note(_NOBODY, place, "session.refuse", "", why=why, by="link")

    async def settle(self, *, ending: bool = False) -> None:
        """Writes down what a minute has brought; when the hub is ending, whatever there is."""
        now = self._clock()
        for place, (written, count) in list(self._counts.items()):
            if now - written < _SECONDS and not ending:
                continue
            if count == 0:
                del self._counts[place]
                continue
            self._counts[place] = (now, 0)
            await self._audit.note(_NOBODY, place, "session.refuse", "", by="link", times=count)
