"""Reservations of simulated people: most are used as they should be, some are not."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import NamedTuple

import msgspec

from gpulse.errors import ReservationError
from gpulse.fleet.booked import index_of
from gpulse.fleet.fleet import Fleet
from gpulse.reservations.model import Place, Wanted
from gpulse.reservations.rules import By
from gpulse.reservations.table import Reservations
from gpulse.simulate.people import PEOPLE
from gpulse.store import Records

_MAKER = "demo"
_HOUR = 3600.0
_DAY = 24 * _HOUR
_MOST_COMING = 400
_DAYS_AHEAD = 10
# How much of the cluster is reserved by who is on it.
_RESERVED_SHARE = 0.4
_COMMENTS = (
    "",
    "thesis deadline",
    "pretraining run 7",
    "ablations for the rebuttal",
    "group seminar demo",
    "please ask before you use them",
    "long evaluation, can be moved",
    "course: deep learning 2",
    "data-parallel test, 4 cards",
)


class Held(NamedTuple):
    """A GPU that somebody is on."""

    place: Place
    login: str
    since: float


class Plan(NamedTuple):
    """A reservation, and when it was made."""

    made_at: float
    wanted: Wanted


def plans(held: Sequence[Held], free: Sequence[Place], now: float, operator: str, seed: int = 1) -> list[Plan]:
    """In the order in which they were made. Some overlap: of those the first counts."""
    random = Random(seed)  # noqa: S311 - nothing secret: the same cluster again
    groups: dict[tuple[str, str], list[Held]] = {}
    for one in held:
        group = groups.setdefault((one.place.node, one.login), [])
        # Several processes may be on one.
        if one.place not in [other.place for other in group]:
            group.append(one)
    used = list(groups.values())
    random.shuffle(used)
    made = [*_at_odds(used, free, now, random), *_own(free, now, operator)]
    for group in used[: 1 + int(len(used) * _RESERVED_SHARE)]:
        start = now - random.uniform(0.5, 20) * _HOUR
        end = now + random.uniform(1, 40) * _HOUR
        made.append(_plan(group[0].login, [one.place for one in group], start, end, random))
    made += _coming([*(one.place for one in held), *free], now, random)
    return sorted(made, key=lambda plan: plan.made_at)


def _at_odds(used: list[list[Held]], free: Sequence[Place], now: float, random: Random) -> list[Plan]:
    """One of each kind of what is told about; what they take is left to nobody else."""
    made: list[Plan] = []
    if used:
        squatted = used.pop()
        person = _another(squatted[0].login, random)
        made.append(_plan(person, [squatted[0].place], now - 0.4 * _HOUR, now + 5 * _HOUR, random))
    if used:
        blocked = used.pop()
        person = _another(blocked[0].login, random)
        plan = _plan(person, [blocked[0].place], now + 0.6 * _HOUR, now + 9 * _HOUR, random)
        # Before all others that are to come: they find it taken.
        made.append(plan._replace(made_at=now - 150))
    old = next((group for group in used if group[0].since < now - 2 * _HOUR), None)
    if old is not None:
        used.remove(old)
        made.append(_plan(old[0].login, [old[0].place], now - 1.9 * _HOUR, now - 0.5 * _HOUR, random))
    if len(free) > 3:
        made.append(_plan(random.choice(PEOPLE).user, [free[3]], now - 0.8 * _HOUR, now + 7 * _HOUR, random))
    return made


def _own(free: Sequence[Place], now: float, operator: str) -> list[Plan]:
    """Of who looks at it."""
    made = []
    if free:
        wanted = Wanted(person=operator, places=(free[0],), start=now - 300, end=now + 2 * _HOUR, comment="my own test")
        made.append(Plan(now - 300, wanted))
    if len(free) > 2:
        wanted = Wanted(person=operator, places=tuple(free[1:3]), start=now + _DAY, end=now + 1.5 * _DAY)
        made.append(Plan(now - 200, wanted))
    return made


def _coming(places: list[Place], now: float, random: Random) -> list[Plan]:
    """One after the other on parts of each node, with gaps; of a very large cluster the first nodes."""
    by_node: dict[str, list[Place]] = {}
    for place in places:
        by_node.setdefault(place.node, []).append(place)
    made: list[Plan] = []
    for node in sorted(by_node):
        there = sorted(by_node[node], key=lambda place: (len(place.index), place.index))
        while there:
            count = random.choice((1, 2, 2, 4, 4, 8))
            made += _in_turn(there[:count], now, random)
            there = there[count:]
        if len(made) >= _MOST_COMING:
            break
    return made


def _in_turn(places: list[Place], now: float, random: Random) -> list[Plan]:
    made = []
    # On the hour, as people book.
    start = (now + random.uniform(1, 60) * _HOUR) // _HOUR * _HOUR + _HOUR
    while start < now + _DAYS_AHEAD * _DAY:
        end = start + random.choice((8, 10, 24, 24, 48, 72)) * _HOUR
        plan = _plan(random.choice(PEOPLE).user, places, start, end, random)
        made.append(plan._replace(made_at=now - 100))
        start = end + random.choice((0, 2, 14, 24, 48, 72)) * _HOUR
    return made


def _plan(person: str, places: Sequence[Place], start: float, end: float, random: Random) -> Plan:
    comment = random.choice(_COMMENTS)
    return Plan(start, Wanted(person=person, places=tuple(places), start=start, end=end, comment=comment))


def _another(login: str, random: Random) -> str:
    return random.choice([person.user for person in PEOPLE if person.user != login])


async def make_up(folder: Path, fleet: Fleet, operator: str, now: float) -> None:
    """Writes them into the database in a folder, as another process would; those of an earlier start are ended."""
    by = By(_MAKER, admin=True)
    with Records(folder) as records:
        earlier = Reservations(records, lambda: now)
        for one in earlier.between(now, float("inf")):
            if one.maker == _MAKER:
                await earlier.end(one.id, by)
        held, free = _there(fleet, now)
        moment = now
        # What began hours ago was made then.
        table = Reservations(records, lambda: moment)
        for plan in plans(held, free, now, operator):
            moment = plan.made_at
            try:
                await table.make(plan.wanted, by)
            except ReservationError:
                # Somebody had it, perhaps until a moment ago in an earlier start.
                moment = now
                with suppress(ReservationError):
                    await table.make(msgspec.structs.replace(plan.wanted, start=max(now, plan.wanted.start)), by)


def _there(fleet: Fleet, now: float) -> tuple[list[Held], list[Place]]:
    """Who is on which GPU, and which are free."""
    held: list[Held] = []
    free: list[Place] = []
    for name in fleet.names():
        node = fleet.known(name)
        for process in node.processes:
            if process.vanished:
                continue
            uuids = {use.uuid for use in process.gpus or () if use.kinds != ["graphics"]}
            for gpu in node.gpus:
                index = index_of(gpu)
                if gpu.uuid in uuids and index is not None and process.user is not None:
                    held.append(Held(Place(name, index), process.user, process.start_time or now))
        free += [
            Place(name, index)
            for gpu in fleet.gpus_of(name)
            if gpu.state == "free" and (index := index_of(gpu)) is not None
        ]
    return held, free
