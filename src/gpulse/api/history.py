"""The last ten minutes of a node's GPUs, or of one GPU, as the hub has them in memory."""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gpulse.api.endpoint import Endpoint
from gpulse.api.gpus import unknown_gpu
from gpulse.api.hub import Hub
from gpulse.api.selection import unknown_node
from gpulse.errors import RequestError
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.recent import STEP_SECONDS


class HistoryQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Of what."""

    node: Annotated[str, Meta(min_length=1, description="All GPUs of this node.")] | UnsetType = UNSET
    gpu: Annotated[str, Meta(min_length=1, description="The GPU of this id.")] | UnsetType = UNSET


class GpuHistory(msgspec.Struct, kw_only=True):
    """A GPU's figures, the oldest first, a number for each step. 255 is unknown, for power 65535."""

    id: str
    # Half percents, the mean of the step: 200 is 100 %.
    utilization: list[int]
    # Half percents of its memory.
    memory: list[int]
    # °C.
    temperature: list[int]
    # Watts, the mean of the step.
    power: list[int]


class HistoryView(msgspec.Struct, kw_only=True):
    """The last steps of some GPUs of one node."""

    node: str
    step_seconds: int
    # When the newest step ended: seconds since 1970.
    end: float
    gpus: list[GpuHistory]


async def get_history(hub: Hub, query: HistoryQuery, path: Mapping[str, str]) -> HistoryView:
    del path
    fleet = hub.fleet
    name = _node_of(fleet, query)
    node = fleet.known(name)
    found = fleet.recent.series(node.start, node.count)
    return HistoryView(
        node=name,
        step_seconds=STEP_SECONDS,
        end=round(fleet.recent.end, 3),
        gpus=[
            GpuHistory(
                id=identity,
                utilization=found.utilization[:, place].tolist(),
                memory=found.memory[:, place].tolist(),
                temperature=found.temperature[:, place].tolist(),
                power=found.power[:, place].tolist(),
            )
            for place, identity in enumerate(node.ids)
            if query.gpu in (UNSET, identity)
        ],
    )


def _node_of(fleet: Fleet, query: HistoryQuery) -> str:
    if query.node is not UNSET and query.gpu is not UNSET:
        raise RequestError(400, "bad_parameter", "node and gpu are both given", "give one of them")
    if query.node is not UNSET:
        if not fleet.has(query.node):
            raise unknown_node(fleet, query.node)
        return query.node
    if query.gpu is UNSET:
        raise RequestError(400, "missing_parameter", "neither node nor gpu is given", "give one of them")
    name = fleet.node_of_gpu(query.gpu)
    if name is None:
        raise unknown_gpu(query.gpu)
    return name


ENDPOINTS = (
    Endpoint(
        path="/api/v1/history",
        name="getHistory",
        summary="The last ten minutes of a node's GPUs, or of one: a number for each ten seconds.",
        answer=HistoryView,
        handle=get_history,
        may="read",
        query=HistoryQuery,
        errors=(400, 404, 406),
    ),
)
