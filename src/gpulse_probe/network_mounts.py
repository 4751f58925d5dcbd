"""How full network file systems are, asked in a child, because a server that is gone lets statvfs hang for ever."""

import errno
import os

from gpulse_probe.child import Child, ChildEnded
from gpulse_probe.system import Space

# Thousands of nodes ask the same few servers, and figures of so large disks change slowly.
INTERVAL_SECONDS = 30.0
# Most servers answer at once: then the sizes are in the same snapshot. A slow one is picked up at a later tick.
PATIENCE_SECONDS = 0.05
DEADLINE_SECONDS = 5.0
FIRST_PAUSE_SECONDS = 10.0
LONGEST_PAUSE_SECONDS = 300.0
# Each holds a little memory and a place in the process table until its server is back.
MOST_STUCK = 3

# Not being allowed to look into somebody's own mount is no fault of the mount.
QUIET_ERRORS = (errno.EACCES, errno.EPERM)


class _Asked:
    """What is known of one mount point."""

    def __init__(self):
        self.space = None
        self.due = 0.0
        self.pause = FIRST_PAUSE_SECONDS
        self.silent_since = None
        self.trouble = None


class NetworkMounts:
    """Asks one mount point after the other: collect() at every tick, space() for what is known by now."""

    def __init__(self, system, start_child=Child):
        self._system = system
        self._start_child = start_child
        self._mounts = {}
        self._child = None
        self._asking = None
        self._asked_at = None
        self._stuck = []

    @property
    def busy(self):
        return self._child is not None or bool(self._stuck)

    def collect(self, mounts, now, report):
        """Go on asking; `mounts` has the source of each mount point, for the reports."""
        self._stuck = [child for child in self._stuck if not child.gone()]
        self._mounts = {path: self._mounts.get(path) or _Asked() for path in mounts}
        if not mounts and self._child is not None:
            self._give_up_child()
        deadline = self._system.monotonic() + PATIENCE_SECONDS
        # A question from an earlier tick was waited for already.
        patience = 0.0 if self._asking is not None else PATIENCE_SECONDS
        while self._ask_next(now) and self._take_answer(now, patience):
            patience = max(0.0, deadline - self._system.monotonic())
        self._report(mounts, now, report)

    def space(self, path):
        asked = self._mounts.get(path)
        return asked.space if asked else None

    def close(self):
        """End the child; those that are stuck end when their server is back."""
        if self._child is not None:
            self._give_up_child()

    def _ask_next(self, now):
        """Whether a question is under way, which may be a new one."""
        if self._asking is not None:
            return True
        due = [path for path in self._mounts if self._mounts[path].due <= now]
        if not due or len(self._stuck) >= MOST_STUCK:
            return False
        path = min(due, key=lambda candidate: self._mounts[candidate].due)
        if self._child is None:
            self._child = self._start_child(self._answer)
        self._asking, self._asked_at = path, now
        try:
            self._child.ask(os.fsencode(path))
        except ChildEnded as reason:
            self._lose_child(now, str(reason))
            return False
        return True

    def _take_answer(self, now, patience):
        """Whether the question was settled, so that the next one can be asked."""
        try:
            answer = self._child.answer(patience)
        except ChildEnded as reason:
            self._lose_child(now, str(reason))
            return False
        if answer is not None:
            self._settle(now, answer)
            return True
        if now - self._asked_at < DEADLINE_SECONDS:
            return False
        asked = self._mounts.get(self._asking)
        if asked:
            asked.space = asked.trouble = None
            if asked.silent_since is None:
                asked.silent_since = self._asked_at
            self._try_later(asked, now)
        self._give_up_child()
        return True

    def _settle(self, now, answer):
        asked = self._mounts.get(self._asking)
        self._asking = None
        if asked is None:
            return
        kind, _, rest = answer.partition(b" ")
        asked.silent_since = asked.trouble = None
        asked.pause = FIRST_PAUSE_SECONDS
        asked.due = now + INTERVAL_SECONDS
        if kind == b"space":
            asked.space = Space(*map(int, rest.split()))
            return
        asked.space = None
        if int(kind) not in QUIET_ERRORS:
            asked.trouble = rest.decode("utf-8", "replace")

    def _try_later(self, asked, now):
        asked.due = now + asked.pause
        asked.pause = min(2 * asked.pause, LONGEST_PAUSE_SECONDS)

    def _lose_child(self, now, reason):
        asked = self._mounts.get(self._asking)
        if asked:
            asked.space = None
            asked.trouble = "the process that asks has ended: " + reason.strip().rpartition("\n")[2]
            self._try_later(asked, now)
        self._give_up_child()

    def _give_up_child(self):
        self._child.abandon()
        if not self._child.gone():
            self._stuck.append(self._child)
        self._child = self._asking = None

    def _report(self, mounts, now, report):
        blocked = len(self._stuck) >= MOST_STUCK
        for path, asked in self._mounts.items():
            name = f"file system {os.fsencode(path).decode('utf-8', 'backslashreplace')} ({mounts[path]})"
            if asked.silent_since is not None:
                report(f"{name} has not answered for {int(now - asked.silent_since)} s")
            elif asked.trouble:
                report(f"{name}: {asked.trouble}")
            if blocked and asked.due <= now:
                # Old sizes must not pass for new ones.
                asked.space = None
        if blocked:
            report(f"no network file system is asked while {MOST_STUCK} earlier questions are stuck in the kernel")

    def _answer(self, request):
        """In the child."""
        try:
            return b"space %d %d %d" % tuple(self._system.space(os.fsdecode(request)))
        except OSError as error:
            return b"%d %s" % (error.errno or 0, (error.strerror or str(error)).encode("utf-8", "replace"))
