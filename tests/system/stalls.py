"""When all of the machine stood still: tests of how late something is do not count that."""

import threading
import time
from typing import Any, Self

_NAP_SECONDS = 0.05
# Less is what every sleep may take too long.
_LEAST_SECONDS = 0.1


class Stalls(threading.Thread):
    """Naps all the time and notes when it was woken too late; a context manager."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._done = threading.Event()
        # From when it was to wake until it did.
        self._late: list[tuple[float, float]] = []
        self._due = time.monotonic() + _NAP_SECONDS

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._done.set()
        self.join()

    def run(self) -> None:
        while not self._done.is_set():
            time.sleep(_NAP_SECONDS)
            woken = time.monotonic()
            if woken - self._due >= _LEAST_SECONDS:
                self._late.append((self._due, woken))
            self._due = woken + _NAP_SECONDS

    def since(self, moment: float) -> float:
        """How many seconds it stood still since then, the present moment included."""
        # First the nap that goes on: it may end meanwhile, and counts once.
        late = dict([(self._due, time.monotonic()), *self._late])
        return sum(
            woken - max(due, moment) for due, woken in late.items() if woken > moment and woken - due >= _LEAST_SECONDS
        )

    def age(self, node: Any, asked: float) -> float:
        """How old a node's last line was when the API was asked; of one that is down there is none."""
        if node["state"] not in ("up", "stale"):
            return float("inf")
        return node["age_seconds"] - self.since(asked - node["age_seconds"])
