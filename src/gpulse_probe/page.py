"""A page of memory shared with a child: it notes there what it is about to do, the parent reads it when it hangs."""

import mmap

_SIZE = 96


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
