"""Keeps the device child going: notices when it hangs or ends, lets go of it, and starts another after a pause."""

import json
import time

from gpulse_probe.child import Child, ChildEnded
from gpulse_probe.hangs import waiting

DEADLINE_SECONDS = 5.0
# The driver may take this long to wake the cards of a big node when nobody keeps it loaded.
SLOW_DEADLINE_SECONDS = 30.0
# With another deadline than the default, what may take long is given so many times as much, but not more than that.
_SLOW_FACTOR = 6
_SLOW_CALLS = ("nvmlInit_v2", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2", "nvidia-smi")
_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 60.0
# What children hung in is remembered so long, for those that can do without it.
_REMEMBER_SECONDS = 600.0
# Children that not even SIGKILL ends; with so many there is no point in losing another to the driver, unless each hangs
# in a card of its own: those cards are left alone.
MOST_ABANDONED = 3
# A wait for the driver of this length is reported.
_REPORT_SECONDS = 2.0


class Watchdog:
    """Asks a child for samples and never waits longer than it is told to."""

    def __init__(self, answer, page, deadline=DEADLINE_SECONDS, start_child=Child, clock=time.monotonic):
        """`answer` is what the child runs, `page` where it notes what it is about to do."""
        self.deadline = deadline
        self.slow_deadline = max(deadline, min(SLOW_DEADLINE_SECONDS, _SLOW_FACTOR * deadline))
        # Called with (index, call, since, child) when a child hangs in a call about one card.
        self.card_hangs = None
        self._answer = answer
        self._page = page
        self._start_child = start_child
        self._clock = clock
        self._child = None
        self._abandoned = []
        self._start_at = 0.0
        self._pause = _FIRST_PAUSE_SECONDS
        self._asked_at = None
        self._note = None
        self._note_since = None
        self._silent_since = None
        self._doing = ""
        self._ended = None
        self._hung_in = {}
        self._samples = []
        self._answered = False

    def ask(self, wanted=None):
        """Set the child to work. An answer that came too late for an earlier tick is taken first.

        wanted: a dictionary for the child. What earlier ones hung in is added to it.
        """
        self._bury()
        self.wait(0.0)
        now = self._clock()
        if self._child is None and now >= self._start_at and self._may_start():
            self._child = self._start_child(self._answer)
        if self._child is None or self._asked_at is not None:
            return
        request = dict(wanted or {})
        if self._hung_in:
            request["hung"] = list(self._hung_in)
        self._page.note("")
        self._asked_at, self._note, self._note_since = now, None, now
        try:
            self._child.ask(json.dumps(request).encode("ascii") if request else b"")
        except ChildEnded as ended:
            self._child_ended(ended)

    def wait(self, seconds):
        """Wait so long for the answer, which take() then gives."""
        end = self._clock() + seconds
        while self._child is not None and self._asked_at is not None:
            try:
                answer = self._child.answer(max(0.0, end - self._clock()))
            except ChildEnded as ended:
                self._child_ended(ended)
                return
            if answer is not None:
                self._samples.append((answer, self._asked_at))
                self._answered = True
                self._asked_at = self._silent_since = self._ended = None
                self._pause = _FIRST_PAUSE_SECONDS
                return
            self._look_at_note()
            if self._clock() >= end:
                return

    def take(self):
        """The samples that came since they were last taken, each with the moment it was asked for."""
        samples, self._samples = self._samples, []
        return samples

    def restart(self):
        """Replace the child: it asked for it."""
        if self._child is not None:
            self._let_go(self._clock())

    @property
    def answered(self):
        """Whether there ever was a sample."""
        return self._answered

    @property
    def lost(self):
        """Whether the last sample says nothing about now."""
        return not self._answered or self._silent_since is not None

    @property
    def waiting(self):
        """Whether the child does something that may take long, and is still given time for it."""
        return self._asked_at is not None and _is_slow(self._note)

    @property
    def card(self):
        """The index of the card in which the last child hangs; None where it is not about one card."""
        return None if self._silent_since is None or self._ended else _parted(self._doing)[0]

    @property
    def overdue(self):
        """Whether an answer should have been there long ago."""
        return self._silent_since is not None or self._waited() >= self.deadline

    def complaint(self):
        """Say what is being waited for, or what went wrong; None while answers come in time."""
        if self._silent_since is not None and self._ended:
            text = self._ended
        else:
            waits = self._silent_since is None
            if waits and (self._asked_at is None or self._clock() - self._note_since < _REPORT_SECONDS):
                return None
            gpu, call = _parted((self._note or "") if waits else self._doing)
            text = waiting(call, self._clock() - (self._note_since if waits else self._silent_since), gpu)
        if not self._may_start():
            text += "; %d readers are stuck in the driver and cannot be ended, reboot the node" % len(self._abandoned)
        return text

    def close(self):
        """Let go of everything, and wait a moment for what was killed to end."""
        self.restart()
        end = time.monotonic() + 0.5
        while self._abandoned and time.monotonic() < end:
            self._bury()
            time.sleep(0.005)

    def _may_start(self):
        """Return whether another child may be risked."""
        cards = {card for _child, card in self._abandoned} - {None}
        return len(self._abandoned) < max(MOST_ABANDONED, len(cards) + 1)

    def _waited(self):
        """How long the child has been at something that may take long."""
        return self._clock() - self._note_since if self.waiting else 0.0

    def _look_at_note(self):
        """A call is given its deadline, not the whole sample: a slow node is not a hung one."""
        now = self._clock()
        note = self._page.read()
        if note != self._note:
            self._note_since = self._asked_at if self._note is None else now
            self._note = note
        quiet = now - self._note_since
        if quiet < self.deadline:
            return
        if self._silent_since is not None:
            self._doing, self._ended = note or self._doing, None
        if quiet >= (self.slow_deadline if _is_slow(note) else self.deadline):
            self._silent_since = self._silent_since or self._note_since
            self._doing, self._ended = note or self._doing, None
            if note:
                self._hung_in[note] = now
            gpu, call = _parted(note)
            child = self._child
            self._let_go(now, gpu)
            if gpu is not None and self.card_hangs is not None:
                self.card_hangs(gpu, call, self._note_since, child)
                # The next child leaves that card alone, so it need not wait long.
                self._start_at, self._pause = now + _FIRST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS

    def _child_ended(self, ended):
        now = self._clock()
        what = self._page.read()
        self._silent_since = self._silent_since or now
        self._ended = "the reader of the GPUs ended (%s): %s" % (what or "starting", str(ended).strip().split("\n")[-1])
        self._let_go(now)

    def _let_go(self, now, card=None):
        self._child.abandon()
        self._abandoned.append((self._child, card))
        self._child = self._asked_at = None
        self._start_at = now + self._pause
        self._pause = min(self._pause * 2, _LONGEST_PAUSE_SECONDS)
        self._bury()

    def _bury(self):
        self._abandoned = [(child, card) for child, card in self._abandoned if not child.gone()]
        forget = self._clock() - _REMEMBER_SECONDS
        self._hung_in = {note: since for note, since in self._hung_in.items() if since > forget}


def _parted(note):
    """The index of the GPU a note is about, None where it is about none, and the call."""
    gpu, separator, call = note.partition(": ")
    number = gpu[len("GPU ") :]
    return (int(number), call) if separator and gpu.startswith("GPU ") and number.isdigit() else (None, note)


def _is_slow(note):
    return note is not None and _parted(note)[1] in _SLOW_CALLS
