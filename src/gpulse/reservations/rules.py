"""What may be reserved, by whom, and what in a reservation may be changed; pure.

All times are seconds since 1970. A reservation holds its GPUs from its start until just before its end, so that one
may begin at the moment another ends.
"""

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, tzinfo
from itertools import accumulate
from typing import NamedTuple

from gpulse.config.reservations import Limits
from gpulse.errors import ReservationError
from gpulse.reservations.model import Place, Reservation, Wanted

__all__ = [
    "ASK_AN_ADMIN",
    "NO_LIMITS",
    "By",
    "Limits",
    "begun",
    "check_asked",
    "check_change",
    "check_new",
    "check_stop",
    "held_for",
    "may_change",
    "may_stop",
    "overlapping",
    "taken_over",
]

NO_LIMITS = Limits()
# Who asks for "now" is late by the time it takes to ask.
LATE_SECONDS = 60.0
# 2200 begins: dates that people write end there, too.
END_OF_TIME = 7_258_118_400.0
# What helps where admins may what others may not.
ASK_AN_ADMIN = "ask an admin"
_MOST_NAMED = 3


class By(NamedTuple):
    """Who asks, and what they may."""

    name: str
    admin: bool = False
    limits: Limits = NO_LIMITS
    # Where their days are: two weeks are no longer for the hour that the clocks go back.
    zone: tzinfo = UTC
    # Whether they may reserve. Who may not any more can still let go of what is theirs.
    member: bool = True

    def limits_for(self, person: str) -> Limits:
        """What bounds them: what admins reserve for others is their own decision."""
        return NO_LIMITS if self.admin and person != self.name else self.limits


class Span(NamedTuple):
    start: float
    end: float


def begun(start: float, now: float) -> float:
    """When it starts in fact: a start of a moment ago is now."""
    return now if now - LATE_SECONDS <= start < now else start


def may_change(reservation: Reservation, by: By) -> bool:
    """Whether it is theirs to change: its person's, its maker's, and every admin's."""
    return by.member and (by.admin or by.name in (reservation.person, reservation.maker))


def may_stop(reservation: Reservation, by: By) -> bool:
    """Whether it is theirs to end or cancel."""
    return may_change(reservation, by) or by.name == reservation.person


def overlapping(places: Iterable[Place], start: float, end: float, others: Iterable[Reservation]) -> list[Reservation]:
    """Those of the others that hold one of the places, or a part of one, within the span; the first to start first."""
    wanted: dict[str, list[Place]] = {}
    for place in places:
        wanted.setdefault(place.node, []).append(place)
    found = [
        other
        for other in others
        if other.start < end
        and other.last > start
        and other.holds
        and any(place.shares(mine) for place in other.places for mine in wanted.get(place.node, ()))
    ]
    return sorted(found, key=lambda one: (one.start, one.id))


def check_new(wanted: Wanted, others: Sequence[Reservation], by: By, now: float) -> None:
    """ReservationError where it may not be. Of the others those in its way and its person's are needed."""
    _check_places(wanted.places)
    check_asked(wanted, len(wanted.places), others, by, now)
    check_overlap(wanted.places, begun(wanted.start, now), wanted.end, others)


def check_asked(wanted: Wanted, count: int, others: Sequence[Reservation], by: By, now: float) -> None:
    """ReservationError where it may not be, whichever `count` GPUs it were. Of the others its person's are needed."""
    if wanted.person != by.name and not by.admin:
        raise _not_yours("reservations for others are made by admins", f"make it for yourself, or {ASK_AN_ADMIN}")
    start, limits = begun(wanted.start, now), _limits_of(wanted, by)
    _check_times(start, wanted.end, now)
    _check_ahead(start, limits, now)
    _check_length(start, wanted.end, limits, by.zone)
    if limits != NO_LIMITS:
        own = [other for other in others if other.person == wanted.person and other.holds and other.last > now]
        _check_count(len(own) + 1, limits)
        span = Span(start, wanted.end)
        _check_gpus([(span, count), *_spans(own)], [span], limits)


