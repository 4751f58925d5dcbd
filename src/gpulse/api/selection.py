"""Goes through the fleet with a filter, and lets others have the loop in between."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from difflib import get_close_matches

import msgspec

from gpulse.api.turns import Turn
from gpulse.errors import RequestError
from gpulse.fleet.filter import Filter
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.roster import Roster, Rows
from gpulse.fleet.search import Search
from gpulse.fleet.sight import Sight
from gpulse.fleet.views import GpuView, NodeView

# CPU time of one question. Of 100,000 GPUs the slowest filter that people write takes a tenth of it.
MOST_SECONDS = 5.0
_MOST_COMPARED = 20_000
_COMPARED_AT_ONCE = 200
_encode = msgspec.json.Encoder().encode


async def each_node(fleet: Fleet, names: Iterable[str], sight: Sight, detail: bool = False) -> AsyncIterator[NodeView]:
    """The nodes of these names that are there."""
    turn = Turn()
    for name in list(names):
        node = fleet.node(name, detail, sight)
        if node is not None:
            yield node
        await turn.give()


async def select(fleet: Fleet, filter_: Filter, most_seconds: float = MOST_SECONDS) -> tuple[Roster, Rows]:
    """Return the rows that match, in natural order; RequestError where that takes more CPU time than a question may."""
    turn = Turn()
    search = Search(fleet, filter_)
    for _ in search.steps():
        await turn.give()
        if turn.spent > most_seconds:
            words = f"the filter takes more than {most_seconds:g} s of the hub's time"
            raise RequestError(422, "slow_filter", words, "ask with fewer terms, or name nodes, a group or a rack")
    # What is made of them is work of its own.
    await asyncio.sleep(0)
    return search.roster, search.rows


async def encoded_nodes(fleet: Fleet, names: Iterable[str], sight: Sight, detail: bool) -> list[msgspec.Raw]:
    """Encoded one by one, as many at once would keep the loop."""
    return [msgspec.Raw(_encode(node)) async for node in each_node(fleet, names, sight, detail)]


async def encoded_gpus(fleet: Fleet, roster: Roster, rows: Rows, sight: Sight) -> list[msgspec.Raw]:
    """The GPUs of these rows, in their order; a node that has gone or changed meanwhile is left out."""
    turn = Turn()
    made: dict[int, list[GpuView]] = {}
    found = []
    for number, place in zip(roster.node[rows].tolist(), roster.place[rows].tolist(), strict=True):
        views = made.get(number)
        if views is None:
            name = roster.nodes[number].place.name
            views = made[number] = fleet.gpus_of(name, sight) if fleet.has(name) else []
            await turn.give()
        found += [msgspec.Raw(_encode(view)) for view in views[place : place + 1]]
    return found


async def matching(
    fleet: Fleet, roster: Roster, rows: Rows, sight: Sight, detail: bool = False
) -> AsyncIterator[tuple[NodeView, list[GpuView]]]:
    """Every node of these rows, which are in order, and its GPUs that are among them."""
    turn = Turn()
    for node, places in roster.by_node(rows):
        view = fleet.node(node.place.name, detail, sight)
        if view is not None:
            yield view, [view.gpus[place] for place in places if place < len(view.gpus)]
        await turn.give()


async def unknown_node(fleet: Fleet, name: str) -> RequestError:
    names = {one.casefold(): one for one in fleet.names()[:_MOST_COMPARED]}
    near = [names[one] for one in await _near(name[:200].casefold(), list(names))]
    hint = f"did you mean {' or '.join(near)}?" if near else "`gpulse nodes` and GET api/v1/nodes list them"
    return RequestError(404, "unknown_node", f'there is no node "{name[:200]}"', hint)


async def _near(name: str, names: list[str]) -> list[str]:
    """Names that are nearly this one, the nearest first. To compare two takes some microseconds."""
    turn = Turn()
    found: list[str] = []
    for start in range(0, len(names), _COMPARED_AT_ONCE):
        found = get_close_matches(name, found + names[start : start + _COMPARED_AT_ONCE], 3)
        await turn.give()
    return found
