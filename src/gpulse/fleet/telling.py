"""Puts together what the fleet tells about now: nodes, GPUs, people and the summary, made when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpulse.fleet import evidence, flagged, rates, state
from gpulse.fleet.booked import SOON_SECONDS, Booked, BookedView, spot_of
from gpulse.fleet.figure_terms import free_memory
from gpulse.fleet.model import Gpu, Host, Process
from gpulse.fleet.node import Earlier, Node
from gpulse.fleet.seeing import seen, seen_reports, seen_words
from gpulse.fleet.sight import Sight
from gpulse.fleet.views import (
    GPU_STATES,
    GpuView,
    NodeView,
    PersonUse,
    ProcessView,
    Rates,
    Summary,
)

if TYPE_CHECKING:
    from gpulse.fleet.fleet import Fleet

_CPU_TIMES = (
    "cpu_user_seconds_total",
    "cpu_nice_seconds_total",
    "cpu_system_seconds_total",
    "cpu_irq_seconds_total",
    "cpu_steal_seconds_total",
    "cpu_idle_seconds_total",
    "cpu_iowait_seconds_total",
)
_GPU_RATES = (
    ("pcie_sent_bytes_total", "pcie_sent_rate_bytes_per_second", "pcie_sent_bytes_per_second"),
    ("pcie_received_bytes_total", "pcie_received_rate_bytes_per_second", "pcie_received_bytes_per_second"),
    ("nvlink_sent_bytes_total", "nvlink_sent_rate_bytes_per_second", None),
    ("nvlink_received_bytes_total", "nvlink_received_rate_bytes_per_second", None),
)


def node_view(fleet: Fleet, node: Node, detail: bool, sight: Sight) -> NodeView:
    place = node.place
    code = int(fleet.node_columns.state[node.slot])
    age = fleet.age(node)
    reason = seen_words(node.reason, sight)
    if code == state.STALE_NODE:
        reason = f"no snapshot for {age:.0f} s"
    elif code == state.NEW and not reason:
        reason = "waiting for its first snapshot"
    probe = node.snapshot.probe if node.snapshot is not None else None
    earlier = node.earlier()
    # Read once: a node may have sent a megabyte of it.
    host = node.current_host() if detail or earlier is not None else Host()
    view = NodeView(
        name=place.name,
        display_name=place.display_name or place.name,
        state=state.NODE_STATES[code],
        reason=reason,
        age_seconds=None if age is None else round(age, 1),
        gpus=gpu_views(fleet, node, earlier, sight),
        devices_age_seconds=None if age is None else round(age + devices_age(fleet, node), 1),
        same_machine_as=node.same_machine_as,
        group=place.group,
        rack=place.rack,
        address=place.address,
        interval_seconds=place.interval_seconds,
        clock_difference_seconds=None if node.clock_difference is None else round(node.clock_difference, 1),
        probe_version=probe.version if probe else None,
        gpu_source=probe.gpu_source if probe else None,
        rates=_host_rates(node, host, earlier),
    )
    if detail:
        view.host = host
        view.processes = process_views(fleet, node, earlier, sight) if node.processes_known else None
        view.reports = seen_reports(node.reports, sight)
    return view


def gpu_views(fleet: Fleet, node: Node, earlier: Earlier | None, sight: Sight) -> list[GpuView]:
    before = {gpu.uuid: gpu for gpu in earlier.gpus} if earlier else {}
    seconds = node.time - earlier.time if earlier else 0.0
    gpus, processes = node.current_gpus(), node.current_processes()
    people = _people_by_gpu(fleet, processes, sight)
    flags = flagged.flags(fleet, node, gpus, processes)
    slots = slice(node.start, node.start + node.count)
    states = fleet.gpu_columns.state[slots].tolist()
    idle = (fleet.clock() - fleet.gpu_columns.idle_since[slots]).tolist()
    silent, read_before = fleet.age(node) or 0.0, devices_age(fleet, node)
    views = []
    for place, gpu in enumerate(gpus):
        counted = states[place] != state.NOT_COUNTED
        # A view begins with the fields of Gpu; by position it is made ten times faster than by name.
        view = GpuView(
            *msgspec.structs.astuple(gpu),
            node=node.place.name,
            id=node.ids[place],
            state=GPU_STATES[states[place]] if counted else None,
            model=fleet.model(gpu.name),
            counted=counted,
            flags=flags[place],
            idle_seconds=round(max(0.0, idle[place]), 1) if states[place] == state.IDLE else None,
            people=people.get(gpu.uuid, []) if evidence.knows_processes(node, gpu) else people.get(gpu.uuid),
        )
        view.age_seconds = round(silent + max(read_before, gpu.age_seconds or 0.0), 1)
        _add_rates(view, before.get(gpu.uuid), seconds)
        views.append(view)
    if node.place.name in fleet.bookings.nodes:
        _add_reservations(fleet, views, sight)
    return views


def _add_reservations(fleet: Fleet, views: list[GpuView], sight: Sight) -> None:
    soon = fleet.wall() + SOON_SECONDS
    for view in views:
        spot = spot_of(view.node, view)
        # A card that is split has what is reserved of it on its instances.
        now, later = (find(spot, view.counted) for find in (fleet.bookings.at, fleet.bookings.next_at))
        view.reservation = booked_view(fleet, now, sight) if now is not None else None
        if later is not None and later.start <= soon:
            view.next_reservation = booked_view(fleet, later, sight)


def booked_view(fleet: Fleet, booked: Booked, sight: Sight) -> BookedView:
    """Without what `sight` hides of others."""
    person = sight.login(booked.person) or booked.person
    return BookedView(
        id=booked.id,
        person=person,
        name=fleet.people_names.called(person) or person,
        start=booked.start,
        end=booked.end,
        comment=booked.comment if sight.names(booked.person) else "",
        hold=booked.hold,
    )


def process_views(fleet: Fleet, node: Node, earlier: Earlier | None, sight: Sight) -> list[ProcessView]:
    before = {(one.pid, one.start_time): one.cpu_seconds_total for one in earlier.processes} if earlier else {}
    seconds = node.time - earlier.time if earlier else 0.0
    views = []
    for process in seen(node.current_processes(), sight):
        view = ProcessView(
            *msgspec.structs.astuple(process),
            node=node.place.name,
            person=fleet.people_names.person(process),
            cpu_ratio=rates.rate(before.get((process.pid, process.start_time)), process.cpu_seconds_total, seconds),
        )
        views.append(view)
    return views


def summary(fleet: Fleet) -> Summary:
    gpus = fleet.gpu_columns
    used = slice(gpus.used)
    states = gpus.state[used]
    counts = np.bincount(states[gpus.counted[used]], minlength=len(GPU_STATES))
    usable = np.isin(states, (state.BUSY, state.IDLE, state.RESERVED, state.FREE))
    # A split card alone knows its power; one that another node has is counted there.
    there = (states != state.DOWN) & ~gpus.elsewhere[used]
    nodes = fleet.node_columns
    memory, known_memory = _sum(gpus.memory_total[used], gpus.counted[used])
    free, known_free = _sum(free_memory(gpus, used), usable)
    power, known_power = _sum(gpus.hot["power_watts"][used], there)
    return Summary(
        nodes=int(nodes.taken[: nodes.used].sum()),
        nodes_up=int(np.count_nonzero(nodes.state[: nodes.used][nodes.taken[: nodes.used]] == state.UP)),
        gpus=int(counts[: len(GPU_STATES)].sum()),
        states={name: int(counts[code]) for code, name in enumerate(GPU_STATES)},
        memory_total_bytes=None if memory is None else int(memory),
        memory_total_known_gpus=known_memory,
        memory_free_bytes=None if free is None else int(free),
        memory_free_known_gpus=known_free,
        power_watts=None if power is None else round(power, 1),
        power_known_gpus=known_power,
        same_machine_nodes=fleet.machines.doubles,
    )


def devices_age(fleet: Fleet, node: Node) -> float:
    """How old the values of its GPUs were when its last line came."""
    return float(fleet.node_columns.devices_age[node.slot])


def _sum(values: NDArray[np.floating[Any]], where: NDArray[np.bool_]) -> tuple[float | None, int]:
    """Add up the values that are known, and count them; None where none is. A node may send anything, also infinity."""
    known = values[where & np.isfinite(values)]
    return float(known.sum(dtype=np.float64)) if len(known) else None, len(known)


def _people_by_gpu(fleet: Fleet, processes: Sequence[Process], sight: Sight) -> dict[str | None, list[PersonUse]]:
    held: dict[str | None, dict[str, PersonUse]] = {}
    for process in processes:
        person = fleet.people_names.called(sight.login(process.user)) or "?"
        for use in process.gpus or ():
            entry = held.setdefault(use.uuid, {}).setdefault(person, PersonUse(person=person))
            entry.processes += 1
            if use.memory_bytes is not None:
                entry.memory_bytes = (entry.memory_bytes or 0) + use.memory_bytes
    return {
        uuid: sorted(uses.values(), key=lambda one: (-(one.memory_bytes or 0), one.person))
        for uuid, uses in held.items()
    }


def _add_rates(view: GpuView, before: Gpu | None, seconds: float) -> None:
    for counter, field, measured in _GPU_RATES:
        rate = rates.rate(getattr(before, counter, None), getattr(view, counter), seconds)
        if rate is None and measured:
            rate = getattr(view, measured)
        setattr(view, field, rate)


def _host_rates(node: Node, now: Host, earlier: Earlier | None) -> Rates | None:
    if earlier is None:
        return None
    seconds = node.time - earlier.time
    found = {"cpu_ratio": rates.cpu_ratio(_cpu_times(earlier.host), _cpu_times(now))}
    for kind, before, links in (
        ("network", earlier.host.networks, now.networks),
        ("infiniband", earlier.host.infiniband, now.infiniband),
    ):
        for direction in ("received", "sent"):
            field = f"{direction}_bytes_total"
            found[f"{kind}_{direction}_bytes_per_second"] = rates.rate(
                rates.total(before, field), rates.total(links, field), seconds
            )
    return msgspec.convert(found, Rates)


def _cpu_times(host: Host) -> list[float | None]:
    return [getattr(host, name) for name in _CPU_TIMES]
