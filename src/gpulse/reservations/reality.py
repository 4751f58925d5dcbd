"""Where what runs is not as it was reserved; pure. It is told, and nothing is done about it here.

squatter: somebody else is on a GPU that is reserved now. no_show: it is reserved now, and for some time nobody has been
on any of its GPUs, all of which could be worked on. overrun: a reservation is over, and its person's processes from
before are still there; what was held was held for them to start, so that it is never overrun. blocked: somebody is on a
GPU that another's reservation begins on soon. Of GPUs that are not there, as their node is down, nothing is said.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from gpulse.config.reservations import Reservations as Settings
from gpulse.reservations.model import Place, Reservation

Kind = Literal["squatter", "no_show", "overrun", "blocked"]
# How long after its end a reservation is overrun.
OVERRUN_SECONDS = 86400.0


class Seen(NamedTuple):
    """Somebody on a GPU: since when, and with which processes."""

    login: str
    since: float
    pids: tuple[int, ...] = ()


class Use(NamedTuple):
    """Who is on the GPU at a place; `up` is false where the hub does not know that now."""

    up: bool
    seen: tuple[Seen, ...] = ()
    # Whether somebody is there of whom it is not known who: it may be anybody.
    unknown: bool = False
    # False where nobody can be expected to work on it: the card is broken, or a MIG instance is not there any more.
    usable: bool = True


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """`person` is whose reservation it is, `other` who else is there; a no-show has all GPUs of its reservation."""

    kind: Kind
    reservation: str
    place: Place | None
    person: str
    other: str | None
    since: float
    message: str
    pids: tuple[int, ...] = ()
    # When a no-show is released, where the settings say so and it lasts until then.
    release_at: float | None = None


class Idle(NamedTuple):
    """When somebody was last on what they have reserved, and since when it is told that nobody comes."""

    used: float
    told: float | None = None


class Memory(NamedTuple):
    """What is remembered from one look to the next: since when there are looks, and of each reservation of now."""

    began: float
    idle: Mapping[str, Idle] = {}


def findings(
    nearby: Sequence[Reservation], now: float, uses: Mapping[Place, Use], memory: Memory, settings: Settings
) -> tuple[list[Finding], Memory]:
    """All there is to say now, and what to remember for the next time.

    `nearby` are the reservations from OVERRUN_SECONDS ago until `blocked_minutes` from now. A place that `uses` does
    not have is as one whose node is down.
    """
    current = [one for one in nearby if one.state(now) == "now"]
    holders = _Holders(current)
    idle: dict[str, Idle] = {}
    found: list[Finding] = []
    for one in current:
        found += _squatters(one, uses)
        idle[one.id] = _idle(one, now, uses, memory, settings)
        if idle[one.id].told is not None:
            unused = _finding("no_show", one, None, None, idle[one.id].used)
            found.append(msgspec.structs.replace(unused, release_at=_release_at(one, idle[one.id], settings)))
    for one in nearby:
        state = one.state(now)
        if state == "coming" and one.start - now <= settings.blocked_minutes * 60:
            found += _blocking(one, uses, holders)
    found += _overruns(nearby, now, uses, holders)
    return found, Memory(memory.began, idle)


def words(kind: Kind, person: str, other: str | None, place: Place | None) -> str:
    """A finding for people, without its times; whoever may not know a name puts another in."""
    if kind == "squatter":
        return f"{person} has reserved {place}, and {other} is on it"
    if kind == "blocked":
        return f"{person} has reserved {place} for soon, and {other} is on it"
    if kind == "overrun":
        return f"{person}'s reservation of {place} is over, and {person} is still on it"
    return f"{person} has reserved GPUs and does not use them"


def _squatters(one: Reservation, uses: Mapping[Place, Use]) -> Iterator[Finding]:
    for place, seen in _there(one, uses):
        if seen.login != one.person:
            yield _finding("squatter", one, place, seen, max(seen.since, one.start))


class _Holders:
    """Who has a place now, or something of it."""

    def __init__(self, current: Iterable[Reservation]):
        self._places: dict[Place, set[str]] = {}
        # By card those who have instances of it.
        self._parts: dict[Place, set[str]] = {}
        for one in current:
            for place in one.places:
                self._places.setdefault(place, set()).add(one.person)
                if place != place.card:
                    self._parts.setdefault(place.card, set()).add(one.person)

    def at(self, place: Place) -> set[str]:
        found = (self._places.get(place), self._places.get(place.card), self._parts.get(place))
        return {person for people in found if people is not None for person in people}


def _blocking(one: Reservation, uses: Mapping[Place, Use], holders: _Holders) -> Iterator[Finding]:
    for place, seen in _there(one, uses):
        # Who has reserved it until then is where they should be.
        if seen.login != one.person and seen.login not in holders.at(place):
            yield _finding("blocked", one, place, seen, seen.since)


def _overruns(nearby: Sequence[Reservation], now: float, uses: Mapping[Place, Use], holders: _Holders) -> list[Finding]:
    """By place and person only the last of their reservations there."""
    found: dict[tuple[Place, str], Finding] = {}
    for one in sorted(nearby, key=lambda one: one.last):
        if one.hold or one.state(now) != "over" or not one.holds or now - one.last >= OVERRUN_SECONDS:
            continue
        for place, seen in _there(one, uses):
            if seen.login == one.person and seen.since < one.last and one.person not in holders.at(place):
                alone = _finding("overrun", one, place, None, one.last)
                found[place, one.person] = msgspec.structs.replace(alone, pids=seen.pids)
    return list(found.values())


def _idle(one: Reservation, now: float, uses: Mapping[Place, Use], memory: Memory, settings: Settings) -> Idle:
    used = _last_used(one, now, uses, memory)
    if one.hold or now - used < settings.no_show_minutes * 60:
        return Idle(used)
    before = memory.idle.get(one.id)
    return Idle(used, now if before is None or before.told is None or before.used != used else before.told)


def _last_used(one: Reservation, now: float, uses: Mapping[Place, Use], memory: Memory) -> float:
    """When its person was last on one of its GPUs, or may have been, or could first have come."""
    known = [uses[place] for place in one.places if place in uses and uses[place].up]
    # Who cannot reach a node, or finds somebody else there, is no no-show; and it may be unknown who is on it.
    if len(known) < len(one.places) or any(use.unknown or use.seen or not use.usable for use in known):
        return now
    before = memory.idle.get(one.id)
    # Who has just changed it means to come.
    return max(one.start, memory.began, one.changed_at or one.start, before.used if before is not None else one.start)


def _release_at(one: Reservation, idle: Idle, settings: Settings) -> float | None:
    """So long after it was told that nobody comes: not at once where that was late."""
    if idle.told is None or not settings.release_no_shows:
        return None
    at = idle.told + settings.release_minutes * 60
    return at if at < one.last else None


def _there(one: Reservation, uses: Mapping[Place, Use]) -> Iterator[tuple[Place, Seen]]:
    for place in one.places:
        use = uses.get(place)
        if use is not None and use.up:
            for seen in use.seen:
                yield place, seen


def _finding(kind: Kind, one: Reservation, place: Place | None, seen: Seen | None, since: float) -> Finding:
    other = None if seen is None else seen.login
    return Finding(
        kind=kind,
        reservation=one.id,
        place=place,
        person=one.person,
        other=other,
        since=since,
        message=words(kind, one.person, other, place),
        pids=() if seen is None else seen.pids,
    )
