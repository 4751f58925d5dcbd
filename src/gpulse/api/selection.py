"""Goes through the fleet with a filter, and lets others have the loop in between."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from difflib import get_close_matches

import msgspec

from gpulse.errors import RequestError
from gpulse.fleet.filter import Filter
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.views import GpuView, NodeView

# How long one reader keeps the loop; lines of nodes wait for no longer than that.
_TURN_SECONDS = 0.01


async def each_node(fleet: Fleet, names: Iterable[str], detail: bool = False) -> AsyncIterator[NodeView]:
    """The nodes of these names that are there."""
    turn = time.perf_counter()
    for name in list(names):
        node = fleet.node(name, detail)
        if node is not None:
            yield node
        if time.perf_counter() - turn > _TURN_SECONDS:
            await asyncio.sleep(0)
            turn = time.perf_counter()


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
