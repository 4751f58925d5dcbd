"""GPUs and MIG instances of all nodes."""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec import UNSET, Meta, UnsetType
from numpy.typing import NDArray

from gpulse.api.bodies import Incoming
from gpulse.api.endpoint import Endpoint
from gpulse.api.hub import Hub
from gpulse.api.nodes import next_offset
from gpulse.api.queries import OfPeople, Paged
from gpulse.api.selection import encoded_gpus, select
from gpulse.errors import RequestError
from gpulse.fleet.figure_terms import free_memory
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.roster import Roster, Rows
from gpulse.fleet.views import GPU_STATES, GpuState, GpuView

GpuSort = Literal[
    "node",
    "-node",
    "utilization",
    "-utilization",
    "free_memory",
    "-free_memory",
    "temperature",
    "-temperature",
    "power",
    "-power",
    "idle",
    "-idle",
]
_HOT = {"utilization": "utilization_ratio", "temperature": "temperature_celsius", "power": "power_watts"}


class GpusQuery(Paged, frozen=True, kw_only=True):
    """Which GPUs."""

    state: Annotated[GpuState, Meta(description="Only GPUs in this state.")] | UnsetType = UNSET
    group: Annotated[str, Meta(max_length=200, description="Only GPUs of nodes of this group.")] | UnsetType = UNSET
    sort: Annotated[GpuSort, Meta(description="By what; a minus turns it round. What is unknown comes last.")] = "node"


class GpuPage(msgspec.Struct, kw_only=True):
    """Some of the GPUs. A card split into MIG instances is listed with `counted` false, its instances beside it."""

    items: list[GpuView]
    # How many there are in all pages.
    total: int
    # The offset of the next page; null: this is the last.
    next: int | None


async def list_gpus(hub: Hub, query: GpusQuery, path: Mapping[str, str], incoming: Incoming) -> dict[str, object]:
    del path
    roster, found = await select(hub.fleet, query.filter(incoming.sight))
    rows = _sorted(hub.fleet, roster, _wanted(hub.fleet, query, roster, found), query.sort)
    first, last = query.offset, query.offset + query.limit
    items = await encoded_gpus(hub.fleet, roster, rows[first:last], incoming.sight)
    return {"items": items, "total": len(rows), "next": next_offset(first, query.limit, len(rows))}


def _wanted(fleet: Fleet, query: GpusQuery, roster: Roster, rows: Rows) -> Rows:
    rows = rows[roster.has_gpu[rows]]
    if query.state is not UNSET:
        gpus = fleet.gpu_columns
        rows = rows[(gpus.state == GPU_STATES.index(query.state))[roster.slot[rows]]]
    if query.group is not UNSET:
        of_group = np.array([node.place.group == query.group for node in roster.nodes], np.bool_)
        rows = rows[of_group[roster.node[rows]]]
    return rows


def _sorted(fleet: Fleet, roster: Roster, rows: Rows, sort: str) -> Rows:
    key, sign = sort.removeprefix("-"), -1.0 if sort.startswith("-") else 1.0
    if key == "node":
        return rows if sign > 0 else rows[::-1]
    # NaN comes last; who are equal stay in their order.
    return rows[np.argsort(sign * _figure(fleet, key)[roster.slot[rows]], kind="stable")]


def _figure(fleet: Fleet, key: str) -> NDArray[np.float64]:
    """Of all slots; NaN is unknown."""
    gpus = fleet.gpu_columns
    if key == "free_memory":
        return free_memory(gpus)
    if key == "idle":
        return fleet.clock() - gpus.idle_since
    return gpus.hot[_HOT[key]].astype(np.float64)


async def get_gpu(hub: Hub, query: object, path: Mapping[str, str], incoming: Incoming) -> GpuView:
    del query
    name = hub.fleet.node_of_gpu(path["id"])
    for gpu in hub.fleet.gpus_of(name, incoming.sight) if name is not None else ():
        if gpu.id == path["id"]:
            return gpu
    raise unknown_gpu(path["id"])


def unknown_gpu(gpu: str) -> RequestError:
    return RequestError(404, "unknown_gpu", f'there is no GPU "{gpu[:200]}"', "GET api/v1/gpus lists all GPUs")


ENDPOINTS = (
    Endpoint(
        path="/api/v1/gpus",
        name="listGpus",
        summary="GPUs and MIG instances of all nodes, each with its state and who is on it.",
        answer=GpuPage,
        handle=list_gpus,
        may="read",
        query=GpusQuery,
        of_people=True,
        errors=(400, 406, 422),
    ),
    Endpoint(
        path="/api/v1/gpus/{id}",
        name="getGpu",
        summary="One GPU or MIG instance, by its id.",
        answer=GpuView,
        handle=get_gpu,
        may="read",
        query=OfPeople,
        of_people=True,
        path_parameters={"id": "The GPU's id: its UUID, or node/index where it has told none."},
        errors=(400, 404, 406),
    ),
)
