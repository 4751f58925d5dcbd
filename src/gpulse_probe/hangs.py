"""Cards on which a driver call hangs: what was last known of each, and a child that tries it again now and then."""

from gpulse_probe.child import Child, ChildEnded

# What must be known of a GPU to judge whether it is in use.
ESSENTIAL = ("utilization_ratio", "memory_used_bytes", "sm_active_ratio")
# Values older than this say nothing about a card any more.
KEEP_VALUES_SECONDS = 60.0
_LONGEST_PAUSE_SECONDS = 600.0


def waiting(call, seconds, gpu=None):
    """Say in words what is being waited for."""
    if call == "nvidia-smi":
        return "waiting for nvidia-smi, %d s" % seconds
    what = "the driver" if not call or call.startswith("nvml") else "the node"
    place = call or "starting"
    return "waiting for %s (%s), %d s" % (what, place if gpu is None else "%s, GPU %d" % (place, gpu), seconds)


def failed_fields(record):
    """Return what cannot be judged of a GPU that is not read: the essential fields it has, and its processes."""
    known = [name for name in ESSENTIAL if name in record]
    return [*(known or ESSENTIAL[:2]), "processes"]


class Hang:
    """One card that hangs, with its last records and when they were read."""

    def __init__(self, call, since, records, read_at, facts):
        self.call = call
        self.since = since
        self._records = records
        self._read_at = read_at
        self._facts = facts
        self.pause = self.due = 0.0
        # The child that hangs in the card's call, as long as it lives.
        self.child = None

    def report(self, index, now):
        return waiting(self.call, now - self.since, index)

    def records(self, index, now):
        """Return the card's records as they are now: facts, values while they are young enough, and their age."""
        age = None if self._read_at is None else now - self._read_at
        found = []
        for last in self._records or ({"index": index, "vendor": "nvidia"},):
            if age is None or age > KEEP_VALUES_SECONDS:
                record = {name: value for name, value in last.items() if name in self._facts}
            else:
                record = dict(last, age_seconds=round(age, 1))
            record["failed_fields"] = failed_fields(last)
            record["failed_reason"] = waiting(self.call, now - self.since)
            found.append(record)
        return found


class Hangs:
    """All cards that hang, by index. A child that starts now inherits them, and leaves those cards alone."""

    def __init__(self, cards, try_card, first_pause, trial_seconds, start_child=Child):
        """cards: a dictionary to keep them in. try_card(index) -> what a child runs: it returns when no call hangs.

        trial_seconds: how long that may take; it starts the driver anew, and may wake the card.
        """
        self.cards = cards
        self._try_card = try_card
        self._first_pause = first_pause
        self._trial_seconds = trial_seconds
        self._start_child = start_child
        self._leaving = []
        # How long cards were left alone before, for those that hang again soon after they came back.
        self._pauses = {}
        self._trial = None

    def add(self, index, hang, child, now):
        before, until = self._pauses.pop(index, (0.0, 0.0))
        hang.pause = min(2 * before, _LONGEST_PAUSE_SECONDS) if now < until else self._first_pause
        hang.due = now + hang.pause
        hang.child = child
        self.cards[index] = hang

    def look(self, now):
        """Try one card again whose time has come, in a child of its own."""
        self._leaving = [child for child in self._leaving if not child.gone()]
        if self._trial is not None:
            self._look_at_trial(now)
            return
        for index, hang in sorted(self.cards.items()):
            if hang.child is not None and hang.child.gone():
                hang.child = None
            # While a process is stuck in its call there is no doubt, and no use in losing another.
            if hang.child is None and now >= hang.due:
                child = self._start_child(self._try_card(index))
                self._trial = (index, child, now + self._trial_seconds)
                try:
                    child.ask()
                except ChildEnded:
                    self._look_at_trial(now)
                return

    def close(self):
        if self._trial is not None:
            self._trial[1].abandon()
            self._leaving.append(self._trial[1])
            self._trial = None
        self._leaving = [child for child in self._leaving if not child.gone()]

    def _look_at_trial(self, now):
        index, child, deadline = self._trial
        hang = self.cards[index]
        try:
            answered = child.answer(0.0) is not None
        except ChildEnded:
            # It did not hang: whatever else is wrong, the reader of all cards will say.
            answered = True
        if not answered and now < deadline:
            return
        self._trial = None
        child.abandon()
        if answered:
            self._leaving.append(child)
            del self.cards[index]
            self._pauses[index] = (hang.pause, now + _LONGEST_PAUSE_SECONDS)
        else:
            hang.child = child
            hang.pause = min(2 * hang.pause, _LONGEST_PAUSE_SECONDS)
            hang.due = now + hang.pause
