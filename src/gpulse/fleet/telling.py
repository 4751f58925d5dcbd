"""Puts together what the fleet tells about now: nodes, GPUs, people and the summary, made when they are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from gpulse.fleet import health, rates, state
from gpulse.fleet.model import Gpu, Host, Process
from gpulse.fleet.node import CPU_TIMES, Node
from gpulse.fleet.views import (
    GPU_STATES,
    GpuState,
    GpuView,
    NodeView,
    PersonUse,
    PersonView,
    ProcessView,
    Rates,
    Summary,
)

if TYPE_CHECKING:
    from gpulse.fleet.fleet import Fleet

_GPU_RATES = (
    ("pcie_sent_bytes_total", "pcie_sent_rate_bytes_per_second", "pcie_sent_bytes_per_second"),
    ("pcie_received_bytes_total", "pcie_received_rate_bytes_per_second", "pcie_received_bytes_per_second"),
    ("nvlink_sent_bytes_total", "nvlink_sent_rate_bytes_per_second", None),
    ("nvlink_received_bytes_total", "nvlink_received_rate_bytes_per_second", None),
)


def gpu_id(node: Node, gpu: Gpu) -> str:
    """The UUID; a card that has told none is known by its place."""
    return gpu.uuid or f"{node.place.name}/{gpu.index}"


def node_view(fleet: Fleet, node: Node, detail: bool) -> NodeView:
    place = node.place
    code = int(fleet.node_columns.state[node.slot])
    age = fleet.age(node)
    reason = node.reason
    if code == state.STALE_NODE:
        reason = f"no snapshot for {age:.0f} s"
    elif code == state.NEW and not reason:
        reason = "waiting for its first snapshot"
    probe = node.snapshot.probe if node.snapshot is not None else None
    view = NodeView(
        name=place.name,
        display_name=place.display_name or place.name,
        state=state.NODE_STATES[code],
        reason=reason,
        age_seconds=None if age is None else round(age, 1),
        gpus=gpu_views(fleet, node),
        group=place.group,
        rack=place.rack,
        address=place.address,
        interval_seconds=place.interval_seconds,
        clock_difference_seconds=None if node.clock_difference is None else round(node.clock_difference, 1),
        probe_version=probe.version if probe else None,
        gpu_source=probe.gpu_source if probe else None,
        rates=_host_rates(node),
    )
    if detail:
        view.host = node.current_host()
        view.processes = process_views(fleet, node)
        view.reports = node.reports
    return view


def gpu_views(fleet: Fleet, node: Node) -> list[GpuView]:
    people = _people_by_gpu(fleet, node)
    vanished = {use.uuid for process in node.processes if process.vanished for use in process.gpus or ()}
    states = fleet.gpu_columns.state[node.start : node.start + node.count].tolist()
    views = []
    for place, gpu in enumerate(node.current_gpus()):
        counted = states[place] != state.NOT_COUNTED
        flags = health.flags(gpu, fleet.settings.thresholds, node.time)
        if gpu.uuid in vanished:
            flags.append("vanished")
        # A view begins with the fields of Gpu; by position it is made ten times faster than by name.
        view = GpuView(
            *msgspec.structs.astuple(gpu),
            node=node.place.name,
            id=gpu_id(node, gpu),
            state=GPU_STATES[states[place]] if counted else _state_of_parent(fleet, node),
            model=fleet.model(gpu.name),
            counted=counted,
            flags=flags,
            people=people.get(gpu.uuid, []),
        )
        _add_rates(view, node, place)
        views.append(view)
    return views


def process_views(fleet: Fleet, node: Node) -> list[ProcessView]:
    views = []
    before = node.cpu_before
    for place, process in enumerate(node.current_processes()):
        share = None
        if before is not None and len(before[1]) == len(node.processes):
            share = rates.rate(_number(before[1][place]), process.cpu_seconds_total, node.time - before[0])
        values = {name: getattr(process, name) for name in Process.__struct_fields__}
        person = fleet.people_names.person(process)
        views.append(ProcessView(**values, node=node.place.name, person=person, cpu_ratio=share))
    return views


def people(fleet: Fleet) -> list[PersonView]:
    """Who holds what, those with most GPUs first."""
    found: dict[str, PersonView] = {}
    for name in fleet.names():
        node = fleet.known(name)
        busy = {
            gpu.uuid: fleet.gpu_columns.state[node.start + place] == state.BUSY for place, gpu in enumerate(node.gpus)
        }
        held: dict[str, set[str | None]] = {}
        for process in node.current_processes():
            person = fleet.people_names.person(process)
            if not person or not process.gpus:
                continue
            view = found.setdefault(
                person, PersonView(person=person, gpus=0, busy_gpus=0, memory_bytes=0, processes=0, nodes=[])
            )
            view.processes += 1
            view.memory_bytes += sum(use.memory_bytes or 0 for use in process.gpus)
            held.setdefault(person, set()).update(use.uuid for use in process.gpus)
        for person, uuids in held.items():
            found[person].gpus += len(uuids)
            found[person].busy_gpus += sum(bool(busy.get(uuid)) for uuid in uuids)
            found[person].nodes.append(name)
    return sorted(found.values(), key=lambda view: (-view.gpus, -view.memory_bytes, view.person))


def summary(fleet: Fleet) -> Summary:
    gpus = fleet.gpu_columns
    used = slice(gpus.used)
    states = gpus.state[used]
    counts = np.bincount(states[gpus.counted[used]], minlength=len(GPU_STATES))
    usable = np.isin(states, (state.BUSY, state.IDLE, state.RESERVED, state.FREE))
    nodes = [int(fleet.node_columns.state[fleet.known(name).slot]) for name in fleet.names()]
    free = gpus.memory_total[used] - gpus.hot["memory_used_bytes"][used]
    return Summary(
        nodes=len(nodes),
        nodes_up=nodes.count(state.UP),
        gpus=int(counts[: len(GPU_STATES)].sum()),
        states={name: int(counts[code]) for code, name in enumerate(GPU_STATES)},
        memory_total_bytes=int(np.nansum(gpus.memory_total[used], where=gpus.counted[used], dtype=np.float64)),
        memory_free_bytes=int(np.nansum(free, where=usable, dtype=np.float64)),
        power_watts=round(float(np.nansum(gpus.hot["power_watts"][used], dtype=np.float64)), 1),
    )


def _people_by_gpu(fleet: Fleet, node: Node) -> dict[str | None, list[PersonUse]]:
    held: dict[str | None, dict[str, PersonUse]] = {}
    for process in node.current_processes():
        person = fleet.people_names.person(process) or "?"
        for use in process.gpus or ():
            entry = held.setdefault(use.uuid, {}).setdefault(person, PersonUse(person=person))
            entry.processes += 1
            if use.memory_bytes is not None:
                entry.memory_bytes = (entry.memory_bytes or 0) + use.memory_bytes
    return {
        uuid: sorted(uses.values(), key=lambda one: (-(one.memory_bytes or 0), one.person))
        for uuid, uses in held.items()
    }


def _state_of_parent(fleet: Fleet, node: Node) -> GpuState:
    """A split card shows whether its node is there; its instances are what is free or busy."""
    code = fleet.node_columns.state[node.slot]
    if code in (state.DOWN_NODE, state.NEW):
        return "down"
    return "stale" if code == state.STALE_NODE else "busy"


def _add_rates(view: GpuView, node: Node, place: int) -> None:
    for counter, field, measured in _GPU_RATES:
        before = node.gpu_before.get(counter)
        if before is not None and len(before[1]) == node.count:
            seconds = node.gpu_counted_at.get(counter, node.time) - before[0]
            setattr(view, field, rates.rate(_number(before[1][place]), getattr(view, counter), seconds))
        elif measured:
            setattr(view, field, getattr(view, measured))


def _number(value: object) -> float | None:
    """A counter of the line before, which was not checked when it came."""
    return value if isinstance(value, int | float) else None


def _host_rates(node: Node) -> Rates | None:
    if node.host_before is None:
        return None
    then, before = node.host_before
    try:
        earlier = msgspec.convert(before, Host, from_attributes=True)
    except msgspec.ValidationError:
        return None
    now = node.current_host()
    seconds = node.time - then
    found = {"cpu_ratio": rates.cpu_ratio(_cpu_times(earlier), _cpu_times(now))}
    for kind, links_before, links in (
        ("network", earlier.networks, now.networks),
        ("infiniband", earlier.infiniband, now.infiniband),
    ):
        for direction in ("received", "sent"):
            field = f"{direction}_bytes_total"
            found[f"{kind}_{direction}_bytes_per_second"] = rates.rate(
                rates.total(links_before, field), rates.total(links, field), seconds
            )
    return msgspec.convert(found, Rates)


def _cpu_times(host: Host) -> list[float | None]:
    return [getattr(host, name) for name in CPU_TIMES]
