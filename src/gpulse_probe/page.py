"""A page of memory shared with children: they note there what they are about to do, for when they hang."""

import mmap
import struct

_SIZE = 96
# The pid and start of a command that may be stuck in the driver, behind the note.
_COMMAND = struct.Struct("=QQ")


class Page:
    def __init__(self):
        self.memory = mmap.mmap(-1, mmap.PAGESIZE)

    @staticmethod
    def label(text):
        """A text in the form note_label wants, made once for a call that is made often."""
        return text.encode("utf-8", "replace")[:_SIZE].ljust(_SIZE, b"\0")

    def note_label(self, label):
        self.memory[:_SIZE] = label

    def note(self, text):
        self.memory[:_SIZE] = self.label(text)

    def read(self):
        """What was noted last."""
        return self.memory[:_SIZE].rstrip(b"\0").decode("utf-8", "replace")

    def set_command(self, pid, start):
        """Keep a command that was started, beyond the life of the child that started it; 0, 0: there is none."""
        _COMMAND.pack_into(self.memory, _SIZE, pid, start)

    def command(self):
        """(pid, start) as set last."""
        return _COMMAND.unpack_from(self.memory, _SIZE)
