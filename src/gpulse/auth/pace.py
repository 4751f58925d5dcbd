"""How often something may be made: some at once, then one after the other."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable

from gpulse.errors import AccountError

_MOST_KNOWN = 10_000


class Pace:
    """`take` counts one more for somebody, and refuses it if there were too many lately. In memory."""

    def __init__(self, at_once: int = 200, seconds: float = 18.0, clock: Callable[[], float] = time.monotonic) -> None:
        """As many `at_once`, and another one each `seconds`."""
        self._seconds = seconds
        self._longest = at_once * seconds
        self._clock = clock
        # When all of it is forgotten; the one that took last at the end.
        self._until: OrderedDict[str, float] = OrderedDict()

    def take(self, who: str) -> None:
        """Raise AccountError with the time to wait."""
        now = self._clock()
        until = max(self._until.get(who, 0.0), now) + self._seconds
        wait = until - self._longest - now
        if wait > 0:
            seconds = math.ceil(wait)
            raise AccountError(
                429,
                "too_fast",
                f"too many keys, calendars, links or tokens were made lately; wait {seconds} s",
                "use those that are there, or make fewer",
                seconds,
            )
        self._until[who] = until
        self._until.move_to_end(who)
        while len(self._until) > _MOST_KNOWN:
            self._until.popitem(last=False)
