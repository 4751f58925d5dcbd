"""Runs commands that may hang: with a deadline, and without waiting for what cannot be killed."""

import errno
import os
import select
import signal
import subprocess
import time
from collections import namedtuple

from gpulse_probe.parent_death import end_with

Ran = namedtuple("Ran", "code output")
_MOST_OUTPUT_BYTES = 32 << 20


class DeadlinePassed(OSError):
    """A command did not end in its time; it was killed, or left behind where it could not be."""


class StillStuck(DeadlinePassed):
    """An earlier command cannot be killed, so no other is started."""


class Commands:
    def __init__(self, start_of):
        """start_of(pid): when a living process was started, None where there is none."""
        self._start_of = start_of
        self._left_behind = []

    def run(self, command, seconds, page):
        """Run a command to its end: its exit code and stdout. DeadlinePassed after so many seconds.

        A process stuck in the driver survives SIGKILL: it is then left behind, at most one, and no other is
        started while it is there. The page remembers it, so this holds for the next process of the probe too.
        """
        self._left_behind = [process for process in self._left_behind if process.poll() is None]
        pid, start = page.command()
        if self._left_behind or (pid and self._start_of(pid) == start):
            raise StillStuck(errno.ETIMEDOUT, "an earlier one is still stuck and cannot be killed", command[0])
        own_pid = os.getpid()
        process = subprocess.Popen(  # noqa: S603 - a list of our own making, no shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(os.environ, LC_ALL="C"),
            start_new_session=True,
            # This process may be killed while it waits. It has no threads, so that this is safe.
            preexec_fn=lambda: end_with(own_pid),  # noqa: PLW1509
        )
        page.set_command(process.pid, self._start_of(process.pid) or 0)
        try:
            return self._finish(process, command[0], time.monotonic() + seconds, seconds)
        finally:
            process.stdout.close()
            if process.returncode is None:
                self._kill(process)
            if process.returncode is not None:
                page.set_command(0, 0)

    def _finish(self, process, name, deadline, seconds):
        pieces = []
        size = 0
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
                raise DeadlinePassed(errno.ETIMEDOUT, "did not end within %g s" % seconds, name)
            piece = os.read(process.stdout.fileno(), 65536)
            if not piece:
                break
            size += len(piece)
            if size > _MOST_OUTPUT_BYTES:
                raise OSError(errno.EFBIG, "printed more than %d MB" % (_MOST_OUTPUT_BYTES >> 20), name)
            pieces.append(piece)
        try:
            code = process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise DeadlinePassed(errno.ETIMEDOUT, "did not end within %g s" % seconds, name)
        return Ran(code, b"".join(pieces))

    def _kill(self, process):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except OSError:
            process.kill()
        try:
            process.wait(0.5)
        except subprocess.TimeoutExpired:
            self._left_behind.append(process)
