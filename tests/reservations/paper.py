"""The model of the bookings: a sheet of paper with a line for each GPU and a column for each hour, with names on it."""

import math
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from itertools import permutations
from typing import Any, NamedTuple, Protocol

import msgspec

from gpulse.errors import ReservationError
from gpulse.reservations.model import Changes, Place, Reservation, Wanted
from gpulse.reservations.rules import By, Limits
from gpulse.reservations.table import Reservations, Witness
from tests.reservations.wanting import HOUR, NOW

LIMITS = Limits(ahead_days=1, longest_hours=12, most_gpus=3, most_reservations=4)
# What came of an ask: how the reservation is, or why not; None where there was nothing to release.
Outcome = Reservation | ReservationError | None
# What a reservation has that somebody asked for; the rest is the database's.
_ASKED = ("person", "maker", "start", "end", "comment", "ended_at", "ending")


class Paper(NamedTuple):
    """All that there ever was, by id, and what o'clock it is. People have the limits below, or none."""

    known: Mapping[str, Reservation]
    now: float

    def newest(self) -> int:
        """The number of the last change."""
        return max((one.revision for one in self.known.values()), default=0)

    def standing(self) -> list[Reservation]:
        return [one for one in self.known.values() if one.ended_at is None and one.end > self.now]

    def in_the_way(self, one: Reservation) -> set[str]:
        mine = cells(one)
        return {other.id for other in self.known.values() if other.id != one.id and cells(other) & mine}

    def may_be_new(self, one: Reservation, by: By) -> bool:
        """As the words of the documentation say it."""
        if one.end <= one.start or one.start < self.now or (one.person != by.name and not by.admin):
            return False
        if by.limits == LIMITS:
            own = [other for other in self.standing() if other.person == one.person]
            if (
                one.start > self.now + 24 * HOUR
                or one.end - one.start > 12 * HOUR
                or len(own) >= 4
                or any(sum(len(each.places) for each in (one, *own) if hour in hours(each)) > 3 for hour in hours(one))
            ):
                return False
        return not self.in_the_way(one)

    def may_become(self, before: Reservation, after: Reservation, by: By) -> bool:
        theirs = by.admin or by.name in (before.person, before.maker)
        if not theirs or before.ended_at is not None or before.end <= self.now:
            return False
        if after.person != before.person and not by.admin:
            return False
        if after.end <= max(after.start, self.now):
            return False
        if after.start != before.start and (before.start <= self.now or after.start < self.now):
            return False
        if self.in_the_way(after):
            return False
        return by.limits != LIMITS or self._within_limits(before, after)

    def _within_limits(self, before: Reservation, after: Reservation) -> bool:
        """What was there before need not be; what is added must."""
        added = hours(after) - (set() if set(after.places) - set(before.places) else hours(before))
        if not added:
            return True
        begins = after.start if after.start > before.start else before.end if after.end > before.end else self.now
        if begins > self.now + 24 * HOUR:
            return False
        if after.end - after.start > max(12 * HOUR, before.end - before.start):
            return False
        own = [one for one in self.known.values() if one.person == after.person and one.id != after.id]
        return all(sum(len(one.places) for one in (after, *own) if hour in hours(one)) <= 3 for hour in added)


def hours(one: Reservation) -> set[int]:
    """The hours it has on the paper; a part of an hour counts as one, as all bookings begin on the hour."""
    return set(range(math.floor((one.start - NOW) / HOUR), math.ceil((one.last - NOW) / HOUR)))


def whole(places: Iterable[Place]) -> tuple[Place, ...]:
    """Who names a card has its instances with it."""
    named = set(places)
    return tuple(place for place in named if "." not in place.index or place.card not in named)


def cells(one: Reservation) -> set[tuple[str, int]]:
    return {(line, hour) for place in one.places for line in _lines(place) for hour in hours(one)}


def _lines(place: Place) -> set[str]:
    """What has one of them in common cannot be had by two: a card has the lines of its two instances."""
    return {str(place)} if "." in place.index else {f"{place}.0", f"{place}.1"}


