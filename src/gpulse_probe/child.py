"""A forked process that answers questions and can be abandoned when an answer never comes.

Calls into a driver or a network file system may hang for ever, and a process that waits for one may not
even die of SIGKILL. So such calls are made in a child: the parent waits as long as it likes, then goes on
without it. The child holds none of the parent's other descriptors, so nothing else waits for it either.
"""

import gc
import os
import select
import signal
import struct
import time

_HEAD = struct.Struct("=cL")
_ANSWER, _FAILURE = b"A", b"F"


class ChildEnded(Exception):
    """The child is gone; the message says why, where it is known."""


class Child:
    """One process that runs `answer(request bytes) -> answer bytes`, one request at a time.

    The parent must have no threads. After an exception from any method the child is of no more use:
    abandon() it.
    """

    def __init__(self, answer):
        request_out, request_in = os.pipe()
        answer_out, answer_in = os.pipe()
        _freeze_once()
        self.pid = os.fork()
        if self.pid == 0:
            _serve(answer, request_out, answer_in)
        os.close(request_out)
        os.close(answer_in)
        self._requests = request_in
        self._answers = answer_out
        self._received = bytearray()
        self._alive = True

    def ask(self, request=b""):
        """Send a request; its answer is fetched with answer()."""
        if self._requests is None:
            raise ChildEnded("it was abandoned")
        try:
            os.write(self._requests, _HEAD.pack(_ANSWER, len(request)) + request)
        except OSError:
            raise ChildEnded("it does not take requests any more")

    def fileno(self):
        """Readable when an answer may be there."""
        return self._answers

    def answer(self, seconds):
        """The answer to the request, or None when it is not there within so many seconds."""
        deadline = time.monotonic() + seconds
        while True:
            left = max(0.0, deadline - time.monotonic())
            if not select.select([self._answers], [], [], left)[0]:
                return None
            piece = os.read(self._answers, 1 << 20)
            if not piece:
                raise ChildEnded("it ended without an answer")
            self._received += piece
            if len(self._received) < _HEAD.size:
                continue
            kind, size = _HEAD.unpack_from(self._received)
            if len(self._received) < _HEAD.size + size:
                continue
            answer = bytes(self._received[_HEAD.size : _HEAD.size + size])
            del self._received[: _HEAD.size + size]
            if kind == _FAILURE:
                raise ChildEnded(answer.decode("utf-8", "replace"))
            return answer

    def abandon(self):
        """Let go of the child: it is killed if it can be. gone() tells when it has really ended."""
        for descriptor in (self._requests, self._answers):
            if descriptor is not None:
                os.close(descriptor)
        self._requests = self._answers = None
        if self._alive:
            os.kill(self.pid, signal.SIGKILL)

    def gone(self):
        """Whether the process has ended; takes it from the process table when it has."""
        if self._alive:
            self._alive = os.waitpid(self.pid, os.WNOHANG)[0] == 0
        return not self._alive

    def wait(self):
        """Wait until the process has ended: for children that surely do."""
        if self._alive:
            os.waitpid(self.pid, 0)
            self._alive = False


def reap(seconds):
    """Wait at most so long until all children of this process have ended; whether they have.

    A process that becomes another program keeps its children, and the program knows nothing of them: one that has not
    been waited for stays in the process table as long as the program runs.
    """
    end = time.monotonic() + seconds
    while True:
        try:
            pid = os.waitpid(-1, os.WNOHANG)[0]
        except ChildProcessError:
            return True
        if pid:
            continue
        if time.monotonic() >= end:
            return False
        time.sleep(0.005)


_frozen = []


def _freeze_once():
    """Frozen objects are not touched by the collector, so children share their memory with the parent.

    Once, because what is garbage at the time stays for ever. Python 3.6 cannot.
    """
    if not _frozen:
        _frozen.append(True)
        getattr(gc, "freeze", bool)()


def _serve(answer, requests, answers):
    """The life of the child: it never returns."""
    code = 1
    try:
        _let_go_of_descriptors(requests, answers)
        # Ctrl-C goes to the whole terminal group; the parent decides when the child ends.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        while True:
            head = _read_exactly(requests, _HEAD.size)
            if head is None:
                code = 0
                break
            request = _read_exactly(requests, _HEAD.unpack(head)[1])
            try:
                kind, data = _ANSWER, answer(request)
            except Exception:  # noqa: BLE001 - whatever it is, the parent is told
                import traceback

                kind, data = _FAILURE, traceback.format_exc().encode("utf-8", "replace")
            _write_all(answers, _HEAD.pack(kind, len(data)) + data)
    except OSError:
        code = 1
    finally:
        os._exit(code)


def _let_go_of_descriptors(*kept):
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    last = max(kept)
    for descriptor in range(3, last):
        if descriptor not in kept:
            try:
                os.close(descriptor)
            except OSError:
                continue
    os.closerange(last + 1, last + 256)


def _read_exactly(descriptor, size):
    data = b""
    while len(data) < size:
        piece = os.read(descriptor, size - len(data))
        if not piece:
            return None
        data += piece
    return data


def _write_all(descriptor, data):
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
