"""Work that may hang, done in a child: its last answer is kept, and a child that never answers is let go of.

A file of /sys may ask the firmware of an adapter, or wait for a lock that a driver in trouble holds.
"""

import json

from gpulse_probe.child import Child, ChildEnded

DEADLINE_SECONDS = 5.0
FIRST_PAUSE_SECONDS = 10.0
LONGEST_PAUSE_SECONDS = 300.0
# Mostly the answer is there at once, and then it is in the same snapshot.
PATIENCE_SECONDS = 0.05
# The very first is worth waiting for.
FIRST_PATIENCE_SECONDS = 2.0
# Each holds a little memory and a place in the process table until the kernel lets it go.
MOST_STUCK = 3


class Aside:
    def __init__(self, work, what, stays, start_child=Child):
        """work(now): in the child; what it gives must be fit for JSON. what: its name for reports.

        stays: whether the child stays for the next time. A child that ends costs a fork a time, one that stays memory.
        """
        self._work = work
        self._what = what
        self._stays = stays
        self._start_child = start_child
        self._child = None
        self._asked_at = None
        self._silent_since = None
        self._trouble = None
        self._pause = FIRST_PAUSE_SECONDS
        self._start_at = None
        self._stuck = []
        self._patience = FIRST_PATIENCE_SECONDS
        self.answer = None

    def collect(self, now, report, ask):
        """Bring `answer` up to date, where `ask` says that it is time; it is None where it is not known.

        An answer that does not come at once is taken at a later tick; the last one holds until the deadline.
        """
        self._stuck = [child for child in self._stuck if not child.gone()]
        # A question from an earlier tick was waited for already.
        patience = 0.0 if self._asked_at is not None else self._patience
        if ask and self._asked_at is None:
            self._ask(now)
        if self._asked_at is not None:
            self._take(now, patience)
        if self._silent_since is not None:
            report("%s did not answer for %d s" % (self._what, now - self._silent_since))
        elif self._trouble is not None:
            report("%s: %s" % (self._what, self._trouble))

    def close(self):
        if self._child is not None:
            self._let_go()

    def _ask(self, now):
        if len(self._stuck) >= MOST_STUCK or (self._start_at is not None and now < self._start_at):
            return
        if self._child is None:
            self._child = self._start_child(self._answered)
        self._asked_at = now
        try:
            self._child.ask(repr(now).encode("ascii"))
        except ChildEnded as ended:
            self._fail(now, str(ended))

    def _take(self, now, patience):
        try:
            answer = self._child.answer(patience)
        except ChildEnded as ended:
            self._fail(now, str(ended))
            return
        self._patience = PATIENCE_SECONDS
        if answer is not None:
            self.answer = json.loads(answer.decode("ascii"))
            self._asked_at = self._silent_since = self._trouble = self._start_at = None
            self._pause = FIRST_PAUSE_SECONDS
            if not self._stays:
                # It has answered, so nothing holds it.
                self._child.abandon()
                self._child.wait()
                self._child = None
        elif now - self._asked_at >= DEADLINE_SECONDS:
            self._silent_since = self._asked_at if self._silent_since is None else self._silent_since
            self._give_up(now)

    def _fail(self, now, reason):
        self._trouble = reason.strip().rpartition("\n")[2]
        self._give_up(now)

    def _give_up(self, now):
        self.answer = None
        self._start_at = now + self._pause
        self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)
        self._let_go()

    def _let_go(self):
        self._child.abandon()
        if not self._child.gone():
            self._stuck.append(self._child)
        self._child = self._asked_at = None

    def _answered(self, request):
        """In the child."""
        return json.dumps(self._work(float(request.decode("ascii")))).encode("ascii")
