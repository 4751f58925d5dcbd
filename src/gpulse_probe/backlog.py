"""What the hub missed while it was away, to be told later: bounded, and thinned out rather than cut off."""

from collections import namedtuple

MOST_BYTES = 1 << 20
MOST_SECONDS = 600.0

# A line of a tick: when it was taken (monotonic), and the whole Snapshot it builds on, which is the line itself where
# that is one.
Line = namedtuple("Line", "taken text whole")


class Backlog:
    """Lines by their age, the oldest first."""

    def __init__(self, most_bytes=MOST_BYTES, most_seconds=MOST_SECONDS):
        self._most_bytes = most_bytes
        self._most_seconds = most_seconds
        self._lines = []
        # Of the lines that come only every so many-th is kept, so that the whole time is told of equally well.
        self._stride = 1
        self._came = 0

    def __len__(self):
        return len(self._lines)

    @property
    def size(self):
        """Bytes held; many lines share one whole Snapshot."""
        wholes = {id(line.whole): len(line.whole) for line in self._lines}
        return sum(wholes.values()) + sum(len(line.text) for line in self._lines if line.text is not line.whole)

    def add(self, line):
        """Keep a line that is younger than all that are here."""
        if not self._lines:
            self._stride, self._came = 1, 0
        self._forget(line.taken)
        self._came += 1
        if self._came % self._stride == 0:
            self._lines.append(line)
            self._thin_out()

    def put_back(self, lines):
        """Lines that were taken, or sent otherwise, and did not arrive."""
        self._lines = sorted(list(lines) + self._lines, key=lambda line: line.taken)
        self._thin_out()

    def first(self, now):
        """The oldest line, None where there is none."""
        self._forget(now)
        return self._lines[0] if self._lines else None

    def take(self):
        """The oldest line, which is no longer here then."""
        return self._lines.pop(0)

    def _forget(self, now):
        kept = 0
        while kept < len(self._lines) and self._lines[kept].taken < now - self._most_seconds:
            kept += 1
        del self._lines[:kept]

    def _thin_out(self):
        while self._lines and self.size > self._most_bytes:
            # With one left this is the last resort.
            del self._lines[::2]
            self._stride *= 2
