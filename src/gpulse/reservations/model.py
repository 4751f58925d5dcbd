"""What a reservation is: whose, of which GPUs, from when until when."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

import msgspec

from gpulse.fleet.booked import index_of
from gpulse.fleet.views import GpuView

Ending = Literal["ended", "cancelled", "no_show"]
State = Literal["coming", "now", "over", "cancelled"]


class Place(NamedTuple):
    """Where a GPU is, whichever card that may be: of a MIG instance the index is "0.2"."""

    node: str
    index: str  # type: ignore[assignment]  # it hides tuple.index, which nobody asks of a place

    def __str__(self) -> str:
        return f"{self.node}:{self.index}"

    @property
    def card(self) -> "Place":
        """The place of the card that it is, or is part of."""
        return Place(self.node, self.index.partition(".")[0])

    def shares(self, other: "Place") -> bool:
        """Whether who has the one has something of the other: a card has all its instances."""
        if self.node != other.node:
            return False
        return self.index == other.index or self.card == other or other.card == self


class Reservation(msgspec.Struct, frozen=True, kw_only=True):
    """As it is kept. Times are seconds since 1970; it holds its GPUs from `start` until just before `last`."""

    id: str
    # Whose it is, and who made it: names of accounts, which are logins.
    person: str
    maker: str
    places: tuple[Place, ...]
    start: float
    end: float
    comment: str = ""
    # Made by `gpulse free --hold`, so that nobody snaps away what was found.
    hold: bool = False
    made_at: float
    # Another, higher number after each change.
    revision: int
    # When it was last changed; None: never.
    changed_at: float | None = None
    # When it was ended before its time, and how.
    ended_at: float | None = None
    ending: Ending | None = None
    imported: bool = False

    @property
    def last(self) -> float:
        """Until when it really holds its GPUs; not after its start where it was cancelled before."""
        return self.end if self.ended_at is None else min(self.end, self.ended_at)

    @property
    def holds(self) -> bool:
        """Whether it ever holds its GPUs."""
        return self.last > self.start

    def state(self, now: float) -> State:
        if not self.holds:
            return "cancelled" if self.ending == "cancelled" else "over"
        if now < self.start:
            return "coming"
        return "now" if now < self.last else "over"


class Origin(NamedTuple):
    """The entry of a file that a reservation was made of: who had which GPU until when, as it stood there."""

    host: str
    index: str  # type: ignore[assignment]  # as of a place
    name: str
    end: float


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A reservation that somebody would like to have."""

    person: str
    places: tuple[Place, ...]
    start: float
    end: float
    comment: str = ""
    hold: bool = False
    imported: bool = False
    # What it is imported from.
    origins: tuple[Origin, ...] = ()


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What shall be another in a reservation; None stays as it is."""

    person: str | None = None
    places: tuple[Place, ...] | None = None
    start: float | None = None
    end: float | None = None
    # So many seconds later than its end, whatever that is by the time it is changed.
    longer: float = 0.0
    comment: str | None = None


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a reservation's history."""

    at: float
    by: str
    action: Literal["made", "changed", "ended", "cancelled", "released", "imported"]
    before: Reservation | None
    after: Reservation


class Alternative(msgspec.Struct, frozen=True, kw_only=True):
    """What could be had in place of what is taken."""

    start: float
    end: float
    places: tuple[Place, ...]


def place_of(gpu: GpuView) -> Place | None:
    """Where a GPU is; None where nobody knows."""
    index = index_of(gpu)
    return None if index is None else Place(gpu.node, index)


def in_order(places: Iterable[Place]) -> tuple[Place, ...]:
    """Each once, as people count: gpu03:2 before gpu03:10."""
    return tuple(sorted(set(places), key=_counted))


def wanted_places(places: Iterable[Place]) -> tuple[Place, ...]:
    """In order, without the instances of cards that are among them: who has a card has those."""
    named = set(places)
    return in_order(place for place in named if Place(place.node, place.index.partition(".")[0]) not in named - {place})


def storable(text: str) -> str:
    """The text with what no database takes made visible."""
    return text.replace("\0", "�").encode("utf-8", "replace").decode("utf-8")


def _counted(place: Place) -> tuple[str, list[tuple[int, str]]]:
    return place.node, [(int(part) if part.isdecimal() else -1, part) for part in place.index.split(".")]
