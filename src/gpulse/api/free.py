"""Finds free GPUs: as JSON for programs, as plain text for people with nothing but curl."""

import shlex
from collections.abc import Mapping
from typing import Annotated

import numpy as np
from msgspec import UNSET, Meta, UnsetType, field

from gpulse.api.bodies import Incoming
from gpulse.api.endpoint import Endpoint
from gpulse.api.hub import Hub
from gpulse.api.queries import Filtered
from gpulse.api.selection import matching, select
from gpulse.clean_text import clean
from gpulse.errors import RequestError
from gpulse.fleet.finder import Answer, Wish, describe, export_of, find
from gpulse.fleet.shortlist import shortlist
from gpulse.fleet.sizes import parse_size
from gpulse.fleet.terms import fits_wish
from gpulse.fleet.views import GpuView
from gpulse.reservations.dates import parse_span
from gpulse.reservations.spots import AHEAD_SECONDS

_SIZE = r"^[0-9]{1,9}(\.[0-9]{1,6})? ?([mMgGtT]([iI]?[bB])?)?$"


class FreeQuery(Filtered, frozen=True, kw_only=True):
    """How many GPUs, and what each must be."""

    n: Annotated[int, Meta(ge=1, le=10_000, description="How many GPUs.")] = 1
    memory: (
        Annotated[str, Meta(pattern=_SIZE, description="Memory of each card at least: `40GB`, `40G`, `40GiB`.")]
        | UnsetType
    ) = UNSET
    model: Annotated[str, Meta(min_length=1, max_length=200, description="Words of the card's name.")] | UnsetType = (
        UNSET
    )
    same_node: Annotated[bool, Meta(description="All on one node.")] = False
    for_: (
        Annotated[
            str,
            Meta(max_length=100, description="For how long, `2h` or `1d 12h`: leaves out what others reserved within."),
        ]
        | UnsetType
    ) = field(default=UNSET, name="for")


async def find_free(hub: Hub, query: FreeQuery, path: Mapping[str, str], incoming: Incoming) -> Answer:
    del path
    for_seconds = parse_span(query.for_).total_seconds() if isinstance(query.for_, str) else 0.0
    if for_seconds > AHEAD_SECONDS:
        why = f"what is reserved later than in {AHEAD_SECONDS / 86400:g} days is not looked at"
        raise RequestError(422, "too_far", why, "ask for less")
    wish = Wish(
        n=query.n,
        memory_bytes=parse_size(query.memory) if isinstance(query.memory, str) else None,
        model=query.model if isinstance(query.model, str) else None,
        same_node=query.same_node,
        for_seconds=for_seconds,
        # Not who the query names: anybody could learn by it what somebody has reserved.
        me=incoming.who.name,
    )
    now = hub.fleet.wall()
    filter_ = query.filter(incoming.sight)
    fitting = filter_._replace(terms=[*filter_.terms, *fits_wish(wish.model, wish.memory_bytes)])
    roster, rows = await select(hub.fleet, fitting)
    wanted: set[str] = set()
    gpus: list[GpuView] = []
    few = shortlist(hub.fleet, roster, rows, wish, now)
    async for node, found in matching(hub.fleet, roster, few, incoming.sight):
        wanted.update(gpu.id for gpu in found)
        gpus += node.gpus
    return find(gpus, wish, wanted, int(np.count_nonzero(roster.has_gpu)), hub.fleet.bookings, now)


async def find_free_text(hub: Hub, query: FreeQuery, path: Mapping[str, str], incoming: Incoming) -> str:
    answer = await find_free(hub, query, path, incoming)
    if not answer.found:
        # curl -f then fails, and a script can tell.
        raise RequestError(404, "not_enough", clean(answer.explanation))
    return as_text(answer)


def as_text(answer: Answer) -> str:
    """A line to paste for each node, then a line for each GPU."""
    by_node: dict[str, list[GpuView]] = {}
    for gpu in answer.gpus:
        by_node.setdefault(gpu.node, []).append(gpu)
    lines = []
    for node, gpus in by_node.items():
        export = export_of(gpus, gpus)
        if export is not None:
            lines.append(f"export {export}  # on {node}: ssh {shlex.quote(node)}")
    lines += [describe(gpu) for gpu in answer.gpus]
    return "".join(clean(line) + "\n" for line in lines)


ENDPOINTS = (
    Endpoint(
        path="/api/v1/free",
        name="findFree",
        summary="Chooses free GPUs that fit; prefers one node, and nodes that are partly used already.",
        answer=Answer,
        handle=find_free,
        may="read",
        query=FreeQuery,
        of_people=True,
        of_owner=True,
        errors=(400, 406, 422),
    ),
    Endpoint(
        path="/free",
        name="findFreeText",
        summary="The same in plain text for curl; 404 with the reason when there are too few.",
        answer=str,
        handle=find_free_text,
        may="read",
        query=FreeQuery,
        of_people=True,
        of_owner=True,
        errors=(400, 404, 406, 422),
        media="text/plain",
    ),
)
