"""Reservations: those there are, and where what runs is not as reserved."""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType, field

from gpulse.api.bodies import Incoming
from gpulse.api.endpoint import Endpoint
from gpulse.api.hub import Hub
from gpulse.api.queries import OfPeople
from gpulse.api.reservation_views import ChangeView, FindingView, ReservationView, Views, by_of
from gpulse.api.selection import unknown_node
from gpulse.api.turns import Turn
from gpulse.auth.roles import at_least
from gpulse.config.reservations import Limits
from gpulse.errors import RequestError
from gpulse.reservations.desk import Desk
from gpulse.reservations.model import Reservation
from gpulse.reservations.reality import Finding

_DAY = 86400.0
# What is in memory; who asks for more asks the database.
_IN_MEMORY = 30 * _DAY
RESERVATION = {"reservation": "The reservation's id."}
Seconds = Annotated[float, Meta(ge=0, le=2**53)]


class ReservationsQuery(OfPeople, frozen=True, kw_only=True):
    """Which reservations: those planned for some time within a span."""

    from_: Annotated[Seconds, Meta(description="Seconds since 1970; a day ago if not told.")] | UnsetType = field(
        default=UNSET, name="from"
    )
    to: Annotated[Seconds, Meta(description="Seconds since 1970; in 31 days if not told.")] | UnsetType = UNSET
    node: Annotated[str, Meta(max_length=200, description="Only of GPUs of this node.")] | UnsetType = UNSET
    person: Annotated[str, Meta(max_length=200, description="Only those of this login.")] | UnsetType = UNSET
    mine: Annotated[bool, Meta(description="Only those of who asks.")] = False
    limit: Annotated[int, Meta(ge=1, le=10_000, description="How many to tell of at most.")] = 5000
    before: Annotated[str, Meta(max_length=40, description="`next` of the answer before.")] | UnsetType = UNSET


class ReservationPage(msgspec.Struct, kw_only=True):
    """Some of the reservations, the last to start first, and what is found about those of now and soon."""

    reservations: list[ReservationView]
    findings: list[FindingView]
    # Another, higher number when something has changed; live frames have it too.
    revision: int
    # The hub's time: seconds since 1970.
    now: float
    # `before` of the next page; null: this is the last.
    next: str | None
    # Whether the site has reservations.
    enabled: bool
    # What who asks may reserve; null: nothing.
    limits: Limits | None
    # How long GPUs that were found free can be held at most; null: there are no reservations.
    hold_longest_minutes: float | None
    # The hub's own time zone.
    zone: str


class ReservationDetail(ReservationView, kw_only=True):
    """A reservation with all that was done to it, the oldest first."""

    history: list[ChangeView]


def desk_of(hub: Hub) -> Desk:
    if hub.desk is None:
        raise RequestError(
            404, "reservations_off", "there are no reservations here", "the site has reservations.enabled = false"
        )
    return hub.desk


def views_for(hub: Hub, desk: Desk, incoming: Incoming) -> Views:
    by = by_of(desk.settings, incoming.who)
    return Views(hub.fleet, by, incoming.who, incoming.sight, desk.clock())


async def list_reservations(
    hub: Hub, query: ReservationsQuery, path: Mapping[str, str], incoming: Incoming
) -> ReservationPage:
    del path
    if hub.desk is None:
        return ReservationPage(
            reservations=[],
            findings=[],
            revision=0,
            now=hub.fleet.wall(),
            next=None,
            enabled=False,
            limits=None,
            hold_longest_minutes=None,
            zone="",
        )
    desk, who = hub.desk, incoming.who
    person = who.name if query.mine else None if isinstance(query.person, UnsetType) else query.person
    if query.mine and who.name is None:
        raise RequestError(401, "sign_in", "sign in first", "only then it is known which are yours")
    # Who is hidden is not found by name either.
    known = person is not None and incoming.sight.names(person)
    nothing = (query.mine or person is not None) and not known
    found = [] if nothing else await _found(desk, query, person)
    node = None if isinstance(query.node, UnsetType) else query.node
    if node is not None and not found and not hub.fleet.has(node):
        raise await unknown_node(hub.fleet, node)
    views, turn = views_for(hub, desk, incoming), Turn()
    told = []
    for one in found[: query.limit]:
        told.append(views.reservation(one))
        await turn.give()
    findings = [
        views.finding(one)
        for one in desk.findings
        if not nothing
        and (node is None or node in _nodes_of(desk, one))
        and (person is None or person in (one.person, one.other))
    ]
    return ReservationPage(
        reservations=told,
        findings=findings,
        revision=hub.fleet.reservations,
        now=desk.clock(),
        next=told[-1].id if len(found) > query.limit else None,
        enabled=True,
        limits=by_of(desk.settings, who).limits if at_least(who.role, "member") else None,
        hold_longest_minutes=desk.settings.hold_longest_minutes,
        zone=desk.zone.key,
    )


def _nodes_of(desk: Desk, finding: Finding) -> set[str]:
    """A no-show is one of all its GPUs."""
    if finding.place is not None:
        return {finding.place.node}
    about = desk.table.by_id(finding.reservation)
    return set() if about is None else {place.node for place in about.places}


async def _found(desk: Desk, query: ReservationsQuery, person: str | None) -> list[Reservation]:
    """One more than are wanted, where there are more."""
    now = desk.clock()
    start = now - _DAY if isinstance(query.from_, UnsetType) else query.from_
    end = now + 31 * _DAY if isinstance(query.to, UnsetType) else query.to
    node = None if isinstance(query.node, UnsetType) else query.node
    before = None if isinstance(query.before, UnsetType) else query.before
    if start < now - _IN_MEMORY or before is not None:
        return await desk.table.find(start, end, node=node, person=person, before=before, limit=query.limit + 1)
    found = desk.table.between(start, end, node=node, person=person, cancelled=True)
    return sorted(found, key=lambda one: (one.start, one.id), reverse=True)[: query.limit + 1]


async def get_reservation(hub: Hub, query: object, path: Mapping[str, str], incoming: Incoming) -> ReservationDetail:
    del query
    desk = desk_of(hub)
    one = await desk.table.get(path["reservation"])
    history = await desk.table.history(one.id)
    views = views_for(hub, desk, incoming)
    told = msgspec.structs.asdict(views.reservation(one))
    return ReservationDetail(**told, history=[views.change(change) for change in history])


ENDPOINTS = (
    Endpoint(
        path="/api/v1/reservations",
        name="listReservations",
        summary="Reservations of some time, and where what runs now is not as reserved.",
        answer=ReservationPage,
        handle=list_reservations,
        may="read",
        query=ReservationsQuery,
        personal=True,
        cached=False,
        errors=(400, 401, 404, 406, 503),
    ),
    Endpoint(
        path="/api/v1/reservations/{reservation}",
        name="getReservation",
        summary="One reservation, with its history.",
        answer=ReservationDetail,
        handle=get_reservation,
        may="read",
        query=OfPeople,
        path_parameters=RESERVATION,
        personal=True,
        cached=False,
        errors=(400, 404, 406, 503),
    ),
)
