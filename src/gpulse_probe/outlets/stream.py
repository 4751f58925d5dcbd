"""Snapshots as lines on a descriptor, one a tick, until the reader goes away."""

import errno
import os
import select
import time

# A pipe that can be written to takes this much without blocking (PIPE_BUF).
_SAFE_WRITE = 4096
# The pipe, the connection or the terminal has no other end any more.
_GONE = (errno.EPIPE, errno.ECONNRESET, errno.EIO)


class ReaderGone(Exception):
    """Nobody reads any more: the end of the stream, not an error."""


class OutputFailed(Exception):
    """It cannot be written, such as to a full disk; the message says why."""


class Stream:
    """Writes to one descriptor; where `control` is given, its end (EOF) ends the stream too.

    A hub keeps the other end of `control` open as long as it wants the stream, so no probe outlives it.
    """

    def __init__(self, output, control=None):
        self._output = output
        self._control = [] if control is None else [control]

    def write(self, data):
        """Write it all; the control channel is watched meanwhile, so a reader that stalls can still end us."""
        view = memoryview(data)
        while view:
            readable, writable, _ = select.select(self._control, [self._output], [])
            if readable:
                self._read_control()
            if writable:
                try:
                    view = view[os.write(self._output, view[:_SAFE_WRITE]) :]
                except OSError as error:
                    if error.errno in _GONE:
                        raise ReaderGone()
                    if error.errno != errno.EAGAIN:
                        raise OutputFailed(error.strerror)

    def sleep_until(self, moment):
        """Wait for a moment of the monotonic clock."""
        while True:
            left = moment - time.monotonic()
            if left <= 0:
                return
            if select.select(self._control, [], [], left)[0]:
                self._read_control()

    def _read_control(self):
        try:
            received = os.read(self._control[0], 4096)
        except OSError as error:
            if error.errno not in _GONE:
                raise
            received = b""
        if not received:
            raise ReaderGone()


def run(render, stream, interval):
    """Write render() every `interval` seconds, on a fixed grid, until ReaderGone; missed ticks are left out."""
    due = time.monotonic()
    while True:
        stream.write(render())
        now = time.monotonic()
        due += interval * max(1, -(-(now - due) // interval))
        stream.sleep_until(due)
