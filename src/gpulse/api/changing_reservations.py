"""Making, changing and ending reservations."""

from collections.abc import Mapping

import msgspec
from msgspec import UnsetType
from starlette.responses import Response

from gpulse.api import notices
from gpulse.api.bodies import Incoming, decode
from gpulse.api.endpoint import Endpoint
from gpulse.api.hub import Hub
from gpulse.api.logins import login_of
from gpulse.api.me import BODY_ERRORS
from gpulse.api.noted_reservations import noted
from gpulse.api.reservation_views import ReservationView, by_of
from gpulse.api.reservations import RESERVATION, desk_of, views_for
from gpulse.api.reserving import (
    ChangedReservation,
    NewReservation,
    Times,
    check_hold,
    check_other_names,
    choice_of,
    kinds_of,
    places_of,
    span_of,
)
from gpulse.auth.noting import actor
from gpulse.errors import RequestError, ReservationError
from gpulse.reservations.dates import parse_span
from gpulse.reservations.model import Changes, Wanted
from gpulse.reservations.rules import LATE_SECONDS, check_stop

_CHANGE_ERRORS = (*BODY_ERRORS, 404, 409, 422)


async def make_reservation(
    hub: Hub, query: object, path: Mapping[str, str], incoming: Incoming
) -> ReservationView | Response:
    del query, path
    desk, who = desk_of(hub), incoming.who
    asked = decode(incoming.body, NewReservation)
    times = Times(desk, asked.zone)
    start, end = span_of(asked, times)
    if asked.hold:
        check_hold(desk, start, end)
    if (asked.gpus is None) == (asked.wish is None):
        raise RequestError(422, "no_gpus", "say which GPUs", 'give one of "gpus" and "wish"')
    person = login_of(hub, asked.person) if asked.person is not None else who.name or ""
    places = await places_of(hub, asked.gpus) if asked.gpus is not None else ()
    wish = await choice_of(hub, asked.wish, person, incoming.sight) if asked.wish is not None else None
    wanted = Wanted(person=person, places=places, start=start, end=end, comment=asked.comment, hold=asked.hold)
    try:
        check_other_names(hub, desk, places, start, end)
        made = await desk.table.make(
            wanted,
            by_of(desk.settings, who, times.zone),
            choose=wish.choose(start, end, times.now) if wish is not None else None,
            kinds=kinds_of(hub, places, now=start - times.now <= LATE_SECONDS),
            dry_run=asked.dry_run,
            witness=noted(actor(who, incoming.address), "make"),
        )
    except ReservationError as error:
        raise views_for(hub, desk, incoming).refused(times.told(error, start, end)) from None
    if not asked.dry_run:
        desk.rebook()
    views = views_for(hub, desk, incoming)
    told = views.reservation(made)
    told.notice = notices.of_new(hub, made, who, views, times.now)
    return Response(msgspec.json.encode(told), media_type="application/json") if asked.dry_run else told


async def change_reservation(hub: Hub, query: object, path: Mapping[str, str], incoming: Incoming) -> ReservationView:
    del query
    desk, asked = desk_of(hub), decode(incoming.body, ChangedReservation)
    times = Times(desk, asked.zone)
    before = await desk.table.get(path["reservation"])
    start = None if isinstance(asked.start, UnsetType) else times.start(asked.start)
    if not isinstance(asked.extend, UnsetType) and not isinstance(asked.end, UnsetType):
        raise RequestError(422, "when_unclear", "both an end and an extension are given", "give one of them")
    end, longer = None, 0.0
    if not isinstance(asked.extend, UnsetType):
        longer = parse_span(asked.extend).total_seconds()
    elif not isinstance(asked.end, UnsetType):
        # Of what has begun, lengths are meant from now on.
        end = times.end(asked.end, max(before.start, times.now) if start is None else start)
    changes = Changes(
        person=None if isinstance(asked.person, UnsetType) else login_of(hub, asked.person),
        places=None if isinstance(asked.gpus, UnsetType) else await places_of(hub, asked.gpus, before.places),
        start=start,
        end=end,
        longer=longer,
        comment=None if isinstance(asked.comment, UnsetType) else asked.comment,
    )
    by = by_of(desk.settings, incoming.who, times.zone)
    meant = (before.start if start is None else start, (before.end if end is None else end) + longer)
    try:
        if before.hold:
            check_stop(before, by, times.now)
            check_hold(desk, *meant)
        check_other_names(hub, desk, changes.places or before.places, *meant, own=before.id)
        changed = await desk.table.change(
            before.id,
            changes,
            by,
            revision=asked.revision,
            kinds=kinds_of(hub, changes.places or before.places, now=before.start <= times.now),
            dry_run=asked.dry_run,
            witness=noted(actor(incoming.who, incoming.address), "change"),
        )
    except ReservationError as error:
        raise views_for(hub, desk, incoming).refused(times.told(error, *meant)) from None
    if not asked.dry_run:
        desk.rebook()
    told = views_for(hub, desk, incoming).reservation(changed)
    told.notice = notices.of_person(hub, changed.person) if changed.person != before.person else None
    return told


async def end_reservation(hub: Hub, query: object, path: Mapping[str, str], incoming: Incoming) -> ReservationView:
    """Now; one that has not begun is cancelled."""
    del query
    desk = desk_of(hub)
    witness = noted(actor(incoming.who, incoming.address), "end")
    try:
        ended = await desk.table.end(path["reservation"], by_of(desk.settings, incoming.who), witness=witness)
    except ReservationError as error:
        raise views_for(hub, desk, incoming).refused(error) from None
    desk.rebook()
    return views_for(hub, desk, incoming).reservation(ended)


ENDPOINTS = (
    Endpoint(
        path="/api/v1/reservations",
        name="makeReservation",
        summary="Reserves GPUs, those that are named or as many as are wished for. 409 tells what is in the way.",
        answer=ReservationView,
        handle=make_reservation,
        may="member",
        method="POST",
        body=NewReservation,
        status=201,
        also={200: "What would be, with dry_run; nothing is saved."},
        errors=_CHANGE_ERRORS,
    ),
    Endpoint(
        path="/api/v1/reservations/{reservation}",
        name="changeReservation",
        summary="Another time, other GPUs or another comment for a reservation.",
        answer=ReservationView,
        handle=change_reservation,
        may="member",
        method="PATCH",
        path_parameters=RESERVATION,
        body=ChangedReservation,
        errors=_CHANGE_ERRORS,
    ),
    Endpoint(
        path="/api/v1/reservations/{reservation}/end",
        name="endReservation",
        summary="Ends a reservation now; cancels it where it has not begun.",
        answer=ReservationView,
        handle=end_reservation,
        may="self",
        method="POST",
        path_parameters=RESERVATION,
        errors=_CHANGE_ERRORS,
    ),
    Endpoint(
        path="/api/v1/reservations/{reservation}",
        name="cancelReservation",
        summary="Cancels a reservation; ends it where it has begun.",
        answer=ReservationView,
        handle=end_reservation,
        may="self",
        method="DELETE",
        path_parameters=RESERVATION,
        errors=(400, 404, 406, 409, 503),
    ),
)
