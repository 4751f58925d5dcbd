"""One node's connection: its lines on their way to the fleet, and how much of what it may send."""

from collections.abc import Callable
from typing import Protocol

import msgspec

from gpulse.errors import BadLine
from gpulse.fleet.counters import Counters
from gpulse.fleet.late import Late
from gpulse.transport.sink import Sink

REVOKED, OTHER_NODE, TAKEN_OVER, MALFORMED, TOO_MUCH, OTHER_WAY, SILENT = 4401, 4403, 4409, 4400, 4429, 4409, 4408
MOST_BAD_LINES = 5
MOST_LINES_A_SECOND = 50
MOST_BYTES_A_SECOND = 8 << 20
SILENCE_SECONDS = 10.0
SILENCE_INTERVALS = 5.0
ALIVE_SECONDS = 3.0
ALIVE_INTERVALS = 3.0
_UPDATE = b'{"update":'


class Line(Protocol):
    """The hub's end of the connection."""

    def close(self, code: int, reason: str) -> None: ...


class Token(Protocol):
    """What the agent connected with."""

    @property
    def id(self) -> str: ...

    @property
    def node(self) -> str: ...


class _Probe(msgspec.Struct):
    interval_seconds: float | None = None


class _Head(msgspec.Struct):
    """What a full Snapshot says of its node and its pace."""

    node: str | None = None
    probe: _Probe | None = None


_decode_head = msgspec.json.Decoder(_Head).decode


def checked_head(name: str, data: bytes) -> float | None:
    """The interval a full Snapshot tells; BadLine where it is none, OtherNode where it is of another node."""
    if data.startswith(_UPDATE):
        raise BadLine("it is an update, and no full snapshot came before it")
    try:
        head = _decode_head(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadLine(str(error)) from None
    if head.node is None:
        raise BadLine("it does not say of which node it is")
    if head.node != name:
        raise OtherNode(
            f"the token is that of {name} and the snapshot says it is {head.node!r:.100}; start the agent with"
            f" --node {name}, or make a token for the other name"
        )
    return head.probe.interval_seconds if head.probe else None


class OtherNode(BadLine):
    """A snapshot of another node than the token's."""


class Connection:
    """Takes the messages of one agent. It ends the connection itself when they are wrong or too many."""

    __slots__ = (
        "_bad",
        "_begun",
        "_bytes",
        "_counters",
        "_ended",
        "_gone",
        "_interval",
        "_late",
        "_late_told",
        "_line",
        "_lines",
        "_most_lines",
        "_silent",
        "_sink",
        "instance",
        "name",
        "peer",
        "token",
    )

    def __init__(
        self,
        token: Token,
        instance: str,
        peer: str,
        line: Line,
        sink: Sink,
        counters: Counters,
        gone: Callable[["Connection", str], None],
    ):
        self.token = token
        self.name = token.node
        self.instance = instance
        self.peer = peer
        self._line = line
        self._sink = sink
        self._counters = counters
        self._gone = gone
        self._begun = False
        self._ended = False
        self._bad = 0
        # In this second.
        self._lines = 0
        self._bytes = 0
        # Seconds without a line.
        self._silent = 0
        self._interval = 1.0
        self._most_lines = float(MOST_LINES_A_SECOND)
        self._late: Late | None = None
        self._late_told = 0

    def alive(self) -> bool:
        """Whether it has sent a moment ago, so that a second agent of this name is one too many."""
        return self._silent <= max(ALIVE_SECONDS, ALIVE_INTERVALS * self._interval)

    def binary(self, data: bytes) -> None:
        """A live line."""
        if self._ended:
            return
        self._lines += 1
        self._bytes += len(data)
        if self._lines > self._most_lines or self._bytes > MOST_BYTES_A_SECOND:
            self.refuse(TOO_MUCH, f"more than {self._most_lines:.0f} lines or {MOST_BYTES_A_SECOND >> 20} MB a second")
            return
        try:
            if not self._begun or not data.startswith(_UPDATE):
                self._begin(data)
            self._sink.line(self.name, data)
        except OtherNode as problem:
            self.refuse(OTHER_NODE, str(problem))
        except BadLine as problem:
            self._bad += 1
            self._sink.log(self.name, f"a line that cannot be read: {problem}")
            if self._bad >= MOST_BAD_LINES:
                self.refuse(MALFORMED, f"{MOST_BAD_LINES} lines in a row cannot be read: {problem}")
        else:
            self._bad = 0

    def _begin(self, data: bytes) -> None:
        """A full Snapshot: whose it is, and how often its node will tell."""
        try:
            self._interval = min(max(checked_head(self.name, data) or 1.0, 0.05), 3600.0)
        except BadLine:
            self._counters.bad_lines += 1
            raise
        # After a stall all lines of that time come at once, and are no flood.
        self._most_lines = MOST_LINES_A_SECOND + SILENCE_SECONDS / self._interval
        self._begun = True

    def text(self, data: bytes) -> None:
        """A late line."""
        if self._ended:
            return
        self._lines += 1
        self._bytes += len(data)
        if self._late is None:
            self._late = Late(self.name)
        try:
            if self._lines > self._most_lines or self._bytes > MOST_BYTES_A_SECOND:
                raise BadLine("too much of it at once")
            self._late.take(data)
        except BadLine as problem:
            self._counters.bad_lines += 1
            self.refuse(MALFORMED, f"a late line that cannot be read: {problem}")
        else:
            self._counters.late_lines += 1

    def second(self) -> None:
        """A second has passed."""
        self._silent = 0 if self._lines else self._silent + 1
        self._lines = self._bytes = 0
        if self._late is not None:
            self._tell_late(self._late)
        if self._silent > max(SILENCE_SECONDS, SILENCE_INTERVALS * self._interval):
            self.refuse(SILENT, f"it has been silent for {self._silent} s")

    def end(self, code: int, reason: str) -> None:
        """Disconnect it; the fleet hears nothing of it from here."""
        self._ended = True
        self._line.close(code, reason)

    def gone(self, code: int, reason: str) -> None:
        """The connection ended by itself."""
        if not self._ended:
            self._ended = True
            words = f"{reason} ({code})" if reason else f"code {code}"
            if code in (1000, 1001):
                words = "its agent was stopped"
            elif code == 1006:
                words = f"it was cut off{': ' + reason if reason else ''}"
            self._gone(self, f"its agent's connection ended: {words}; on the node: gpulse agent status")

    def refuse(self, code: int, reason: str) -> None:
        """Disconnect it, and its node is down."""
        self.end(code, reason)
        self._gone(self, f"its agent was disconnected: {reason}")

    def _tell_late(self, late: Late) -> None:
        """Once no more of them come."""
        if late.lines != self._late_told:
            self._late_told = late.lines
            return
        if late.first is not None:
            seconds = late.last - late.first
            self._sink.log(self.name, f"{late.lines} lines of {seconds:.0f} s without the hub came later")
        self._late, self._late_told = None, 0
