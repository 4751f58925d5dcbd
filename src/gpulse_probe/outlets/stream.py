"""Snapshots as lines on a descriptor, one a tick, until the reader goes away."""

import os
import select
import time

# A pipe that can be written to takes this much without blocking (PIPE_BUF).
_SAFE_WRITE = 4096


class ReaderGone(Exception):
    """Nobody reads any more: the end of the stream, not an error."""


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
                except (BrokenPipeError, ConnectionResetError):
                    raise ReaderGone()

    def sleep_until(self, moment):
        """Wait for a moment of the monotonic clock."""
        while True:
            left = moment - time.monotonic()
            if left <= 0:
                return
            if select.select(self._control, [], [], left)[0]:
                self._read_control()

    def _read_control(self):
        if not os.read(self._control[0], 4096):
            raise ReaderGone()


def run(render, stream, interval):
    """Write render() every `interval` seconds, on a fixed grid; ticks that were missed are left out."""
    due = time.monotonic()
    try:
        while True:
            stream.write(render())
            now = time.monotonic()
            due += interval * max(1, -(-(now - due) // interval))
            stream.sleep_until(due)
    except ReaderGone:
        return
