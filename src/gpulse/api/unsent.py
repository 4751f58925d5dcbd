"""Ends connections whose peers do not read what they asked for, so that unread answers take no memory."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from typing import Protocol

LOOK_SECONDS = 5.0
# A peer that takes less than LEAST_BYTES in so long does not read.
STALLED_SECONDS = 30.0
LEAST_BYTES = 4096
# More may only wait when a whole new answer or frame was written, which happens once the one before has gone.
MOST_ADDED = 1 << 16

_log = logging.getLogger(__name__)


class Connection(Protocol):
    """A protocol of the web server, from its first byte until its transport is gone."""

    @property
    def transport(self) -> asyncio.WriteTransport: ...


class Unsent:
    """Looks at the write buffers of all connections: HTTP, live streams and agents alike, also while they close."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        # How much waited when somebody was last seen to read, and when that was.
        self._seen: dict[Connection, tuple[int, float]] = {}

    def look(self, connections: Iterable[Connection]) -> int:
        """End those that have not read for a while; return how many."""
        now = self._clock()
        seen: dict[Connection, tuple[int, float]] = {}
        ended = 0
        for connection in tuple(connections):
            size = connection.transport.get_write_buffer_size()
            if not size:
                continue
            before, since = self._seen.get(connection, (size, now))
            if not before - LEAST_BYTES < size <= before + MOST_ADDED:
                before, since = size, now
            if now - since >= STALLED_SECONDS:
                connection.transport.abort()
                ended += 1
            else:
                seen[connection] = (before, since)
        self._seen = seen
        if ended:
            _log.warning(
                "ended %d connections whose peers have not read their answers for %g s", ended, STALLED_SECONDS
            )
        return ended
