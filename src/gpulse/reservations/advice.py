"""What could be had where something is in the way of what somebody wants, within what they may have; pure."""

from collections.abc import Iterable, Mapping, Sequence

from gpulse.errors import ReservationError
from gpulse.reservations import rules
from gpulse.reservations.alternatives import alternatives
from gpulse.reservations.model import Alternative, Place, Reservation, Wanted
from gpulse.reservations.rules import By


def for_new(
    wanted: Wanted, others: Sequence[Reservation], kinds: Mapping[Place, str], by: By, now: float
) -> list[Alternative]:
    """In place of what cannot be reserved. Of the others those near it are needed, and its person's."""
    return allowed(alternatives(wanted, others, kinds, now), wanted.person, others, by, now)


def for_change(
    before: Reservation,
    after: Reservation,
    conflicts: Iterable[Reservation],
    others: Sequence[Reservation],
    kinds: Mapping[Place, str],
    by: By,
    now: float,
) -> list[Alternative]:
    """In place of how it cannot become: first as much longer as it can be, then what to reserve beside it."""
    others = [one for one in others if one.id != before.id]
    same = after.places == before.places and after.person == before.person and after.start == before.start
    found: list[Alternative] = []
    free_until = min((one.start for one in conflicts), default=before.end)
    if same and before.end < free_until < after.end:
        found.append(Alternative(start=before.start, end=free_until, places=before.places))
    # What has passed of one that has begun cannot be had elsewhere.
    start = before.end if same and before.start <= now else max(after.start, now)
    meant = Wanted(person=after.person, places=after.places, start=start, end=after.end)
    return found + for_new(meant, others, kinds, by, now)


def allowed(
    offers: Iterable[Alternative], person: str, others: Sequence[Reservation], by: By, now: float
) -> list[Alternative]:
    """Without those that would be refused to who asks."""

    def may_be(offer: Alternative) -> bool:
        wanted = Wanted(person=person, places=offer.places, start=offer.start, end=offer.end)
        try:
            rules.check_asked(wanted, len(offer.places), others, by, now)
        except ReservationError:
            return False
        return True

    return [offer for offer in offers if may_be(offer)]