def held_for(wanted: Wanted, others: Iterable[Reservation], by: By, now: float) -> list[Reservation]:
    """Those of the others that may become what is wanted, whichever GPUs those are: its person's holds, from now on."""
    if wanted.hold or begun(wanted.start, now) > now:
        return []
    own = (other for other in others if other.hold and other.person == wanted.person and may_change(other, by))
    return [other for other in own if other.holds and other.start < wanted.end and other.last > now]


def taken_over(wanted: Wanted, others: Iterable[Reservation], by: By, now: float) -> list[Reservation]:
    """Those of the others that it ends: what its person holds from now on becomes what they have reserved."""
    held = held_for(wanted, others, by, now)
    in_the_way = overlapping(wanted.places, begun(wanted.start, now), wanted.end, held)
    # Of what was held for more than this, the rest would be lost.
    return [hold for hold in in_the_way if set(hold.places) <= set(wanted.places)]


def check_change(before: Reservation, after: Reservation, others: Sequence[Reservation], by: By, now: float) -> None:
    """ReservationError where it may not become so. To make it smaller is always allowed to those whose it is."""
    _check_open(before, may_change(before, by), now)
    if after.person != before.person and not by.admin:
        raise _not_yours("whose a reservation is, is changed by admins", ASK_AN_ADMIN)
    _check_places(after.places)
    if before.start <= now:
        if after.start != before.start:
            raise ReservationError(
                422, "in_the_past", "it has begun already, so that its start stays", "end it, and make another"
            )
        if not after.end > now:
            raise ReservationError(422, "in_the_past", "the new end is in the past", "end it now instead")
    _check_times(max(after.start, now) if before.start <= now else after.start, after.end, now)
    # It may be larger than today's limits allow: they are for what is added.
    added, limits = _added(before, after), by.limits_for(after.person)
    if added and limits != NO_LIMITS:
        if after.start > before.start:
            _check_ahead(after.start, limits, now)
        elif after.end > before.end:
            _check_ahead(before.end, limits, now)
        if after.end - after.start > before.end - before.start:
            _check_length(after.start, after.end, limits, by.zone)
        own = [other for other in others if other.person == after.person and other.holds and other.id != after.id]
        whole = Span(after.start, after.end)
        _check_gpus([(whole, len(after.places)), *_spans(own)], added, limits)
    there = [other for other in others if other.id != after.id]
    check_overlap(after.places, max(after.start, now), after.end, there)
    before_it = overlapping(after.places, after.start, after.end, there)
    if before_it:
        raise ReservationError(
            409,
            "conflict",
            "since this reservation began, others have had what shall be added",
            "make another reservation for that",
            conflicts=before_it,
        )


def check_stop(reservation: Reservation, by: By, now: float) -> None:
    """ReservationError where somebody may not end or cancel it, or where there is nothing to end any more."""
    _check_open(reservation, may_stop(reservation, by), now)


def _check_open(reservation: Reservation, may: bool, now: float) -> None:
    if not may:
        raise _not_yours("this reservation is somebody else's", f"ask them, or {ASK_AN_ADMIN}")
    if reservation.ended_at is not None or reservation.end <= now:
        raise ReservationError(409, "over", "this reservation is over", "make another")


def _limits_of(wanted: Wanted, by: By) -> Limits:
    """What somebody had where they came from, they keep."""
    return NO_LIMITS if wanted.imported else by.limits_for(wanted.person)


def _added(before: Reservation, after: Reservation) -> list[Span]:
    """When it holds more than before."""
    if set(after.places) - set(before.places) or after.person != before.person:
        return [Span(after.start, after.end)]
    # Where it moved far away, all of it is new.
    parts = [Span(after.start, min(after.end, before.start)), Span(max(after.start, before.end), after.end)]
    return [part for part in parts if part.start < part.end]


def _check_places(places: Sequence[Place]) -> None:
    if not places:
        raise ReservationError(422, "no_gpus", "no GPU is named", 'name some, such as "gpu03:0-3"')


