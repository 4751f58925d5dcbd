"""Tells the person at the terminal when nodes are lost and come back, without flooding them."""

from collections.abc import Callable

from gpulse.transport.sink import Sink

# With thousands of nodes the page is the place to look.
MOST_SENTENCES = 200


class Announcing:
    """A Sink that passes everything on."""

    def __init__(self, sink: Sink, say: Callable[[str], None]):
        self._sink = sink
        self._say = say
        self._lost: dict[str, str] = {}
        self._said = 0

    def connecting(self, name: str, detail: str) -> None:
        self._sink.connecting(name, detail)

    def line(self, name: str, data: bytes) -> None:
        self._sink.line(name, data)
        if name in self._lost:
            del self._lost[name]
            self._tell(f"node {name} is up")

    def down(self, name: str, reason: str) -> None:
        self._sink.down(name, reason)
        if self._lost.get(name) != reason:
            self._lost[name] = reason
            self._tell(f"node {name} is down: {reason}")

    def log(self, name: str, message: str) -> None:
        self._sink.log(name, message)

    def _tell(self, sentence: str) -> None:
        self._said += 1
        if self._said <= MOST_SENTENCES:
            self._say(sentence)
        if self._said == MOST_SENTENCES:
            self._say("more is not told here; the page and `gpulse nodes` show all")
