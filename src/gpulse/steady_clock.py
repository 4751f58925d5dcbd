"""The time of day, guarded against a clock that jumps.

A wrong answer from a time server, or a machine that wakes up with a dead battery, may move the clock by years for some
seconds. Sessions, keys and reservations must not come to their end by that, and nothing may be deleted by it.
"""

import threading
import time
from collections.abc import Callable

# A correction that needs no confirmation.
_SMALL_SECONDS = 5.0
# So long a jump has to last until it is believed.
_BELIEVED_SECONDS = 60.0
# So long after it, and after the start, nothing is deleted for its age; after one of a day or more, a day.
_HOUR, _DAY = 3600.0, 86400.0
# So long a hub may plausibly have been off.
_OFF_SECONDS = 30 * _DAY


def since_boot() -> float:
    """Return seconds that go on by themselves, also while the machine sleeps, whatever the clock is set to."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class SteadyClock:
    """Calling it returns the time in seconds since 1970; `for_deleting` the time by which old things may go."""

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = since_boot) -> None:
        self._wall = wall
        self._steady = steady
        self._lock = threading.Lock()
        now = steady()
        # The time of day minus the time since boot, as believed.
        self._offset = wall() - now
        # Another offset that the clock shows, and since when.
        self._shown: tuple[float, float] | None = None
        self._deletes_from = now + _HOUR

    def __call__(self) -> float:
        with self._lock:
            return self._look() + self._offset

    def for_deleting(self) -> float | None:
        """Return the time, or None while the clock has not agreed with the time since boot for long enough."""
        with self._lock:
            now = self._look()
            return now + self._offset if self._shown is None and now >= self._deletes_from else None

    def compare(self, last: float) -> None:
        """Distrust a clock that, at the start, is far from when something was last written."""
        with self._lock:
            now = self._look()
            if not -_DAY < now + self._offset - last < _OFF_SECONDS:
                self._deletes_from = max(self._deletes_from, now + _DAY)

    def _look(self) -> float:
        now = self._steady()
        offset = self._wall() - now
        step = abs(offset - self._offset)
        if step <= _SMALL_SECONDS:
            self._offset, self._shown = offset, None
            return now
        if self._shown is None or abs(offset - self._shown[0]) > _SMALL_SECONDS:
            self._shown = (offset, now)
            self._deletes_from = max(self._deletes_from, now + (_DAY if step >= _DAY else _HOUR))
        elif now - self._shown[1] >= _BELIEVED_SECONDS:
            self._offset, self._shown = offset, None
        return now
