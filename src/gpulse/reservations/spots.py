"""What the fleet has to know of reservations, kept in step: only where something has changed is looked at again."""

from collections import Counter

from gpulse.fleet.booked import Booked, Bookings, Spot, card_of
from gpulse.reservations.model import Place, Reservation
from gpulse.reservations.table import Reservations

# What begins later than anybody may ask for free GPUs is not booked in the fleet yet.
AHEAD_SECONDS = 366 * 86400.0


class Spots:
    """`bookings` costs as much as there is new since it was asked for last."""

    def __init__(self, table: Reservations) -> None:
        self._table = table
        self._looked = float("-inf")
        # By place: of now, the next, and the first after that which is another person's.
        self._now: dict[Spot, Booked] = {}
        self._later: dict[Spot, Booked] = {}
        self._after: dict[Spot, Booked] = {}
        self._people: Counter[str] = Counter()
        # How many places of a node have reservations of now or later, and which instances of a card.
        self._nodes: Counter[str] = Counter()
        self._parts: dict[Spot, frozenset[Spot]] = {}

    def bookings(self, now: float) -> Bookings:
        table, before = self._table, self._looked
        self._looked = now
        places = table.touched() | table.turning(before, now)
        places |= table.turning(before + AHEAD_SECONDS, now + AHEAD_SECONDS)
        for place in places:
            self._look(place, now)
        return Bookings(
            dict(self._now),
            dict(self._later),
            dict(self._after),
            frozenset(self._nodes),
            frozenset(self._people),
            dict(self._parts),
        )

    def _look(self, place: Place, now: float) -> None:
        named = place in self._now or place in self._later
        running, coming, other = self._table.around(place, now, now + AHEAD_SECONDS)
        for part, one in ((self._now, running), (self._later, coming), (self._after, other)):
            self._put(part, place, one)
        if named != (running is not None or coming is not None):
            _add(self._nodes, place.node, -1 if named else 1)
            self._name(place, not named)

    def _put(self, part: dict[Spot, Booked], place: Place, one: Reservation | None) -> None:
        before = part.pop(place, None)
        if before is not None:
            _add(self._people, before.person, -1)
        if one is not None:
            part[place] = Booked(one.id, one.person, one.start, one.last, one.comment, one.hold)
            _add(self._people, one.person, 1)

    def _name(self, place: Place, named: bool) -> None:
        card = card_of(place)
        if card == place:
            return
        parts = self._parts.pop(card, frozenset())
        parts = parts | {place} if named else parts - {place}
        if parts:
            self._parts[card] = parts


def _add(counter: Counter[str], key: str, number: int) -> None:
    counter[key] += number
    if not counter[key]:
        del counter[key]
