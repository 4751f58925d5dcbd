"""What the API tells of: the fleet, and what the hub itself has to say."""

import secrets
import time
from collections.abc import Callable, Sequence

import msgspec

from gpulse.fleet.fleet import Fleet

# A tick comes once a second; longer than this and the hub is ill.
STALLED_SECONDS = 5.0


class Hub:
    """The fleet with the hub's own facts."""

    def __init__(
        self,
        fleet: Fleet,
        title: str,
        notices: Callable[[], Sequence[str]],
        clock: Callable[[], float] = time.monotonic,
    ):
        self.fleet = fleet
        self.title = title
        self.notices = notices
        # Generations begin anew with every start: an ETag of an earlier hub must not match.
        self.instance = secrets.token_hex(4)
        self._clock = clock
        self._seen = (fleet.generation, clock())

    def stalled_seconds(self) -> float:
        """How long the fleet has been seen not to tick."""
        generation, since = self._seen
        if generation != self.fleet.generation:
            self._seen = (self.fleet.generation, self._clock())
            return 0.0
        return self._clock() - since


class HubView(msgspec.Struct, kw_only=True):
    """The hub itself."""

    title: str
    version: str
    # Grows with every tick of the fleet.
    generation: int
    # What its people should know: "no GPU here and no nodes given".
    notices: list[str]
