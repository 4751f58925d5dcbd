"""One node's connection: its lines on their way to the fleet, and how much of what it may send."""

from collections.abc import Callable
from typing import Protocol

import msgspec

from gpulse.errors import BadLine
from gpulse.fleet.counters import Counters
from gpulse.fleet.late import Late
from gpulse.fleet.updates import UPDATE
from gpulse.transport.limits import (
    LONGEST_INTERVAL_SECONDS,
    MOST_BAD_LINES,
    SHORTEST_INTERVAL_SECONDS,
    TOO_MUCH_WORDS,
    Budget,
)
from gpulse.transport.sink import Sink
from gpulse.transport.snapshot_head import read_head

MALFORMED, REVOKED, OTHER_NODE, SILENT, TAKEN_OVER, OTHER_WAY, TOO_MUCH = 4400, 4401, 4403, 4408, 4409, 4410, 4429
SILENCE_SECONDS = 10.0
SILENCE_INTERVALS = 5.0
ALIVE_SECONDS = 3.0
ALIVE_INTERVALS = 3.0
LATE_SECONDS = 3.0
LATE_INTERVALS = 3.0


class Line(Protocol):
    """The hub's end of a connection."""

    def send(self, text: str) -> None: ...

    def close(self, code: int, reason: str) -> None:
        """End it with words."""


class Token(Protocol):
    """What the agent connected with."""

    @property
    def id(self) -> str: ...

    @property
    def node(self) -> str: ...


def checked_head(name: str, data: bytes) -> float | None:
    """The interval a full Snapshot tells; BadLine where it is none, OtherNode where it is of another node."""
    if data.startswith(UPDATE):
        raise BadLine("it is an update, and no full snapshot came before it")
    try:
        head = read_head(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadLine(str(error)) from None
    if head.node is None:
        raise BadLine("it does not say of which node it is")
    if head.node != name:
        raise OtherNode(
            f"the token is that of {name} and the snapshot says it is {head.node!r:.100}; start the agent with"
            f" --node {name}, or make a token for the other name"
        )
    return head.interval_seconds


class OtherNode(BadLine):
    """A snapshot of another node than the token's."""


class Connection:
    """Takes the messages of one agent. It ends the connection itself when they are wrong or too many."""

    __slots__ = (
        "_bad",
        "_begun",
        "_budget",
        "_counters",
        "_ended",
        "_gone",
        "_heard",
        "_interval",
        "_late",
        "_late_quiet",
        "_late_seen",
        "_line",
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
        budget: Budget,
        gone: Callable[["Connection", str], None],
    ):
        self.token = token
        self.name = token.node
        self.instance = instance
        self.peer = peer
        self._line = line
        self._sink = sink
        self._counters = counters
        self._budget = budget
        self._gone = gone
        self._begun = False
        self._ended = False
        self._bad = 0
        # In this second.
        self._heard = False
        # Seconds without a line.
        self._silent = 0
        self._interval = 1.0
        self._late: Late | None = None
        # As counted a second ago, and for how many seconds there were no more.
        self._late_seen = 0
        self._late_quiet = 0

    def alive(self) -> bool:
        """Whether it has sent a moment ago, so that a second agent of this name is one too many."""
        return self._silent <= max(ALIVE_SECONDS, ALIVE_INTERVALS * self._interval)

    def binary(self, data: bytes) -> None:
        """A live line."""
        if self._ended:
            return
        self._heard = True
        whole = not data.startswith(UPDATE)
        if not self._budget.spend(len(data), whole):
            self.refuse(TOO_MUCH, TOO_MUCH_WORDS)
            return
        try:
            if whole or not self._begun:
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
            told = checked_head(self.name, data) or 1.0
        except BadLine:
            self._counters.bad_lines += 1
            raise
        self._interval = min(max(told, SHORTEST_INTERVAL_SECONDS), LONGEST_INTERVAL_SECONDS)
        self._budget.pace(self._interval)
        self._begun = True

    def text(self, data: bytes) -> None:
        """A late line."""
        if self._ended:
            return
        self._heard = True
        if not self._budget.spend(len(data), not data.startswith(UPDATE)):
            self.refuse(TOO_MUCH, TOO_MUCH_WORDS)
            return
        if self._late is None:
            self._late = Late(self.name)
        try:
            self._late.take(data)
        except BadLine as problem:
            self._counters.bad_lines += 1
            self.refuse(MALFORMED, f"a late line that cannot be read: {problem}")
        else:
            self._counters.late_lines += 1

    def second(self) -> None:
        """A second has passed."""
        self._silent = 0 if self._heard else self._silent + 1
        self._heard = False
        if self._late is not None and self._late.lines:
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
        """Once no more of them come; a node sends them only when it ticks."""
        if late.lines != self._late_seen:
            self._late_seen, self._late_quiet = late.lines, 0
            return
        self._late_quiet += 1
        if self._late_quiet > max(LATE_SECONDS, LATE_INTERVALS * self._interval):
            seconds = late.last - late.first
            self._sink.log(self.name, f"{late.lines} lines of {seconds:.0f} s without the hub came later")
            late.told()
            self._late_seen = 0
