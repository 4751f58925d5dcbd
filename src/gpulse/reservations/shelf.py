"""Reservations in memory, in the orders in which they are asked for."""

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable
from itertools import islice
from typing import NamedTuple

from gpulse.reservations.model import Place, Reservation

# A moment and an id: reservations by their start or by their last moment.
_Mark = tuple[float, str]


class Around(NamedTuple):
    """What a place has: now, next, and the first after that which is another person's."""

    running: Reservation | None
    coming: Reservation | None
    other: Reservation | None


class Shelf:
    """One thread's. What lies on it is found by id, by node, and by when it starts and ends."""

    def __init__(self) -> None:
        self._known: dict[str, Reservation] = {}
        self._nodes: dict[str, dict[str, Reservation]] = {}
        # Of those that hold GPUs; by place, and of all.
        self._places: dict[Place, list[_Mark]] = {}
        self._starts: list[_Mark] = []
        self._lasts: list[_Mark] = []
        # Where something has changed since this was asked for last.
        self._touched: set[Place] = set()

    def __len__(self) -> int:
        return len(self._known)

    def get(self, identity: str) -> Reservation | None:
        return self._known.get(identity)

    def put(self, reservation: Reservation) -> bool:
        """Whether it is newer than what was there."""
        known = self._known.get(reservation.id)
        if known is not None:
            if known.revision >= reservation.revision:
                return False
            self._drop(known)
        self._known[reservation.id] = reservation
        self._touched.update(reservation.places)
        if reservation.holds:
            insort(self._starts, (reservation.start, reservation.id))
            insort(self._lasts, (reservation.last, reservation.id))
            for place in reservation.places:
                insort(self._places.setdefault(place, []), (reservation.start, reservation.id))
        for place in reservation.places:
            self._nodes.setdefault(place.node, {})[reservation.id] = reservation
        return True

    def remove_before(self, moment: float) -> None:
        """Those that were over by then."""
        for reservation in [one for one in self._known.values() if one.last <= moment]:
            self._drop(reservation)

    def current(self, now: float) -> list[Reservation]:
        """Those that hold GPUs now, the first to start first."""
        return self.between(now, math.nextafter(now, math.inf))

    def next_change(self, now: float) -> float:
        """When the next one starts or ends after now."""
        found = float("inf")
        for marks in (self._starts, self._lasts):
            at = bisect_right(marks, now, key=_moment)
            if at < len(marks):
                found = min(found, marks[at][0])
        return found

    def between(self, start: float, end: float) -> list[Reservation]:
        """Those that hold GPUs at some time from `start` until before `end`, the first to start first."""
        begun = bisect_left(self._starts, end, key=_moment)
        over = bisect_right(self._lasts, start, key=_moment)
        # Whichever is less to go through: what has begun by the end, or what is not over at the start.
        if begun <= len(self._lasts) - over:
            found = (self._known[identity] for _, identity in self._starts[:begun])
            return [one for one in found if one.last > start]
        found = (self._known[identity] for _, identity in self._lasts[over:])
        return in_turn(one for one in found if one.start < end)

    def planned(self, start: float, end: float) -> list[Reservation]:
        """Those that were meant for the span, also if they were cancelled or ended before it."""
        return in_turn(one for one in self._known.values() if one.start < end and one.end > start)

    def on_nodes(self, nodes: Collection[str], start: float, end: float) -> list[Reservation]:
        """Of those that hold GPUs in the span the ones on some nodes."""
        found = {one.id: one for node in nodes for one in self._nodes.get(node, {}).values()}
        return in_turn(one for one in found.values() if one.start < end and one.last > start and one.holds)

    def around(self, place: Place, now: float, until: float) -> Around:
        marks = self._places.get(place, ())
        at = bisect_right(marks, now, key=_moment)
        # Of one place at most one is not over.
        begun = self._known[marks[at - 1][1]] if at else None
        coming = (self._known[identity] for start, identity in islice(marks, at, None) if start < until)
        first = next(coming, None)
        other = None if first is None else next((one for one in coming if one.person != first.person), None)
        return Around(begun if begun is not None and begun.last > now else None, first, other)

    def touched(self) -> set[Place]:
        """Where a reservation came, changed or went since this was asked for last."""
        touched, self._touched = self._touched, set()
        return touched

    def turning(self, one: float, other: float) -> set[Place]:
        """Where a reservation begins or ends between two moments, whichever is the later."""
        found: set[Place] = set()
        for marks in (self._starts, self._lasts):
            first, last = (bisect_right(marks, moment, key=_moment) for moment in sorted((one, other)))
            for _, identity in marks[first:last]:
                found.update(self._known[identity].places)
        return found

    def all(self) -> list[Reservation]:
        return list(self._known.values())

    def _drop(self, reservation: Reservation) -> None:
        del self._known[reservation.id]
        self._touched.update(reservation.places)
        if reservation.holds:
            del self._starts[bisect_left(self._starts, (reservation.start, reservation.id))]
            del self._lasts[bisect_left(self._lasts, (reservation.last, reservation.id))]
            for place in reservation.places:
                marks = self._places[place]
                del marks[bisect_left(marks, (reservation.start, reservation.id))]
                if not marks:
                    del self._places[place]
        for node in {place.node for place in reservation.places}:
            there = self._nodes[node]
            there.pop(reservation.id)
            if not there:
                del self._nodes[node]


def in_turn(reservations: Iterable[Reservation]) -> list[Reservation]:
    """The first to start first."""
    return sorted(reservations, key=lambda one: (one.start, one.id))


def _moment(mark: _Mark) -> float:
    return mark[0]