def _check_times(start: float, end: float, now: float) -> None:
    if not (math.isfinite(start) and math.isfinite(end)) or max(start, end) >= END_OF_TIME:
        raise ReservationError(
            422,
            "too_far",
            "the year 2200 and later cannot be reserved",
            "take an earlier end; numbers are seconds since 1970, not milliseconds",
        )
    if end <= start:
        raise ReservationError(422, "ends_before_start", "it would end before it starts", "take a later end")
    if start < now:
        raise ReservationError(422, "in_the_past", "the start is in the past", "leave it out to start now")


def _check_ahead(start: float, limits: Limits, now: float) -> None:
    if limits.ahead_days is not None and start > now + limits.ahead_days * 86400:
        raise ReservationError(
            422,
            "too_far",
            f"at most {limits.ahead_days:g} days ahead can be reserved",
            f"take an earlier start, or {ASK_AN_ADMIN}",
        )


def _check_length(start: float, end: float, limits: Limits, zone: tzinfo) -> None:
    hours = limits.longest_hours
    if hours is not None and min(end - start, _by_the_clocks(start, end, zone)) > hours * 3600:
        told = f"{hours / 24:g} days" if hours >= 48 else f"{hours:g} hours"
        raise ReservationError(
            422, "too_long", f"a reservation can be {told} long at most", f"take an earlier end, or {ASK_AN_ADMIN}"
        )


def _by_the_clocks(start: float, end: float, zone: tzinfo) -> float:
    """How long it is by the clocks on the walls there."""
    begin, finish = (datetime.fromtimestamp(moment, zone).replace(tzinfo=None) for moment in (start, end))
    return (finish - begin).total_seconds()


def _check_count(count: int, limits: Limits) -> None:
    most = limits.most_reservations
    if most is not None and count > most:
        raise ReservationError(
            422,
            "too_many",
            f"one person can have {most} reservations at most that are not over",
            f"end or cancel one of yours, or {ASK_AN_ADMIN}",
        )


def _spans(reservations: Iterable[Reservation]) -> list[tuple[Span, int]]:
    return [(Span(one.start, one.last), len(one.places)) for one in reservations]


def _check_gpus(held: Sequence[tuple[Span, int]], when: Sequence[Span], limits: Limits) -> None:
    """How many GPUs one person has at one time, looked at in some spans only."""
    most = limits.most_gpus
    if most is None:
        return
    for part in when:
        inside = [(span, count) for span, count in held if span.start < part.end and span.end > part.start]
        # Where one ends and another begins at a moment, the end comes first.
        steps = [(max(span.start, part.start), 1, count) for span, count in inside]
        steps += [(span.end, 0, -count) for span, count in inside]
        peak = max(accumulate(count for _, _, count in sorted(steps)), default=0)
        if peak > most:
            raise ReservationError(
                422,
                "too_many_gpus",
                f"one person can have {most} GPUs reserved at one time, and this would make {peak}",
                f"take fewer or another time, or {ASK_AN_ADMIN}",
            )


def check_overlap(places: Sequence[Place], start: float, end: float, others: Iterable[Reservation]) -> None:
    """Raise ReservationError where one of the others holds one of the places within the span."""
    conflicts = overlapping(places, start, end, others)
    if not conflicts:
        return
    held = [place for one in conflicts for place in one.places]
    taken = [str(place) for place in places if any(place.shares(other) for other in held)]
    named = ", ".join(taken[:_MOST_NAMED])
    if len(taken) > _MOST_NAMED:
        named += f" and {len(taken) - _MOST_NAMED} more"
    # Whose they are is not for everybody to know: who answers says so, to those who may.
    raise ReservationError(
        409,
        "conflict",
        f"{named} {'is' if len(taken) == 1 else 'are'} reserved at that time",
        "take another time or other GPUs",
        conflicts=conflicts,
    )


def _not_yours(message: str, detail: str) -> ReservationError:
    return ReservationError(403, "not_yours", message, detail)
