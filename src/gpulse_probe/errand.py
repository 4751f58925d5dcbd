"""Work that may take long, such as a name to look up, done in a child while this process goes on."""

import time

from gpulse_probe.child import Child, ChildEnded

_KILL_SECONDS = 0.5
# Killed and not yet gone, as when a dead file server holds them.
_leaving = []


class ErrandFailed(Exception):
    """It could not be done; the message says why."""


class Errand:
    """Runs `work() -> bytes` in a child, which ends with it. What it imports costs this process nothing."""

    def __init__(self, work, seconds):
        _leaving[:] = [child for child in _leaving if not child.gone()]
        self._seconds = seconds
        self._child = Child(lambda _request: work())
        self.due = time.monotonic() + seconds
        self._child.ask()

    def fileno(self):
        """Readable when there is something to take."""
        return self._child.fileno()

    def result(self):
        """What work() returned, None while it is under way. ErrandFailed with the last words of what it raised."""
        try:
            answer = self._child.answer(0.0)
        except ChildEnded as ended:
            self.close()
            raise ErrandFailed(_words(str(ended)))
        if answer is None and time.monotonic() >= self.due:
            self.close()
            raise ErrandFailed("no answer within %g s" % self._seconds)
        if answer is not None:
            self.close()
        return answer

    def close(self):
        """End it, wherever it is."""
        self._child.abandon()
        end = time.monotonic() + _KILL_SECONDS
        while not self._child.gone():
            if time.monotonic() >= end:
                _leaving.append(self._child)
                return
            time.sleep(0.002)


def _words(text):
    """Of a traceback the message of its exception."""
    last = text.strip().rpartition("\n")[2]
    name, colon, message = last.partition(": ")
    return message if colon and name.replace(".", "").replace("_", "").isalnum() else last
