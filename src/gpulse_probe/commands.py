"""Runs commands that may hang: with a deadline, and without waiting for what cannot be killed."""

import errno
import os
import select
import signal
import subprocess
import time
from collections import namedtuple

Ran = namedtuple("Ran", "code output")
_MOST_OUTPUT_BYTES = 32 << 20


class DeadlinePassed(OSError):
    """A command did not end in its time; it was killed, or left behind where it could not be."""


class Commands:
    def __init__(self):
        self._left_behind = []

    def run(self, command, seconds):
        """Run a command to its end: its exit code and stdout. DeadlinePassed after so many seconds.

        A process stuck in the driver survives SIGKILL: it is then left behind, at most one of each kind,
        and no other is started while it is there.
        """
        self._left_behind = [process for process in self._left_behind if process.poll() is None]
        if self._left_behind:
            raise DeadlinePassed(errno.ETIMEDOUT, "an earlier one is still stuck and cannot be killed", command[0])
        environment = dict(os.environ, LC_ALL="C")
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
        deadline = time.monotonic() + seconds
        pieces = []
        size = 0
        try:
            while True:
                left = deadline - time.monotonic()
                if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
                    raise DeadlinePassed(errno.ETIMEDOUT, "did not end within %g s" % seconds, command[0])
                piece = os.read(process.stdout.fileno(), 65536)
                if not piece:
                    break
                size += len(piece)
                if size > _MOST_OUTPUT_BYTES:
                    raise OSError(errno.EFBIG, "printed more than %d MB" % (_MOST_OUTPUT_BYTES >> 20), command[0])
                pieces.append(piece)
            try:
                code = process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise DeadlinePassed(errno.ETIMEDOUT, "did not end within %g s" % seconds, command[0])
        finally:
            process.stdout.close()
            if process.returncode is None:
                self._kill(process)
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
