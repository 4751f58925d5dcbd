"""What becomes of the entries of a comments.json: which are to be reserved, and why the others are not."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Literal, NamedTuple

import msgspec

from gpulse.errors import ReservationError, WhenError
from gpulse.reservations.comments import Entry
from gpulse.reservations.dates import Moment, parse_moment, shown
from gpulse.reservations.hosts import Hosts
from gpulse.reservations.model import Origin, Place, Reservation, Wanted
from gpulse.reservations.origins import SAME_SECONDS, Origins, Whose
from gpulse.reservations.places_text import places_text

Outcome = Literal["reserved", "already", "over", "conflict", "no_such_gpu", "not_understood", "refused", "empty"]
# Of an index that no GPU has.
_LONGEST_TOLD = 40
# A text that means the same on another day, in another year, does not depend on when it was written.
_ANOTHER_DAY = timedelta(days=399)


class Step(NamedTuple):
    """What is to be done for an entry, or was found without doing anything."""

    entry: Entry
    outcome: Outcome
    message: str = ""
    place: Place | None = None
    end: datetime | None = None
    # What to reserve; None: nothing.
    wanted: Wanted | None = None
    # The reservation it is about.
    reservation: str | None = None


def plan(
    entries: Sequence[Entry],
    gpus: Mapping[str, Sequence[str]],
    known: Sequence[Reservation],
    now: datetime,
    people: Mapping[str, Whose],
    imported: Sequence[tuple[Origin, Reservation]] = (),
) -> list[Step]:
    """`gpus` has the indices of each node; `known` those that hold something from now on.

    Dates are of the zone of `now`. Whoever is not among `people` is as the file has them. `imported` are entries of
    earlier imports that are not over in their files, with what was made of them.
    """
    hosts = Hosts(gpus, (entry.node for entry in entries))
    origins = Origins(imported, hosts, people)
    by_place: dict[Place, list[Reservation]] = {}
    for one in known:
        for place in one.places:
            by_place.setdefault(place, []).append(one)

    @lru_cache(maxsize=10_000)
    def dated(text: str) -> Moment | WhenError:
        try:
            return _dated(text, now)
        except WhenError as error:
            return error

    def step(entry: Entry) -> Step:
        if entry.empty:
            return Step(entry, "empty")
        if entry.trouble:
            return Step(entry, "not_understood", entry.trouble)
        moment = dated(entry.until)
        if isinstance(moment, WhenError):
            return Step(entry, "not_understood", str(moment))
        if moment.at <= now:
            return Step(entry, "over", f"it ended {moment.understood}", end=moment.at)
        place, why = _place(entry, gpus, hosts)
        whose, end = people.get(entry.person, Whose(entry.person)), moment.at.timestamp()
        origin = Origin(entry.node, _index(entry), entry.person, end)
        # When it was made others may have been known, and so another login, or the name itself, been taken.
        names = {entry.person.casefold(), whose.login.casefold()}
        alike = [] if place is None else [one for one in by_place.get(place, ()) if _as_well(place, names, end, one)]
        there = next(iter(alike), None) or origins.made_of(origin)
        if there is not None:
            since = _since(there, _as_well(place, names, end, there), now)
            message = whose.told(since) if there.person == whose.login else since
            return Step(entry, "already", _on(place, entry, message), place, moment.at, reservation=there.id)
        if place is None:
            return Step(entry, "no_such_gpu", why, end=moment.at)
        return Step(
            entry,
            "reserved",
            _on(place, entry, whose.told(f"until {moment.understood}")),
            place,
            moment.at,
            Wanted(
                person=whose.login,
                places=(place,),
                start=now.timestamp(),
                end=end,
                comment=entry.comment,
                imported=True,
                origins=(origin,),
            ),
        )

    return [step(entry) for entry in entries]


def done(steps: Sequence[Step], made: Sequence[Reservation | ReservationError]) -> list[Step]:
    """The steps with what became of those that were wanted, in their order."""
    outcomes = iter(made)
    return [step if step.wanted is None else _done(step, next(outcomes)) for step in steps]


def grouped(steps: Sequence[Step]) -> list[list[int]]:
    """Which of the steps that can be done are one reservation: of one person, on one node, until one end.

    In the file others may stand between them.
    """
    groups: dict[tuple[str, str, float, str], list[int]] = {}
    for at, step in enumerate(steps):
        if step.outcome == "reserved" and step.wanted is not None:
            groups.setdefault(_kind(step.wanted), []).append(at)
    return list(groups.values())


def wanted_together(steps: Sequence[Step], group: Sequence[int]) -> Wanted:
    """All of a group as one."""
    each = [one for at in group if (one := steps[at].wanted) is not None]
    return msgspec.structs.replace(
        each[0],
        places=tuple(place for one in each for place in one.places),
        origins=tuple(origin for one in each for origin in one.origins),
    )


def done_together(
    steps: Sequence[Step], groups: Sequence[Sequence[int]], made: Sequence[Reservation | ReservationError]
) -> list[Step]:
    """The steps with what became of the group of each."""
    became = {at: outcome for group, outcome in zip(groups, made, strict=True) for at in group}
    return [_done(step, became[at]) if at in became else step for at, step in enumerate(steps)]


def _kind(one: Wanted) -> tuple[str, str, float, str]:
    return one.places[0].node, one.person, one.end, one.comment


def _done(step: Step, made: Reservation | ReservationError) -> Step:
    if isinstance(made, Reservation):
        return step._replace(reservation=made.id or None)
    if made.code != "conflict":
        return step._replace(outcome="refused", message=_on(step.place, step.entry, str(made)))
    zone = None if step.end is None else step.end.tzinfo
    others = ", ".join(
        f"{one.person} from {shown(datetime.fromtimestamp(int(one.start), zone))}"
        f" until {shown(datetime.fromtimestamp(int(one.last), zone))}"
        for one in made.conflicts
    )
    ids = [one.id for one in made.conflicts if one.id]
    message = f"it is reserved by {others}" if others else str(made)
    message = _on(step.place, step.entry, message)
    return step._replace(outcome="conflict", message=message, reservation=ids[0] if ids else None)


def _dated(text: str, now: datetime) -> Moment:
    moment = parse_moment(text, now, end_of=True)
    try:
        later = parse_moment(text, now + _ANOTHER_DAY, end_of=True)
    except WhenError:
        later = None
    if later is None or later.at != moment.at:
        raise WhenError(f'what "{text}" means depends on when it was written', "write it like 2026-12-01 18:00")
    return moment


def _as_well(place: Place | None, names: Collection[str], end: float, there: Reservation) -> bool:
    """Whether it is just what the entry says."""
    same = there.person.casefold() in names and abs(there.end - end) < SAME_SECONDS
    return same and there.ended_at is None and place in there.places


def _since(there: Reservation, as_well: bool, now: datetime) -> str:
    """What became of it."""
    last = shown(datetime.fromtimestamp(int(there.last), now.tzinfo))
    if there.last <= now.timestamp():
        return f"it was imported, and ended {last}"
    if as_well:
        return "it is reserved already"
    return f"it was imported, and changed since: {there.person} has {places_text(there.places)} until {last}"


def _on(place: Place | None, entry: Entry, message: str) -> str:
    """With the node, where the file calls it something else."""
    if place is None or place.node == entry.node:
        return message
    return f"{message}; {entry.node[:100]!r} is known here as {place.node}"


def _place(entry: Entry, gpus: Mapping[str, Sequence[str]], hosts: Hosts) -> tuple[Place | None, str]:
    """Where it is; else why that is not known."""
    node, why = hosts.node(entry.node)
    if node is None:
        return None, why
    index = _index(entry)
    if index in gpus[node]:
        return Place(node, index), ""
    if not gpus[node]:
        return None, f"{node} has not told yet which GPUs it has; import again when it is up"
    if not index:
        return None, "it does not say which GPU; a list or a dictionary of GPUs should stand there"
    said = index if len(index) <= _LONGEST_TOLD else f"{index[:_LONGEST_TOLD]}…"
    return None, f'there is no GPU "{said}" on {node}, which has {", ".join(gpus[node][:64])}'


def _index(entry: Entry) -> str:
    """As GPUs are counted; it may have more digits than Python makes a number of."""
    index = entry.index.strip()
    return index.lstrip("0") or "0" if index.isascii() and index.isdigit() else index
