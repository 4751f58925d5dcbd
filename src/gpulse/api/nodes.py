"""Nodes: all of them, one in full, and what its connection and probe have said."""

from collections.abc import Callable, Mapping
from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec import UNSET, Meta, UnsetType
from numpy.typing import NDArray

from gpulse.api.bodies import Incoming
from gpulse.api.endpoint import Endpoint
from gpulse.api.hub import Hub
from gpulse.api.queries import Limit, Offset, OfPeople, Paged
from gpulse.api.selection import encoded_nodes, select, unknown_node
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.roster import Roster
from gpulse.fleet.seeing import seen_words
from gpulse.fleet.state import FREE, NODE_STATES
from gpulse.fleet.views import LogEntry, NodeState, NodeView

Order = NDArray[np.float64]
NodeSort = Literal["name", "-name", "age", "-age", "gpus", "-gpus", "free", "-free"]


class NodesQuery(Paged, frozen=True, kw_only=True):
    """Which nodes."""

    state: Annotated[NodeState, Meta(description="Only nodes in this state.")] | UnsetType = UNSET
    group: Annotated[str, Meta(max_length=200, description="Only nodes of this group.")] | UnsetType = UNSET
    detail: Annotated[bool, Meta(description="With host, processes and reports, as one node has them.")] = False
    full: Annotated[bool, Meta(description="Only nodes that have a disk which is nearly full.")] = False
    sort: Annotated[NodeSort, Meta(description="By what; a minus turns it round. Names sort naturally.")] = "name"


class NodePage(msgspec.Struct, kw_only=True):
    """Some of the nodes."""

    items: list[NodeView]
    # How many there are in all pages.
    total: int
    # The offset of the next page; null: this is the last.
    next: int | None


class LogQuery(OfPeople, frozen=True, kw_only=True):
    """Which entries, the newest first."""

    limit: Limit = 100
    offset: Offset = 0


class LogPage(msgspec.Struct, kw_only=True):
    """Some of a node's log, the newest entry first."""

    items: list[LogEntry]
    total: int
    next: int | None


def next_offset(offset: int, limit: int, total: int) -> int | None:
    return offset + limit if offset + limit < total else None


async def list_nodes(hub: Hub, query: NodesQuery, path: Mapping[str, str], incoming: Incoming) -> dict[str, object]:
    del path
    fleet = hub.fleet
    roster, rows = await select(fleet, query.filter(incoming.sight))
    # By its number in the roster, which is the order of names.
    numbers = np.unique(roster.node[rows])
    if query.state is not UNSET:
        numbers = numbers[roster.of_nodes(fleet.node_columns.state)[numbers] == NODE_STATES.index(query.state)]
    if query.group is not UNSET:
        numbers = numbers[[roster.nodes[number].place.group == query.group for number in numbers]]
    if query.full:
        full = await hub.fullness.nodes()
        numbers = numbers[[roster.nodes[number].place.name in full for number in numbers]]
    key, turned = query.sort.removeprefix("-"), query.sort.startswith("-")
    if key != "name":
        order = _ORDERS[key](fleet, roster)[numbers]
        numbers = numbers[np.argsort(-order if turned else order, kind="stable")]
    elif turned:
        numbers = numbers[::-1]
    first, last = query.offset, query.offset + query.limit
    names = [roster.nodes[number].place.name for number in numbers[first:last]]
    items = await encoded_nodes(fleet, names, incoming.sight, query.detail)
    return {"items": items, "total": len(numbers), "next": next_offset(first, query.limit, len(numbers))}


def _age(fleet: Fleet, roster: Roster) -> Order:
    age = fleet.clock() - roster.of_nodes(fleet.node_columns.last_line)
    told = [node.snapshot is not None for node in roster.nodes]
    return np.where(told, age, np.inf)


def _gpus(fleet: Fleet, roster: Roster) -> Order:
    return _count(roster, roster.of_gpus(fleet.gpu_columns.counted))


def _free(fleet: Fleet, roster: Roster) -> Order:
    return _count(roster, roster.of_gpus(fleet.gpu_columns.state) == FREE)


def _count(roster: Roster, rows: NDArray[np.bool_]) -> Order:
    """By node, how many of its GPUs these are."""
    return np.bincount(roster.node[rows & roster.has_gpu], minlength=len(roster.nodes)).astype(np.float64)


_ORDERS: dict[str, Callable[[Fleet, Roster], Order]] = {"age": _age, "gpus": _gpus, "free": _free}


async def get_node(hub: Hub, query: object, path: Mapping[str, str], incoming: Incoming) -> NodeView:
    del query
    node = hub.fleet.node(path["node"], True, incoming.sight)
    if node is None:
        raise await unknown_node(hub.fleet, path["node"])
    return node


async def get_log(hub: Hub, query: LogQuery, path: Mapping[str, str], incoming: Incoming) -> LogPage:
    if not hub.fleet.has(path["node"]):
        raise await unknown_node(hub.fleet, path["node"])
    entries = hub.fleet.log_of(path["node"])[::-1]
    wanted = entries[query.offset : query.offset + query.limit]
    return LogPage(
        items=[LogEntry(time=one.time, message=seen_words(one.message, incoming.sight)) for one in wanted],
        total=len(entries),
        next=next_offset(query.offset, query.limit, len(entries)),
    )


_NODE = {"node": "The node's name."}

ENDPOINTS = (
    Endpoint(
        path="/api/v1/nodes",
        name="listNodes",
        summary="Nodes with their GPUs. A node is told of when it, or one of its GPUs, matches.",
        answer=NodePage,
        handle=list_nodes,
        may="read",
        query=NodesQuery,
        of_people=True,
        errors=(400, 406, 422),
    ),
    Endpoint(
        path="/api/v1/nodes/{node}",
        name="getNode",
        summary="One node with its host, processes, rates and what could not be read.",
        answer=NodeView,
        handle=get_node,
        may="read",
        query=OfPeople,
        of_people=True,
        path_parameters=_NODE,
        errors=(400, 404, 406),
    ),
    Endpoint(
        path="/api/v1/nodes/{node}/log",
        name="getNodeLog",
        summary="What a node's connection and probe have said, the newest first.",
        answer=LogPage,
        handle=get_log,
        may="read",
        query=LogQuery,
        of_people=True,
        path_parameters=_NODE,
        errors=(400, 404, 406),
        # Entries come between ticks.
        cached=False,
    ),
)
