"""Tells the person at the terminal when nodes are lost and come back, without flooding them."""

import time
from collections.abc import Callable

from gpulse.transport.sink import Sink

# With thousands of nodes the page is the place to look; but what comes later is told again.
SENTENCES_A_MINUTE = 20


class Announcing:
    """A Sink that passes everything on."""

    def __init__(self, sink: Sink, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic):
        self._sink = sink
        self._say = say
        self._clock = clock
        self._lost: dict[str, str] = {}
        self._minute_ends = 0.0
        self._said = 0
        self._untold = 0

    def connecting(self, name: str, detail: str) -> None:
        self._sink.connecting(name, detail)
        self._tell_rest()

    def line(self, name: str, data: bytes) -> None:
        self._sink.line(name, data)
        self._tell_rest()
        if name in self._lost:
            del self._lost[name]
            self._tell(f"node {name} is up")

    def down(self, name: str, reason: str) -> None:
        self._sink.down(name, reason)
        self._tell_rest()
        if self._lost.get(name) != reason:
            self._lost[name] = reason
            self._tell(f"node {name} is down: {reason}")

    def log(self, name: str, message: str) -> None:
        self._sink.log(name, message)
        self._tell_rest()

    def _tell(self, sentence: str) -> None:
        now = self._clock()
        if now >= self._minute_ends:
            self._minute_ends = now + 60.0
            self._said = 0
        if self._said < SENTENCES_A_MINUTE:
            self._said += 1
            self._say(sentence)
        else:
            self._untold += 1

    def _tell_rest(self) -> None:
        """How much a minute that is over had more; whatever happens next, to any node, is the occasion."""
        if self._untold and self._clock() >= self._minute_ends:
            self._say(f"and {self._untold} more; the page and `gpulse nodes` show all")
            self._untold = 0
