"""GPUs and MIG instances of all nodes."""

from collections.abc import Callable, Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gpulse.api.endpoint import Endpoint
from gpulse.api.hub import Hub
from gpulse.api.nodes import next_offset
from gpulse.api.queries import Paged
from gpulse.api.selection import each_node, matching
from gpulse.errors import RequestError
from gpulse.fleet.filter import free_memory
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.views import GpuState, GpuView

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
]


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


_FIGURES: dict[str, Callable[[GpuView], float | None]] = {
    "utilization": lambda gpu: gpu.utilization_ratio,
    "free_memory": free_memory,
    "temperature": lambda gpu: gpu.temperature_celsius,
    "power": lambda gpu: gpu.power_watts,
}


async def list_gpus(hub: Hub, query: GpusQuery, path: Mapping[str, str]) -> GpuPage:
    del path
    if query == msgspec.structs.replace(GpusQuery(), limit=query.limit, offset=query.offset):
        return await _page_of_all(hub.fleet, query.offset, query.limit)
    gpus = [
        gpu
        async for node, found in matching(hub.fleet, query.filter())
        if query.group in (UNSET, node.group)
        for gpu in found
        if query.state is UNSET or (gpu.counted and gpu.state == query.state)
    ]
    figure = _FIGURES.get(query.sort.removeprefix("-"))
    sign = -1 if query.sort.startswith("-") else 1
    if figure is not None:
        told = [(figure(gpu), gpu) for gpu in gpus]
        known = sorted(((value * sign, place) for place, (value, _) in enumerate(told) if value is not None))
        gpus = [told[place][1] for _, place in known] + [gpu for value, gpu in told if value is None]
    elif sign == -1:
        gpus.reverse()
    first, last = query.offset, query.offset + query.limit
    return GpuPage(items=gpus[first:last], total=len(gpus), next=next_offset(first, query.limit, len(gpus)))


async def _page_of_all(fleet: Fleet, offset: int, limit: int) -> GpuPage:
    """A page of all GPUs in their order: only the nodes that it shows are looked at."""
    position = 0
    wanted, skipped = [], 0
    for name in fleet.names():
        count = fleet.gpu_count(name)
        if position + count <= offset:
            skipped = position + count
        elif position < offset + limit:
            wanted.append(name)
        position += count
    gpus = [gpu async for node in each_node(fleet, wanted) for gpu in node.gpus]
    first = offset - skipped
    return GpuPage(items=gpus[first : first + limit], total=position, next=next_offset(offset, limit, position))


async def get_gpu(hub: Hub, query: object, path: Mapping[str, str]) -> GpuView:
    del query
    name = hub.fleet.node_of_gpu(path["id"])
    for gpu in hub.fleet.gpus_of(name) if name is not None else ():
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
        errors=(400, 406, 422),
    ),
    Endpoint(
        path="/api/v1/gpus/{id}",
        name="getGpu",
        summary="One GPU or MIG instance, by its id.",
        answer=GpuView,
        handle=get_gpu,
        may="read",
        path_parameters={"id": "The GPU's id: its UUID, or node/index where it has told none."},
        errors=(400, 404, 406),
    ),
)
