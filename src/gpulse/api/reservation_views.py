"""Reservations as the API tells of them, without what is hidden of others."""

from collections.abc import Iterable, Sequence
from datetime import UTC, tzinfo
from typing import Literal

import msgspec

from gpulse.auth.identity import Identity
from gpulse.auth.roles import at_least
from gpulse.config.reservations import Reservations as Settings
from gpulse.errors import RequestError, ReservationError
from gpulse.fleet.booked import index_of
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.sight import Sight
from gpulse.reservations.model import Alternative, Change, Ending, Place, Reservation, State
from gpulse.reservations.reality import Finding, Kind, words
from gpulse.reservations.rules import ASK_AN_ADMIN, By, may_change, may_stop

# Of an admin who came with a lesser key.
_OTHER_KEY = "do it on the page, or give gpulse login a key of yours that has the scope admin"


class ReservedGpu(msgspec.Struct, kw_only=True):
    """A place that is reserved: `index` is "0", of a MIG instance "0.2"."""

    node: str
    index: str
    # The id of the GPU that is there; null: there is none now.
    id: str | None


class ReservationView(msgspec.Struct, kw_only=True):
    """A reservation; times are seconds since 1970."""

    id: str
    # Whose it is and who made it: logins; `name` is what people call whose it is.
    person: str
    name: str
    maker: str
    gpus: list[ReservedGpu]
    start: float
    end: float
    # Until when it really holds its GPUs.
    last: float
    comment: str
    # Whether it is a short one, made by who looked for free GPUs.
    hold: bool
    made_at: float
    revision: int
    ended_at: float | None
    ending: Ending | None
    imported: bool
    state: State
    mine: bool
    may_change: bool
    # Whether who asks may end or cancel it: also who may not reserve any more.
    may_end: bool
    # What whoever made or changed it just now should know.
    notice: str | None = None


class FindingView(msgspec.Struct, kw_only=True):
    """Where what runs is not as it was reserved."""

    kind: Kind
    # The reservation's id.
    reservation: str
    # Null: all its GPUs.
    node: str | None
    index: str | None
    gpu: str | None
    # Whose reservation it is, and who else is there.
    person: str
    name: str
    other: str | None
    other_name: str | None
    since: float
    # The processes it is about, where they are told.
    pids: list[int]
    # In words, without its times.
    message: str
    # When a no-show is released; null where it is not.
    release_at: float | None


class Terms(msgspec.Struct, kw_only=True):
    """What a change was about."""

    person: str
    gpus: list[ReservedGpu]
    start: float
    end: float
    comment: str


class ChangeView(msgspec.Struct, kw_only=True):
    """An entry of a reservation's history."""

    at: float
    by: str
    action: Literal["made", "changed", "ended", "cancelled", "released", "imported"]
    # Null: there was none.
    before: Terms | None
    after: Terms


class AlternativeView(msgspec.Struct, kw_only=True):
    """What could be had instead."""

    start: float
    end: float
    gpus: list[ReservedGpu]


class Refused(RequestError):
    """A refusal that tells what is in the way, and what could be had instead."""

    def __init__(self, error: ReservationError, conflicts: list[ReservationView], alternatives: list[AlternativeView]):
        super().__init__(error.status, error.code, error.message, error.detail)
        self.conflicts = conflicts
        self.alternatives = alternatives


def by_of(settings: Settings, who: Identity, zone: tzinfo = UTC) -> By:
    """Who asks, for the rules; a key without the scope `admin` has no more than a member has."""
    admin = who.role == "admin" and "admin" in who.scopes
    limits = settings.limits_of("admin" if admin else "member")
    return By(who.name or "", admin, limits, zone, member=at_least(who.role, "member"))


class Views:
    """Makes them for one who asks, at one moment."""

    def __init__(self, fleet: Fleet, by: By, who: Identity, sight: Sight, now: float):
        self._fleet = fleet
        self._by = by
        self._who = who
        self._sight = sight
        self._now = now
        self._ids: dict[str, dict[str, str]] = {}

    def reservation(self, one: Reservation) -> ReservationView:
        person = self.login(one.person)
        mine = one.person == self._who.name and self._named(one.person)
        state = one.state(self._now)
        alive = state in ("coming", "now")
        return ReservationView(
            id=one.id,
            person=person,
            name=self._called(person),
            maker=self.login(one.maker),
            gpus=self._gpus(one.places),
            start=one.start,
            end=one.end,
            last=one.last,
            comment=one.comment if self._named(one.person) else "",
            hold=one.hold,
            made_at=one.made_at,
            revision=one.revision,
            ended_at=one.ended_at,
            ending=one.ending,
            imported=one.imported,
            state=state,
            mine=mine,
            may_change=may_change(one, self._by) and alive,
            may_end=may_stop(one, self._by) and alive,
        )

    def finding(self, one: Finding) -> FindingView:
        person = self.login(one.person)
        other = None if one.other is None else self.login(one.other)
        return FindingView(
            kind=one.kind,
            reservation=one.reservation,
            node=None if one.place is None else one.place.node,
            index=None if one.place is None else one.place.index,
            gpu=None if one.place is None else self._id(one.place),
            person=person,
            name=self._called(person),
            other=other,
            other_name=None if other is None else self._called(other),
            since=one.since,
            pids=list(one.pids) if self._named(one.other or one.person) else [],
            message=words(one.kind, person, other, one.place),
            release_at=one.release_at,
        )

    def change(self, one: Change) -> ChangeView:
        before = None if one.before is None else self._terms(one.before)
        return ChangeView(
            at=one.at,
            # What gpulse did itself nobody else has done.
            by=one.by if one.action == "released" else self.login(one.by),
            action=one.action,
            before=before,
            after=self._terms(one.after),
        )

    def refused(self, error: ReservationError) -> Refused:
        if self._who.role == "admin" and not self._by.admin:
            error.detail = error.detail.replace(ASK_AN_ADMIN, _OTHER_KEY)
        return Refused(
            error,
            [self.reservation(one) for one in error.conflicts],
            [self._alternative(one) for one in error.alternatives],
        )

    def _alternative(self, one: Alternative) -> AlternativeView:
        return AlternativeView(start=one.start, end=one.end, gpus=self._gpus(one.places))

    def _terms(self, one: Reservation) -> Terms:
        comment = one.comment if self._named(one.person) else ""
        return Terms(
            person=self.login(one.person),
            gpus=self._gpus(one.places),
            start=one.start,
            end=one.end,
            comment=comment,
        )

    def _named(self, login: str) -> bool:
        # One's own is in the sight, unless one asked for less.
        return self._sight.names(login)

    def login(self, login: str) -> str:
        """Somebody's, or what stands for it where it is hidden."""
        return login if self._named(login) else self._sight.login(login) or login

    def _called(self, login: str) -> str:
        return self._fleet.people_names.called(login) or login

    def _gpus(self, places: Iterable[Place]) -> list[ReservedGpu]:
        return [ReservedGpu(node=place.node, index=place.index, id=self._id(place)) for place in places]

    def _id(self, place: Place) -> str | None:
        there = self._ids.get(place.node)
        if there is None:
            there = self._ids[place.node] = ids_by_index(self._fleet, place.node)
        return there.get(place.index)


def ids_by_index(fleet: Fleet, node: str) -> dict[str, str]:
    """The GPUs of a node: by index their ids."""
    if not fleet.has(node):
        return {}
    known = fleet.known(node)
    pairs: Sequence[tuple[str | None, str]] = [
        (index_of(gpu), identity) for gpu, identity in zip(known.gpus, known.ids, strict=True)
    ]
    return {index: identity for index, identity in pairs if index is not None}
