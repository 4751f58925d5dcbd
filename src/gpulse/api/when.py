"""Times as people write them, shown back in full: for forms, before anything is saved."""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gpulse.api.endpoint import Endpoint
from gpulse.api.hub import Hub
from gpulse.api.reservations import Seconds, desk_of
from gpulse.api.reserving import Times, Zone
from gpulse.reservations.dates import parse_moment, parse_until


class WhenQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What was written."""

    text: Annotated[str, Meta(max_length=200, description="As in `friday 18:00`.")] = ""
    zone: Zone | UnsetType = UNSET
    start: (
        Annotated[Seconds, Meta(description="Where it is the end of something: when that starts; then `2d 4h` too.")]
        | UnsetType
    ) = UNSET


class WhenView(msgspec.Struct, kw_only=True):
    """What it means."""

    # Seconds since 1970.
    at: float
    zone: str
    # In full: "Friday 20 November 2026, 18:00 CET".
    text: str
    # From now; less than nothing where it is past.
    in_seconds: float
    # How long it is from the start on; null: a moment was written.
    length_seconds: float | None


async def get_when(hub: Hub, query: WhenQuery, path: Mapping[str, str]) -> WhenView:
    del path
    times = Times(desk_of(hub), None if isinstance(query.zone, UnsetType) else query.zone)
    now = times.local(times.now)
    if isinstance(query.start, UnsetType):
        moment = parse_moment(query.text, now)
    else:
        moment = parse_until(query.text, times.local(query.start), now)
    at = moment.at.timestamp()
    return WhenView(
        at=at,
        zone=times.zone.key,
        text=moment.understood,
        in_seconds=round(at - times.now, 3),
        length_seconds=None if moment.length is None else moment.length.total_seconds(),
    )


ENDPOINTS = (
    Endpoint(
        path="/api/v1/when",
        name="getWhen",
        summary="What a time as people write it means.",
        answer=WhenView,
        handle=get_when,
        may="read",
        query=WhenQuery,
        cached=False,
        errors=(400, 404, 406, 422),
    ),
)
