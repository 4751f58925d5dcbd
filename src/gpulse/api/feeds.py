"""Calendars of reservations: secret addresses that a calendar program can read without signing in."""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from gpulse.api.bodies import Incoming, decode
from gpulse.api.endpoint import Endpoint
from gpulse.api.hub import Hub
from gpulse.api.me import BODY_ERRORS, DONE, SMALL_BODY, Done, own_account, refuse_keys
from gpulse.api.reservations import desk_of
from gpulse.api.selection import unknown_node
from gpulse.auth.feeds import FeedView
from gpulse.auth.noting import actor
from gpulse.errors import RequestError
from gpulse.fleet.sight import Sight
from gpulse.reservations.ical import feed_text
from gpulse.reservations.model import Reservation

CALENDAR = "text/calendar"
_DAY = 86400.0
_PAST, _AHEAD = 30 * _DAY, 3660 * _DAY
_NODE = "node:"
_FEED = {"feed": "The calendar's id."}


class NewFeed(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a calendar shall show."""

    scope: Annotated[str, Meta(max_length=205, description="`mine`, `fleet`, or `node:` and a name.")]


class MadeFeed(msgspec.Struct, kw_only=True):
    """A new calendar; its address is told only here."""

    id: str
    # Below the address of the page.
    path: str


class OwnFeeds(msgspec.Struct, kw_only=True):
    """The calendars of an account, the oldest first."""

    items: list[FeedView]
    # Whether the site has reservations.
    enabled: bool


async def list_feeds(hub: Hub, query: object, path: Mapping[str, str], incoming: Incoming) -> OwnFeeds:
    del query, path
    items = await hub.access.directory.feeds.list(own_account(incoming.who))
    return OwnFeeds(items=items, enabled=hub.desk is not None)


async def make_feed(hub: Hub, query: object, path: Mapping[str, str], incoming: Incoming) -> MadeFeed:
    del query, path
    # Else a key could read on after its end.
    refuse_keys(incoming.who)
    scope = decode(incoming.body, NewFeed).scope
    desk_of(hub)
    if scope not in ("mine", "fleet"):
        if not scope.startswith(_NODE):
            raise RequestError(
                422, "bad_scope", f'there are no calendars of "{scope[:50]}"', 'take "mine", "fleet" or "node:NAME"'
            )
        if not hub.fleet.has(scope.removeprefix(_NODE)):
            raise await unknown_node(hub.fleet, scope.removeprefix(_NODE))
    directory = hub.access.directory
    secret = await directory.feeds.make(own_account(incoming.who), scope, by=actor(incoming.who, incoming.address))
    identity = secret.split("_")[1]
    return MadeFeed(id=identity, path=f"feeds/{secret}.ics")


async def revoke_feed(hub: Hub, query: object, path: Mapping[str, str], incoming: Incoming) -> Done:
    del query
    feeds, by = hub.access.directory.feeds, actor(incoming.who, incoming.address)
    await feeds.revoke(path["feed"], own_account(incoming.who), by=by)
    return DONE


async def read_feed(hub: Hub, query: object, path: Mapping[str, str]) -> str:
    del query
    desk = desk_of(hub)
    directory = hub.access.directory
    feed = await directory.feeds.read(path["secret"])
    owner = directory.identity_of(feed.account, "key") if feed is not None else None
    if feed is None or owner is None or owner.name is None:
        raise RequestError(404, "feed_unknown", "there is no such calendar, or none any more", "make another")
    now = desk.clock()
    node = feed.scope.removeprefix(_NODE) if feed.scope.startswith(_NODE) else None
    person = owner.name if feed.scope == "mine" else None
    found = desk.table.between(now - _PAST, now + _AHEAD, node=node, person=person, cancelled=True)
    sight = hub.access.sight(owner)
    of_what = "all" if feed.scope == "fleet" else node or owner.name
    return feed_text([_seen(one, sight) for one in found], f"{hub.title}: {of_what}", now)


def _seen(one: Reservation, sight: Sight) -> Reservation:
    """Without what is hidden of others."""
    if sight.names(one.person):
        return one
    return msgspec.structs.replace(one, person=sight.login(one.person) or "", maker="", comment="")


ENDPOINTS = (
    Endpoint(
        path="/api/v1/me/feeds",
        name="listMyFeeds",
        summary="My calendars; never their addresses.",
        answer=OwnFeeds,
        handle=list_feeds,
        may="self",
        errors=(400, 406, 503),
    ),
    Endpoint(
        path="/api/v1/me/feeds",
        name="makeMyFeed",
        summary="Makes a calendar of reservations; its secret address is told once.",
        answer=MadeFeed,
        handle=make_feed,
        may="self",
        method="POST",
        body=NewFeed,
        most_bytes=SMALL_BODY,
        status=201,
        errors=(*BODY_ERRORS, 404, 409, 422, 429),
    ),
    Endpoint(
        path="/api/v1/me/feeds/{feed}",
        name="revokeMyFeed",
        summary="Ends one of my calendars.",
        answer=Done,
        handle=revoke_feed,
        may="self",
        method="DELETE",
        path_parameters=_FEED,
        errors=(400, 404, 406, 503),
    ),
    Endpoint(
        path="/feeds/{secret}.ics",
        name="readFeed",
        summary="Reservations as a calendar, for whoever has its address.",
        answer=str,
        handle=read_feed,
        may="anyone",
        media=CALENDAR,
        path_parameters={"secret": "The calendar's secret."},
        cached=False,
        errors=(400, 404, 406, 503),
    ),
)
