"""What the API tells of: the fleet, and what the hub itself has to say."""

import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import msgspec

from gpulse.api.access import Access
from gpulse.api.fullness import Fullness
from gpulse.auth.tokens import Tokens
from gpulse.auth.upgrades import Upgrades
from gpulse.fleet.fleet import Fleet
from gpulse.reservations.desk import Desk
from gpulse.transport.checks import Examination
from gpulse.transport.push import Push

# A tick comes once a second; longer than this and the hub is ill.
STALLED_SECONDS = 5.0
Examine = Callable[[str], Awaitable[Examination | None]]


class Ingest(NamedTuple):
    """What the hub needs to take anything from nodes."""

    tokens: Tokens
    push: Push
    upgrades: Upgrades


async def nothing_to_examine(name: str) -> Examination | None:
    """Of a hub whose nodes are all simulated."""
    del name
    return None


class Hub:
    """The fleet with the hub's own facts."""

    def __init__(
        self,
        fleet: Fleet,
        title: str,
        notices: Callable[[], Sequence[str]],
        access: Access,
        ingest: Ingest | None = None,
        examine: Examine = nothing_to_examine,
        desk: Desk | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.fleet = fleet
        self.title = title
        self.notices = notices
        self.access = access
        # None where it takes nothing from nodes.
        self.ingest = ingest
        # Doctor's checks of a node by its name; None where it is not read over SSH.
        self.examine = examine
        # None where the site has no reservations.
        self.desk = desk
        self.fullness = Fullness(fleet)
        # How many watch the live stream; whoever serves it says so.
        self.listeners: Callable[[], int] = lambda: 0
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
