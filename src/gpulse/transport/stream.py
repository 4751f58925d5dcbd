"""Cuts what a remote process prints into lines, in linear time: first what login scripts say, then the probe's."""

from collections.abc import Callable

from gpulse.errors import NodeLost
from gpulse_probe.boot import START_MARKER

# How a node's probe is run by a hub.
PROBE_OPTIONS = ("--stream", "--updates", "--until-eof")
LONGEST_LINE = 4 << 20
LONGEST_PREAMBLE = 1 << 20
# So much of what login scripts print is worth a place in the log.
KEPT_PREAMBLE = 8 << 10
# Of a command that answers in one line.
MOST_ANSWER_LINES = 100
_MARKER = f"\n{START_MARKER}\n".encode()


class Lines:
    """Calls `line` with each whole line after the start marker, and `started` once, when the marker has come.

    Raises NodeLost when a line, or what comes before the marker, has no end.
    """

    def __init__(self, line: Callable[[bytes], None], started: Callable[[str], None] | None = None) -> None:
        self._line = line
        self._started = started
        # The marker may be the very first line.
        self._before = bytearray(b"\n")
        self._before_size = 0
        # The beginning of a line whose end has not come yet.
        self._begun = bytearray()
        self._waiting = started is not None

    def feed(self, data: bytes) -> None:
        if self._waiting:
            data = self._preamble(data)
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._check(end - start)
            line = data[start:end]
            if self._begun:
                line = bytes(self._begun) + line
                self._begun = bytearray()
            # A copy of the rest for each line would make this quadratic.
            start = end + 1
            self._line(line)
        if start < len(data):
            self._check(len(data) - start)
            self._begun += data[start:]

    def _check(self, more: int) -> None:
        if len(self._begun) + more > LONGEST_LINE:
            raise NodeLost(
                f"it sent a line longer than {LONGEST_LINE >> 20} MiB", "look at what its probe prints", "probe"
            )

    def preamble(self) -> str:
        """What was printed before the marker, as far as it is kept."""
        return self._before[:KEPT_PREAMBLE].decode("utf-8", "replace").strip()

    def _preamble(self, data: bytes) -> bytes:
        searched = max(0, len(self._before) - len(_MARKER))
        self._before += data
        self._before_size += len(data)
        found = self._before.find(_MARKER, searched)
        if found >= 0:
            rest = bytes(self._before[found + len(_MARKER) :])
            del self._before[found:]
            self._waiting = False
            if self._started:
                self._started(self.preamble())
            self._before = bytearray()
            return rest
        if self._before_size > LONGEST_PREAMBLE:
            raise NodeLost(
                "its login scripts print without end",
                "make them print nothing where there is no terminal",
                "login",
            )
        surplus = len(self._before) - KEPT_PREAMBLE - 2 * len(_MARKER)
        if surplus > 0:
            # The beginning is kept for the log, the end for a marker that is still coming.
            del self._before[KEPT_PREAMBLE : KEPT_PREAMBLE + surplus]
        return b""


class FirstLine:
    """The answer of a command that prints one line. Raises NodeLost when the command prints line after line."""

    def __init__(self) -> None:
        self.line: bytes | None = None
        self._lines = 0

    def take(self, line: bytes) -> None:
        if self.line is None:
            self.line = line
        self._lines += 1
        if self._lines > MOST_ANSWER_LINES:
            raise NodeLost(
                f"it answered with more than {MOST_ANSWER_LINES} lines", "look at what its python3 prints", "probe"
            )
