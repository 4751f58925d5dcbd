"""What could be had in place of GPUs that are taken: the same later, or others of their kind at that time; pure."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from gpulse.reservations.model import Alternative, Place, Reservation, Wanted, in_order
from gpulse.reservations.rules import begun, overlapping

_MINUTE = 60.0


def alternatives(
    wanted: Wanted, others: Sequence[Reservation], kinds: Mapping[Place, str], now: float
) -> list[Alternative]:
    """The next time the same GPUs are free for as long, and others that are free at the time asked for.

    `kinds` has what may be offered, and of what kind it and the wanted ones are.
    """
    start, length = begun(wanted.start, now), wanted.end - wanted.start
    later = next_time(wanted.places, start, length, others)
    found = [Alternative(start=later, end=later + length, places=wanted.places)]
    elsewhere = _others_alike(wanted, start, others, kinds)
    if elsewhere:
        found.append(Alternative(start=start, end=wanted.end, places=elsewhere))
    return found


def next_time(places: Sequence[Place], start: float, length: float, others: Iterable[Reservation]) -> float:
    """The first moment from `start` on at which all the places are free for so long."""
    for other in overlapping(places, start, float("inf"), others):
        # They come by their start: what begins so late leaves enough room.
        if other.start >= start + length:
            break
        start = max(start, offered(other.last))
    return start


def offered(moment: float) -> float:
    """The moment, or soon after it, as people write it: what is offered must be free when they ask for it."""
    return math.ceil(moment / _MINUTE) * _MINUTE


def free_places(start: float, end: float, others: Iterable[Reservation]) -> Callable[[Place], bool]:
    """Tells of a place whether nobody has it, or something of it, in the span: made once, and asked of many places."""
    taken = {place for one in others if one.start < end and one.last > start and one.holds for place in one.places}
    # Who has a card has its instances, and who has an instance has something of the card.
    cards = {place.card for place in taken}
    return lambda place: place not in taken and place not in cards and place.card not in taken


def _others_alike(
    wanted: Wanted, start: float, others: Sequence[Reservation], kinds: Mapping[Place, str]
) -> tuple[Place, ...]:
    """As many of each kind as were wanted; on one node where those were on one."""
    if any(place not in kinds for place in wanted.places):
        return ()
    needed = Counter(kinds[place] for place in wanted.places)
    is_free = free_places(start, wanted.end, others)
    # By node, and in it by kind; who was on several nodes may get them anywhere.
    apart = len({place.node for place in wanted.places}) > 1
    free: dict[str, dict[str, list[Place]]] = {}
    for place, kind in kinds.items():
        if kind in needed and is_free(place):
            free.setdefault("" if apart else place.node, {}).setdefault(kind, []).append(place)
    for there in free.values():
        if all(len(there.get(kind, ())) >= count for kind, count in needed.items()):
            return in_order(place for kind, count in needed.items() for place in there[kind][:count])
    return ()
