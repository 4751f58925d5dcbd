"""Goes through the fleet with a filter, and lets others have the loop in between."""

from collections.abc import AsyncIterator, Iterable
from difflib import get_close_matches

import msgspec

from gpulse.api.turns import Turn
from gpulse.errors import RequestError
from gpulse.fleet.filter import Filter
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.views import GpuView, NodeView


async def each_node(fleet: Fleet, names: Iterable[str], detail: bool = False) -> AsyncIterator[NodeView]:
    """The nodes of these names that are there."""
    turn = Turn()
    for name in list(names):
        node = fleet.node(name, detail)
        if node is not None:
            yield node
        await turn.give()


async def matching(fleet: Fleet, filter_: Filter) -> AsyncIterator[tuple[NodeView, list[GpuView]]]:
    """Every node something of which matches, without its details, and its GPUs that match."""
    async for node in each_node(fleet, fleet.names(), filter_.needs_processes):
        gpus = filter_.matching(node, node.processes or ())
        if gpus is not None:
            yield msgspec.structs.replace(node, host=None, processes=None, reports=None), gpus


def unknown_node(fleet: Fleet, name: str) -> RequestError:
    near = get_close_matches(name, fleet.names()[:20_000], 3)
    hint = f"did you mean {' or '.join(near)}?" if near else "GET api/v1/nodes lists all nodes"
    return RequestError(404, "unknown_node", f'there is no node "{name[:200]}"', hint)
