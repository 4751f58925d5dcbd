"""Nodes: all of them, one in full, and what its connection and probe have said."""

from collections.abc import Callable, Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gpulse.api.endpoint import Endpoint
from gpulse.api.hub import Hub
from gpulse.api.queries import Limit, Offset, Paged
from gpulse.api.selection import each_node, matching, unknown_node
from gpulse.fleet.views import LogEntry, NodeState, NodeView

NodeSort = Literal["name", "-name", "age", "-age", "gpus", "-gpus", "free", "-free"]


class NodesQuery(Paged, frozen=True, kw_only=True):
    """Which nodes."""

    state: Annotated[NodeState, Meta(description="Only nodes in this state.")] | UnsetType = UNSET
    group: Annotated[str, Meta(max_length=200, description="Only nodes of this group.")] | UnsetType = UNSET
    detail: Annotated[bool, Meta(description="With host, processes and reports, as one node has them.")] = False
    sort: Annotated[NodeSort, Meta(description="By what; a minus turns it round. Names sort naturally.")] = "name"


class NodePage(msgspec.Struct, kw_only=True):
    """Some of the nodes."""

    items: list[NodeView]
    # How many there are in all pages.
    total: int
    # The offset of the next page; null: this is the last.
    next: int | None


class LogQuery(msgspec.Struct, frozen=True, kw_only=True):
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


_ORDERS: dict[str, Callable[[NodeView], float]] = {
    "age": lambda node: float("inf") if node.age_seconds is None else node.age_seconds,
    "gpus": lambda node: sum(gpu.counted for gpu in node.gpus),
    "free": lambda node: sum(gpu.counted and gpu.state == "free" for gpu in node.gpus),
}


async def list_nodes(hub: Hub, query: NodesQuery, path: Mapping[str, str]) -> NodePage:
    del path
    first, last = query.offset, query.offset + query.limit
    if not query.q and query.state is UNSET and query.group is UNSET and query.sort in ("name", "-name"):
        # Nothing to look at but names: only this page is made.
        names = hub.fleet.names()
        ordered = names[::-1] if query.sort == "-name" else names
        items = [node async for node in each_node(hub.fleet, ordered[first:last], query.detail)]
        return NodePage(items=items, total=len(names), next=next_offset(first, query.limit, len(names)))
    nodes = [
        node
        async for node, _ in matching(hub.fleet, query.filter())
        if query.state in (UNSET, node.state) and query.group in (UNSET, node.group)
    ]
    key = query.sort.removeprefix("-")
    if key in _ORDERS:
        nodes.sort(key=_ORDERS[key], reverse=query.sort.startswith("-"))
    elif query.sort == "-name":
        nodes.reverse()
    items = nodes[first:last]
    if query.detail:
        items = [node async for node in each_node(hub.fleet, [node.name for node in items], True)]
    return NodePage(items=items, total=len(nodes), next=next_offset(first, query.limit, len(nodes)))


async def get_node(hub: Hub, query: object, path: Mapping[str, str]) -> NodeView:
    del query
    node = hub.fleet.node(path["node"], detail=True)
    if node is None:
        raise unknown_node(hub.fleet, path["node"])
    return node


async def get_log(hub: Hub, query: LogQuery, path: Mapping[str, str]) -> LogPage:
    if path["node"] not in hub.fleet.names():
        raise unknown_node(hub.fleet, path["node"])
    entries = hub.fleet.log_of(path["node"])[::-1]
    return LogPage(
        items=entries[query.offset : query.offset + query.limit],
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
        errors=(400, 406, 422),
    ),
    Endpoint(
        path="/api/v1/nodes/{node}",
        name="getNode",
        summary="One node with its host, processes, rates and what could not be read.",
        answer=NodeView,
        handle=get_node,
        may="read",
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
        path_parameters=_NODE,
        errors=(400, 404, 406),
        # Entries come between ticks.
        cached=False,
    ),
)
