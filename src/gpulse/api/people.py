"""People: who holds what now, over the whole fleet."""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from gpulse.api.bodies import Incoming
from gpulse.api.endpoint import Endpoint
from gpulse.api.hub import Hub
from gpulse.api.nodes import next_offset
from gpulse.api.queries import Limit, Offset, OfPeople
from gpulse.api.turns import Turn
from gpulse.fleet.holdings import Holdings
from gpulse.fleet.views import PersonView


class PeopleQuery(OfPeople, frozen=True, kw_only=True):
    """Which people."""

    q: Annotated[str, Meta(max_length=200, description="Only people whose name has this in it.")] = ""
    limit: Limit = 100
    offset: Offset = 0


class PersonPage(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Some of the people, those with most GPUs first."""

    items: list[PersonView]
    # How many there are in all pages.
    total: int
    # The offset of the next page; null: this is the last.
    next: int | None
    # How many more hold GPUs, whose names you do not see; `q` makes no difference to it.
    others: int = 0
    # Of how many GPUs nobody knows who is on them, as their processes could not be read or the driver never lists them.
    unknown_gpus: int = 0


async def list_people(hub: Hub, query: PeopleQuery, path: Mapping[str, str], incoming: Incoming) -> PersonPage:
    del path
    word = query.q.casefold().strip()
    fleet, turn = hub.fleet, Turn()
    holdings = Holdings(fleet, incoming.sight)
    for node in fleet.roster().nodes:
        if fleet.has(node.place.name):
            holdings.add(node)
        await turn.give()
    people = [person for person in holdings.people() if word in person.person.casefold()]
    first, last = query.offset, query.offset + query.limit
    return PersonPage(
        items=people[first:last],
        total=len(people),
        next=next_offset(first, query.limit, len(people)),
        others=holdings.others,
        unknown_gpus=fleet.unlisted_gpus(),
    )


ENDPOINTS = (
    Endpoint(
        path="/api/v1/users",
        name="listUsers",
        summary="People who hold GPUs now, those with most first.",
        answer=PersonPage,
        handle=list_people,
        may="read",
        query=PeopleQuery,
        of_people=True,
        errors=(400, 406),
    ),
)
