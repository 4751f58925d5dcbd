"""Snapshots as one file for each node, in a folder that a hub watches: shared, or fed by scp."""

import binascii
import os
import time

from gpulse_probe.child import Child, ChildEnded
from gpulse_probe.log import Log
from gpulse_probe.options import UsageError
from gpulse_probe.outlets import stream

# A server that is slow is given time; one that is gone holds the child for ever.
DEADLINE_SECONDS = 30.0
# Children that not even SIGKILL ends, as their server is gone: each holds memory until it is back.
MOST_STUCK = 3
# A file that another run left is older than any that is being written.
LEFT_SECONDS = 600.0
LONGEST_NAME = 200
END_SECONDS = 0.5
_DONE = b""


class Drop:
    """Writes lines, in a child: a write to a dead file server may never return, and such a process cannot be ended.

    While one line is being written those that come meanwhile are left out: the next one says it all.
    """

    def __init__(self, folder, node, say, start_child=Child, clock=time.monotonic):
        self._file = File(folder, node)
        self._say = say
        self._start_child = start_child
        self._clock = clock
        self._child = None
        self._asked_at = None
        self._stuck = []
        self._trouble = None

    def write(self, line):
        """Have it written; sleep_until() learns how that went."""
        self._stuck = [child for child in self._stuck if not child.gone()]
        if self._asked_at is not None or len(self._stuck) >= MOST_STUCK:
            return
        if self._child is None:
            self._child = self._start_child(self._file.write)
        self._asked_at = self._clock()
        try:
            self._child.ask(line + b"\n")
        except ChildEnded as ended:
            self._lose_child(str(ended))

    def sleep_until(self, moment):
        if self._asked_at is not None:
            self._take_answer(max(0.0, moment - self._clock()))
        time.sleep(max(0.0, moment - self._clock()))

    def close(self):
        if self._asked_at is not None:
            # A write that is cut off leaves half a file behind.
            self._take_answer(END_SECONDS)
        if self._child is not None:
            self._let_go()

    def _take_answer(self, seconds):
        try:
            answer = self._child.answer(seconds)
        except ChildEnded as ended:
            self._lose_child(str(ended))
            return
        if answer is not None:
            self._asked_at = None
            self._tell(answer.decode("utf-8", "replace"))
        elif self._clock() - self._asked_at >= DEADLINE_SECONDS:
            self._tell("the folder's file system does not answer; look whether its server is there")
            self._let_go()

    def _lose_child(self, reason):
        self._tell("the process that writes has ended: " + reason.strip().rpartition("\n")[2])
        self._let_go()

    def _let_go(self):
        self._child.abandon()
        if not self._child.gone():
            self._stuck.append(self._child)
        self._child = self._asked_at = None

    def _tell(self, trouble):
        """Once, and again when it is another one; "" is none."""
        if trouble and trouble != self._trouble:
            self._say("%s cannot be written: %s; it is tried again" % (self._file.path, trouble))
        elif self._trouble != trouble:
            # The first time, and after trouble.
            self._say("%s is written" % self._file.path)
        self._trouble = trouble


class File:
    """DIR/NODE.json, replaced as a whole: a reader never sees half of it."""

    def __init__(self, folder, node):
        self.path = os.path.join(folder, node + ".json")
        self._folder = folder
        self._prefix = ".%s.json." % node
        self._looked_for_left = False

    def write(self, data):
        """In the child. b"" or why it cannot be written."""
        temporary = os.path.join(self._folder, self._prefix + binascii.hexlify(os.urandom(8)).decode("ascii"))
        try:
            try:
                written_at = self._write_temporary(temporary, data)
                os.rename(temporary, self.path)
            except OSError:
                _remove(temporary)
                raise
            if not self._looked_for_left:
                self._looked_for_left = True
                self._remove_left(written_at)
        except FileNotFoundError:
            return b"the folder is not there: make it, or mount it"
        except OSError as error:
            return (error.strerror or str(error)).encode("utf-8", "replace")
        return _DONE

    def _write_temporary(self, temporary, data):
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            # A file server that is full or over quota says so only now.
            os.fsync(descriptor)
            return os.fstat(descriptor).st_mtime
        finally:
            os.close(descriptor)

    def _remove_left(self, written_at):
        """What earlier runs of this node left; their age is told by the file server's own clock."""
        for name in os.listdir(self._folder):
            if name.startswith(self._prefix) and name[len(self._prefix) :].isalnum():
                path = os.path.join(self._folder, name)
                try:
                    if written_at - os.stat(path).st_mtime > LEFT_SECONDS:
                        os.unlink(path)
                except OSError:
                    # Somebody was faster, or it is not ours to remove; our own file is written.
                    continue


def run(options, make_sampler):
    """Until KeyboardInterrupt."""
    node = options.node or os.uname().nodename
    check_name(node)
    drop = Drop(os.path.abspath(options.directory), node, Log().say)
    try:
        stream.run(make_sampler(updates=False).line, drop, options.interval)
    finally:
        drop.close()


def check_name(node):
    """UsageError where a node's name cannot be that of a file."""
    if node.startswith(".") or "/" in node or "\0" in node or not 0 < len(os.fsencode(node)) <= LONGEST_NAME:
        words = "--node: %r cannot be the name of a file: no / in it, no dot before it, at most %d bytes"
        raise UsageError(words % (node[:LONGEST_NAME], LONGEST_NAME))


def _remove(path):
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
