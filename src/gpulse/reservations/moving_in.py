"""What becomes of the entries of a comments.json: which are to be reserved, and why the others are not."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import groupby
from typing import Literal, NamedTuple

import msgspec

from gpulse.errors import ReservationError, WhenError
from gpulse.reservations.comments import Entry
from gpulse.reservations.dates import Moment, parse_moment, shown
from gpulse.reservations.model import Place, Reservation, Wanted

Outcome = Literal["reserved", "already", "over", "conflict", "no_such_gpu", "not_understood", "refused", "empty"]
# The file has minutes.
_SAME_SECONDS = 60.0
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


class Whose(NamedTuple):
    """Who is meant by a name of the file."""

    login: str
    # What should be known about that; "": nothing, it is the login as it is in the file.
    note: str = ""

    def told(self, message: str) -> str:
        return f"{message}; {self.note}" if self.note else message


def plan(
    entries: Sequence[Entry],
    gpus: Mapping[str, Sequence[str]],
    known: Sequence[Reservation],
    now: datetime,
    people: Mapping[str, Whose],
) -> list[Step]:
    """`gpus` has the indices of each node; `known` those that hold something from now on, and all that were imported.

    Dates are of the zone of `now`. Whoever is not among `people` is as the file has them.
    """
    names = _names(gpus)
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
        place, why = _place(entry, gpus, names)
        if place is None:
            return Step(entry, "no_such_gpu", why, end=moment.at)
        whose = people.get(entry.person, Whose(entry.person))
        there = _already(entry, whose.login, moment.at.timestamp(), by_place.get(place, ()))
        if there is not None:
            since = _since(there, now)
            message = whose.told(since) if there.person == whose.login else since
            return Step(entry, "already", message, place, moment.at, reservation=there.id)
        return Step(
            entry,
            "reserved",
            whose.told(f"until {moment.understood}"),
            place,
            moment.at,
            Wanted(
                person=whose.login,
                places=(place,),
                start=now.timestamp(),
                end=moment.at.timestamp(),
                comment=entry.comment,
                imported=True,
            ),
        )

    return [step(entry) for entry in entries]


def done(steps: Sequence[Step], made: Sequence[Reservation | ReservationError]) -> list[Step]:
    """The steps with what became of those that were wanted, in their order."""
    outcomes = iter(made)
    return [step if step.wanted is None else _done(step, next(outcomes)) for step in steps]


def grouped(steps: Sequence[Step]) -> list[list[int]]:
    """Which of the steps that can be done are one reservation: of one person, on one node, until one end."""
    able = [at for at, step in enumerate(steps) if step.outcome == "reserved"]
    return [list(group) for _, group in groupby(able, key=lambda at: _kind(steps[at]))]


def wanted_together(steps: Sequence[Step], group: Sequence[int]) -> Wanted:
    """All of a group as one."""
    each = [one for at in group if (one := steps[at].wanted) is not None]
    return msgspec.structs.replace(each[0], places=tuple(place for one in each for place in one.places))


def done_together(
    steps: Sequence[Step], groups: Sequence[Sequence[int]], made: Sequence[Reservation | ReservationError]
) -> list[Step]:
    """The steps with what became of the group of each."""
    became = {at: outcome for group, outcome in zip(groups, made, strict=True) for at in group}
    return [_done(step, became[at]) if at in became else step for at, step in enumerate(steps)]


def _kind(step: Step) -> tuple[str, str, float, str] | None:
    one = step.wanted
    return None if one is None else (one.places[0].node, one.person, one.end, one.comment)


def _done(step: Step, made: Reservation | ReservationError) -> Step:
    if isinstance(made, Reservation):
        return step._replace(reservation=made.id or None)
    if made.code != "conflict":
        return step._replace(outcome="refused", message=str(made))
    zone = None if step.end is None else step.end.tzinfo
    others = ", ".join(
        f"{one.person} from {shown(datetime.fromtimestamp(int(one.start), zone))}"
        f" until {shown(datetime.fromtimestamp(int(one.last), zone))}"
        for one in made.conflicts
    )
    ids = [one.id for one in made.conflicts if one.id]
    message = f"it is reserved by {others}" if others else str(made)
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


def _already(entry: Entry, login: str, end: float, there: Sequence[Reservation]) -> Reservation | None:
    """One that was made of this entry, however it went on, or that is just as well."""
    # When it was made others may have been known, and so another login, or the name itself, been taken.
    names = {entry.person.casefold(), login.casefold()}
    for one in there:
        same = one.person.casefold() in names and abs(one.end - end) < _SAME_SECONDS
        if same and (one.imported or one.ended_at is None):
            return one
    return None


def _since(there: Reservation, now: datetime) -> str:
    if there.ended_at is None:
        return "it is reserved already"
    ended = shown(datetime.fromtimestamp(int(there.ended_at), now.tzinfo))
    return f"it was imported, and ended {ended}"


def _names(gpus: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Nodes by what else they may be called: without their domain, in small letters."""
    names: dict[str, list[str]] = {}
    for node in gpus:
        names.setdefault(_short(node), []).append(node)
    return names


def _short(node: str) -> str:
    return node.partition(".")[0].casefold()


def _place(
    entry: Entry, gpus: Mapping[str, Sequence[str]], names: Mapping[str, Sequence[str]]
) -> tuple[Place | None, str]:
    """Where it is; else why that is not known."""
    same = [entry.node] if entry.node in gpus else names.get(_short(entry.node), [])
    if len(same) != 1:
        may = f"; {', '.join(same[:3])} may be meant" if same else ""
        return None, f'there is no node "{entry.node[:100]}"{may}'
    node = same[0]
    index = str(int(entry.index)) if entry.index.isascii() and entry.index.isdigit() else entry.index.strip()
    if index in gpus[node]:
        return Place(node, index), ""
    if not gpus[node]:
        return None, f"{node} has not told yet which GPUs it has; import again when it is up"
    if not index:
        return None, "it does not say which GPU; a list or a dictionary of GPUs should stand there"
    return None, f'there is no GPU "{index[:40]}" on {node}, which has {", ".join(gpus[node][:64])}'
