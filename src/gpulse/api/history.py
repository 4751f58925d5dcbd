"""The last ten minutes of the GPUs of some nodes, or of one GPU, as the hub has them in memory."""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gpulse.api.endpoint import Endpoint
from gpulse.api.gpus import unknown_gpu
from gpulse.api.hub import Hub
from gpulse.api.selection import unknown_node
from gpulse.api.turns import Turn
from gpulse.errors import FilterError, RequestError
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.names import natural
from gpulse.fleet.node import Node
from gpulse.fleet.node_sets import NodeSet
from gpulse.fleet.recent import STEP_SECONDS

# Of 8 GPUs each these are 3 MB before they are compressed.
MOST_NODES = 100
# So many of the longest names.
LONGEST_SET = MOST_NODES * 254
Figure = Literal["utilization", "memory", "temperature", "power"]


class HistoryQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Of what: one of node, nodes and gpu."""

    node: Annotated[str, Meta(min_length=1, description="All GPUs of this node.")] | UnsetType = UNSET
    nodes: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=LONGEST_SET,
                description=f"All GPUs of these nodes, as in `gpu[01-08],login1`, at most {MOST_NODES}; "
                "those that are not there are left out.",
            ),
        ]
        | UnsetType
    ) = UNSET
    gpu: Annotated[str, Meta(min_length=1, description="The GPU of this id.")] | UnsetType = UNSET
    only: Annotated[Figure, Meta(description="Only this figure; the others are empty.")] | UnsetType = UNSET


class GpuHistory(msgspec.Struct, kw_only=True):
    """A GPU's figures, the oldest first, a number for each step. 255 is unknown, for power 65535."""

    id: str
    node: str
    # Half percents, the mean of the step: 200 is 100 %.
    utilization: list[int]
    # Half percents of its memory.
    memory: list[int]
    # °C.
    temperature: list[int]
    # Watts, the mean of the step.
    power: list[int]


class HistoryView(msgspec.Struct, kw_only=True):
    """The last steps of some GPUs, those of a node beside each other."""

    # Null where `nodes` were asked for.
    node: str | None
    step_seconds: int
    # When the newest step ended: seconds since 1970.
    end: float
    gpus: list[GpuHistory]


async def get_history(hub: Hub, query: HistoryQuery, path: Mapping[str, str]) -> HistoryView:
    del path
    fleet = hub.fleet
    names = await _nodes_of(fleet, query)
    one = names[0] if query.nodes is UNSET else None
    answer = HistoryView(node=one, step_seconds=STEP_SECONDS, end=round(fleet.recent.end, 3), gpus=[])
    turn = Turn()
    for name in names:
        # It may have gone while others had their turn.
        if fleet.has(name):
            told = _of_node(fleet, fleet.known(name), query.only)
            answer.gpus += [gpu for gpu in told if query.gpu in (UNSET, gpu.id)]
        await turn.give()
    return answer


def _of_node(fleet: Fleet, node: Node, only: Figure | UnsetType) -> list[GpuHistory]:
    series = fleet.recent.series(node.start, node.count)._asdict()
    # A row for each GPU.
    figures = {name: plane.T.tolist() for name, plane in series.items() if only in (UNSET, name)}
    return [
        GpuHistory(
            id=identity,
            node=node.place.name,
            **{name: figures[name][place] if name in figures else [] for name in series},
        )
        for place, identity in enumerate(node.ids)
    ]


async def _nodes_of(fleet: Fleet, query: HistoryQuery) -> list[str]:
    given = [name for name in ("node", "nodes", "gpu") if getattr(query, name) is not UNSET]
    if len(given) > 1:
        raise RequestError(400, "bad_parameter", f"{' and '.join(given)} are both given", "give one of them")
    if isinstance(query.nodes, str):
        return _named(fleet, query.nodes)
    if isinstance(query.node, str):
        if not fleet.has(query.node):
            raise await unknown_node(fleet, query.node)
        return [query.node]
    if not isinstance(query.gpu, str):
        raise RequestError(400, "missing_parameter", "none of node, nodes and gpu is given", "give one of them")
    name = fleet.node_of_gpu(query.gpu)
    if name is None:
        raise unknown_gpu(query.gpu)
    return [name]


def _named(fleet: Fleet, nodes: str) -> list[str]:
    """Those of a set that are there, in natural order."""
    try:
        wanted = NodeSet("nodes=", nodes)
    except FilterError as error:
        raise RequestError(400, "bad_parameter", str(error)) from None
    # Counted before anything is written out.
    if wanted.size > MOST_NODES:
        message = f"{wanted.size:,} nodes are more than {MOST_NODES} at once"
        raise RequestError(400, "bad_parameter", message, "ask for some of them, then for the others")
    return sorted((name for name in wanted.names() if fleet.has(name)), key=natural)


ENDPOINTS = (
    Endpoint(
        path="/api/v1/history",
        name="getHistory",
        summary="The last ten minutes of the GPUs of some nodes, or of one: a number for each ten seconds.",
        answer=HistoryView,
        handle=get_history,
        may="read",
        query=HistoryQuery,
        errors=(400, 404, 406),
    ),
)
