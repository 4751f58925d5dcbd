"""One attempt at one node: its deadlines, and its lines on their way to the sink."""

import asyncio

from gpulse.errors import BadLine, NodeLost
from gpulse.transport.limits import MOST_BAD_LINES, MOST_BYTES_A_SECOND, MOST_LINES_A_SECOND
from gpulse.transport.sink import Sink

MOST_MESSAGES = 200
LONGEST_MESSAGE = 2000


class Feed:
    """What a transport is given for one attempt: it tells how far it is and hands over lines and messages.

    `deadline` is the timeout that the attempt runs in. It is always set: within() gives the next step its time,
    and after the first line every line prolongs it.
    """

    def __init__(self, name: str, sink: Sink, interval: float, silence: float, deadline: asyncio.Timeout) -> None:
        self.name = name
        self.interval = interval
        self.overdue = NodeLost("it did not answer in time")
        self.first_line_at: float | None = None
        self._sink = sink
        self._silence = silence
        self._deadline = deadline
        self._now = asyncio.get_running_loop().time
        self._renewed = 0.0
        self._bad_in_a_row = 0
        self._second, self._lines_this_second, self._bytes_this_second = 0, 0, 0
        # After a stall all lines of that time may come at once, and are no flood.
        self._most_lines = MOST_LINES_A_SECOND + 1.5 * silence / interval
        self._messages = 0

    def within(self, seconds: float, overdue: NodeLost) -> None:
        """The step that begins now may take so long; past it the attempt ends with `overdue`."""
        self.overdue = overdue
        self._deadline.reschedule(self._now() + seconds)

    def allow_silence(self, seconds: float) -> None:
        """Lines come more slowly than the target's interval: only so long a silence is a fault."""
        self._silence = max(self._silence, seconds)

    def connecting(self, detail: str) -> None:
        self._sink.connecting(self.name, detail)

    def log(self, message: str) -> None:
        self._messages += 1
        if self._messages <= MOST_MESSAGES:
            self._sink.log(self.name, message[:LONGEST_MESSAGE])
        elif self._messages == MOST_MESSAGES + 1:
            self._sink.log(self.name, "it says more than is kept here")

    def line(self, data: bytes) -> None:
        """Give a line to the sink. Raises NodeLost when the node sends too much or nothing that can be read."""
        now = self._now()
        if int(now) != self._second:
            self._second, self._lines_this_second, self._bytes_this_second = int(now), 0, 0
        self._lines_this_second += 1
        self._bytes_this_second += len(data)
        if self._lines_this_second > self._most_lines:
            raise NodeLost(f"it sends more than {self._most_lines:g} lines a second", "look at its probe", "probe")
        if self._bytes_this_second > MOST_BYTES_A_SECOND:
            raise NodeLost(f"it sends more than {MOST_BYTES_A_SECOND >> 20} MB a second", "look at its probe", "probe")
        try:
            self._sink.line(self.name, data)
        except BadLine as problem:
            self._bad_in_a_row += 1
            self.log(f"a line that cannot be read: {problem}")
            if self._bad_in_a_row >= MOST_BAD_LINES:
                raise NodeLost(
                    f"its last {MOST_BAD_LINES} lines cannot be read: {problem}", "see its log", "probe"
                ) from problem
            return
        self._bad_in_a_row = 0
        if self.first_line_at is None:
            self.first_line_at = now
        # A new timer for every line would cost more than the line.
        if now - self._renewed > self._silence / 16:
            self._renewed = now
            self.within(
                self._silence,
                NodeLost(
                    f"it has been silent for {self._silence:g} s: the connection is dropped",
                    "look whether the node hangs or the network lost it",
                    "probe",
                ),
            )