class Ask(Protocol):
    """Something that somebody asks for; `meant` is how the reservation is afterwards, None where it may not be."""

    @property
    def by(self) -> By: ...

    def work(self, table: Reservations, witness: Witness) -> Coroutine[Any, Any, Outcome]: ...

    def meant(self, paper: Paper) -> Reservation | None: ...


class Make(NamedTuple):
    by: By
    wanted: Wanted
    dry_run: bool = False

    def work(self, table: Reservations, witness: Witness) -> Coroutine[Any, Any, Outcome]:
        return table.make(self.wanted, self.by, dry_run=self.dry_run, witness=witness)

    def meant(self, paper: Paper) -> Reservation | None:
        one = self.as_new()
        return one if paper.may_be_new(one, self.by) else None

    def as_new(self) -> Reservation:
        asked = self.wanted
        return Reservation(
            id="", person=asked.person, maker=self.by.name, places=whole(asked.places), start=asked.start,
            end=asked.end, comment=asked.comment, made_at=0, revision=0,
        )  # fmt: skip


class Change(NamedTuple):
    by: By
    identity: str
    changes: Changes
    revision: int | None = None

    def work(self, table: Reservations, witness: Witness) -> Coroutine[Any, Any, Outcome]:
        return table.change(self.identity, self.changes, self.by, revision=self.revision, witness=witness)

    def meant(self, paper: Paper) -> Reservation | None:
        before = paper.known[self.identity]
        given = {key: value for key, value in msgspec.structs.asdict(self.changes).items() if value is not None}
        longer = given.pop("longer")
        after = msgspec.structs.replace(before, **given)
        after = msgspec.structs.replace(after, end=after.end + longer)
        after = msgspec.structs.replace(after, places=whole(after.places))
        if self.revision not in (None, before.revision) or not paper.may_become(before, after, self.by):
            return None
        return after


class Stop(NamedTuple):
    by: By
    identity: str

    def work(self, table: Reservations, witness: Witness) -> Coroutine[Any, Any, Outcome]:
        return table.end(self.identity, self.by, witness=witness)

    def meant(self, paper: Paper) -> Reservation | None:
        before = paper.known[self.identity]
        theirs = self.by.admin or self.by.name in (before.person, before.maker)
        if not theirs or before.ended_at is not None or before.end <= paper.now:
            return None
        ending = "ended" if before.start <= paper.now else "cancelled"
        return msgspec.structs.replace(before, ended_at=paper.now, ending=ending)


class Release(NamedTuple):
    by: By
    identity: str
    revision: int

    def work(self, table: Reservations, witness: Witness) -> Coroutine[Any, Any, Outcome]:
        return table.release(self.identity, revision=self.revision, witness=witness)

    def meant(self, paper: Paper) -> Reservation | None:
        before = paper.known[self.identity]
        if before.revision != self.revision or before.ended_at is not None:
            return None
        if not before.start <= paper.now < before.end:
            return None
        return msgspec.structs.replace(before, ended_at=paper.now, ending="no_show")


def agrees(ask: Ask, outcome: Outcome, paper: Paper) -> bool:
    """Whether that is what has to come of it, when it is asked while the paper is so."""
    meant = ask.meant(paper)
    if meant is None or not isinstance(outcome, Reservation):
        refused = outcome is None if isinstance(ask, Release) else isinstance(outcome, ReservationError)
        return meant is None and refused
    told = msgspec.structs.asdict(outcome)
    if set(outcome.places) != set(meant.places) or any(told[name] != getattr(meant, name) for name in _ASKED):
        return False
    # Where nothing is another than before, nothing is written either.
    return outcome == paper.known.get(outcome.id) or outcome.revision > paper.newest()


def order_of(asks: Sequence[Ask], outcomes: Sequence[Outcome], paper: Paper) -> tuple[int, ...] | None:
    """One after the other in this order, each would have come out just so; None where there is no such order."""
    for order in permutations(range(len(asks))):
        known = dict(paper.known)
        for number in order:
            outcome = outcomes[number]
            if not agrees(asks[number], outcome, Paper(known, paper.now)):
                break
            if isinstance(outcome, Reservation):
                known[outcome.id] = outcome
        else:
            return order
    return None
