"""How much a node may send, whichever way it comes."""

import time
from collections.abc import Callable

from gpulse.errors import NodeLost

MOST_BAD_LINES = 5
MOST_LINES_A_SECOND = 50
# A line of a very large node is some 100 kB.
MOST_BYTES_A_SECOND = 8 << 20
# A full Snapshot replaces all that is known of its node; small ones take a hundredth of the work of the largest.
MOST_WHOLES_A_SECOND = 5
LIGHT_WHOLE_BYTES = 1 << 16
LIGHT_WHOLE = 0.25
# So long a hub may stand still before agents give it up; then all lines of that time come at once, and are no flood.
STALL_SECONDS = 40.0
_MOST_WHOLES = MOST_WHOLES_A_SECOND + STALL_SECONDS
# Messages on a command's stderr: a login script that traces itself may write so much at once, a probe seldom a line.
MOST_MESSAGES_AT_ONCE = 5000
MOST_MESSAGE_BYTES_AT_ONCE = 1 << 20
MESSAGE_BYTES_A_SECOND = 1 << 16
SHORTEST_INTERVAL_SECONDS = 0.05
LONGEST_INTERVAL_SECONDS = 3600.0


class Budget:
    """What one node may still send: it grows with time, up to as much as may come at once."""

    __slots__ = ("_at", "_bytes", "_clock", "_lines", "_most_lines", "_wholes")

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._at = clock()
        self._most_lines = self._lines = MOST_LINES_A_SECOND + STALL_SECONDS
        self._bytes = float(MOST_BYTES_A_SECOND)
        self._wholes = _MOST_WHOLES

    def pace(self, interval: float) -> None:
        """So often its node tells something, in seconds."""
        most = MOST_LINES_A_SECOND + STALL_SECONDS / max(interval, SHORTEST_INTERVAL_SECONDS)
        # What it has spent stays spent, however often it changes its mind.
        self._lines += most - self._most_lines
        self._most_lines = most

    def spend(self, size: int, whole: bool) -> bool:
        """Whether a line of so many bytes is within it; `whole`: it is no update."""
        cost = 0.0 if not whole else LIGHT_WHOLE if size <= LIGHT_WHOLE_BYTES else 1.0
        if self._lines < 1 or self._bytes < size or self._wholes < cost:
            # Only now the clock is asked: most nodes never come here, and there is a line of each every second.
            self._grow()
            if self._lines < 1 or self._bytes < size or self._wholes < cost:
                return False
        self._lines -= 1
        self._bytes -= size
        self._wholes -= cost
        return True

    def _grow(self) -> None:
        now = self._clock()
        seconds, self._at = now - self._at, now
        self._lines = min(self._lines + MOST_LINES_A_SECOND * seconds, self._most_lines)
        self._bytes = min(self._bytes + MOST_BYTES_A_SECOND * seconds, float(MOST_BYTES_A_SECOND))
        self._wholes = min(self._wholes + MOST_WHOLES_A_SECOND * seconds, _MOST_WHOLES)


TOO_MUCH_WORDS = (
    f"more than {MOST_LINES_A_SECOND} lines, {MOST_WHOLES_A_SECOND} large snapshots or"
    f" {MOST_BYTES_A_SECOND >> 20} MB a second"
)


class Messages:
    """Limits what one command writes to stderr, in lines and bytes; raises NodeLost past that.

    Bytes are counted as they come, before anything is made of them: empty lines and a line without an end count too.
    """

    __slots__ = ("_at", "_bytes", "_clock", "_lines")

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._at = clock()
        self._lines = float(MOST_MESSAGES_AT_ONCE)
        self._bytes = float(MOST_MESSAGE_BYTES_AT_ONCE)

    def spend(self, data: bytes) -> None:
        now = self._clock()
        seconds, self._at = now - self._at, now
        self._lines = min(self._lines + MOST_LINES_A_SECOND * seconds, MOST_MESSAGES_AT_ONCE) - data.count(b"\n")
        self._bytes = min(self._bytes + MESSAGE_BYTES_A_SECOND * seconds, MOST_MESSAGE_BYTES_AT_ONCE) - len(data)
        if self._lines < 0 or self._bytes < 0:
            raise NodeLost(
                f"it floods stderr: more than {MOST_MESSAGES_AT_ONCE:,} lines or {MOST_MESSAGE_BYTES_AT_ONCE >> 20} MiB"
                " of messages",
                "see what its login scripts and its python3 write to stderr",
                "probe",
            )


class Tally:
    """How often something has happened within this second."""

    __slots__ = ("_clock", "_count", "_second")

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._second = clock()
        self._count = 0

    @property
    def count(self) -> int:
        if self._clock() - self._second >= 1.0:
            self._second = self._clock()
            self._count = 0
        return self._count

    def add(self, more: int = 1) -> int:
        """Count so many more; return how many there are with them."""
        self._count = self.count + more
        return self._count
