"""The fleet and the hub as metrics for Prometheus."""

import platform
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from operator import attrgetter
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from gpulse.api import metric_families as families
from gpulse.api.answers import Packed
from gpulse.api.bodies import Incoming
from gpulse.api.endpoint import Endpoint
from gpulse.api.exposition import OPENMETRICS, TEXT, Family, Sheet, escaped, labels
from gpulse.api.hub import Hub
from gpulse.api.own_process import add_process
from gpulse.api.turns import Turn
from gpulse.fleet import state
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.health import SLOWED_DOWN
from gpulse.fleet.model import Gpu, Host
from gpulse.fleet.node import Node
from gpulse.fleet.telling import devices_age
from gpulse.fleet.views import GPU_STATES
from gpulse_probe import __version__

PARTS = ("hub", "summary", "nodes", "gpus")
_ONE = "(" + "|".join(PARTS) + ")"
_gpu_figures = attrgetter(*(field for _, field in families.GPU))


class MetricsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which metrics."""

    only: Annotated[
        str,
        Meta(
            pattern=f"^{_ONE}(,{_ONE}){{0,3}}$",
            description="Some parts of `hub,summary,nodes,gpus`; a large fleet can be asked for its GPUs less often.",
        ),
    ] = ",".join(PARTS)


async def get_metrics(hub: Hub, query: MetricsQuery, path: Mapping[str, str], incoming: Incoming) -> Packed:
    del path
    parts = query.only.split(",")
    sheet = Sheet()
    if "hub" in parts:
        _add_hub(sheet, hub)
    if "summary" in parts:
        await _add_summary(sheet, hub.fleet)
    if "nodes" in parts:
        async for node in _each(hub.fleet):
            _add_node(sheet, hub.fleet, node)
    if "gpus" in parts:
        async for node in _each(hub.fleet):
            _add_gpus(sheet, hub.fleet, node)
    return Packed(await sheet.packed(incoming.media), incoming.media)


async def _each(fleet: Fleet) -> AsyncIterator[Node]:
    """All nodes; those that leave meanwhile are left out."""
    turn = Turn()
    for name in list(fleet.names()):
        if fleet.has(name):
            yield fleet.known(name)
            await turn.give()


def _add_hub(sheet: Sheet, hub: Hub) -> None:
    fleet, counters = hub.fleet, hub.fleet.counters
    sheet.add(families.BUILD, labels(version=__version__, python=platform.python_version()), 1)
    nodes = fleet.node_columns
    taken = nodes.taken[: nodes.used]
    counts = np.bincount(nodes.state[: nodes.used][taken], minlength=len(state.NODE_STATES)).tolist()
    for name, count in zip(state.NODE_STATES, counts, strict=True):
        sheet.add(families.NODES, labels(state=name), count)
    for family, value in (
        (families.TICKS, fleet.generation),
        (families.TICK_SECONDS, counters.tick_seconds),
        (families.LISTENERS, hub.listeners()),
        (families.LINES, counters.lines),
        (families.LINE_BYTES, counters.line_bytes),
        (families.BAD_LINES, counters.bad_lines),
        (families.LATE_LINES, counters.late_lines),
        (families.CONNECTS, counters.connects),
    ):
        sheet.add(family, "", value)
    for code, count in sorted(counters.refused.items()):
        sheet.add(families.REFUSED, labels(code=code), count)
    add_process(sheet)


async def _add_summary(sheet: Sheet, fleet: Fleet) -> None:
    found: Counter[tuple[str, int]] = Counter()
    async for node in _each(fleet):
        states = fleet.gpu_columns.state[node.start : node.start + node.count].tolist()
        found.update((fleet.model(gpu.name) or "", code) for gpu, code in zip(node.gpus, states, strict=True))
    # All states of a model that is there, so that none free is 0 and not nothing.
    for model in sorted({model for model, code in found if code != state.NOT_COUNTED}):
        for code, word in enumerate(GPU_STATES):
            sheet.add(families.GPUS, labels(model=model or "unknown", state=word), found[model, code])
    summary = fleet.summary()
    for family, field in families.SUMMARY:
        sheet.add(family, "", getattr(summary, field))


def _add_node(sheet: Sheet, fleet: Fleet, node: Node) -> None:
    name = node.place.name
    own = labels(node=name)
    up = bool(fleet.node_columns.state[node.slot] == state.UP)
    sheet.add(families.NODE_UP, own, up)
    host = node.current_host()
    probe = node.snapshot.probe if node.snapshot is not None else None
    facts = labels(
        node=name,
        group=node.place.group,
        rack=node.place.rack,
        os=host.os,
        kernel=host.kernel,
        architecture=host.architecture,
        cpu_model=host.cpu_model,
        probe_version=probe.version if probe is not None else None,
    )
    sheet.add(families.NODE_INFO, facts, 1)
    age = fleet.age(node)
    sheet.add(families.NODE_AGE, own, age)
    sheet.add(families.NODE_DEVICES_AGE, own, None if age is None else age + devices_age(fleet, node))
    if node.same_machine_as is not None:
        sheet.add(families.NODE_SAME_MACHINE, labels(node=name, same_as=node.same_machine_as), 1)
    if not up:
        # What was so once is not told as if it were so now.
        return
    sheet.add(families.NODE_CLOCK, own, node.clock_difference)
    sheet.add(families.NODE_REPORTS, own, len(node.reports))
    _add_host(sheet, name, own, host)


def _add_host(sheet: Sheet, name: str, own: str, host: Host) -> None:
    for family, field in families.HOST:
        sheet.add(family, own, getattr(host, field))
    for mode in families.CPU_MODES:
        sheet.add(families.NODE_CPU, labels(node=name, mode=mode), getattr(host, f"cpu_{mode}_seconds_total"))
    disks = {labels(node=name, mountpoint=one.mount, kind=one.kind): one for one in host.disks or ()}
    _add_each(sheet, families.DISK, disks)
    _add_each(sheet, families.NETWORK, {labels(node=name, device=one.interface): one for one in host.networks or ()})
    ports = {
        labels(node=name, device=one.device, port=None if one.port is None else str(one.port)): one
        for one in host.infiniband or ()
    }
    _add_each(sheet, families.INFINIBAND, ports)


def _add_each(sheet: Sheet, figures: tuple[tuple[Family, str], ...], found: Mapping[str, msgspec.Struct]) -> None:
    for told, one in found.items():
        for family, field in figures:
            sheet.add(family, told, getattr(one, field))


def _add_gpus(sheet: Sheet, fleet: Fleet, node: Node) -> None:
    states = fleet.gpu_columns.state[node.start : node.start + node.count].tolist()
    names = _names(node.gpus)
    start = f'{{node="{escaped(node.place.name)}",gpu="'
    for name, gpu, code in zip(names, node.gpus, states, strict=True):
        sheet.add(families.GPU_INFO, _facts(fleet, node, name, gpu), 1)
        if code != state.NOT_COUNTED:
            sheet.add(families.GPU_STATE, f'{start}{name}",state="{GPU_STATES[code]}"}}', 1)
    if fleet.node_columns.state[node.slot] != state.UP:
        return
    columns = [sheet.samples(family) for family, _ in families.GPU]
    silent, read_before = fleet.age(node) or 0.0, devices_age(fleet, node)
    for name, gpu, code, elsewhere in zip(names, node.current_gpus(), states, node.elsewhere, strict=True):
        if elsewhere:
            # The node that counts it has the same series, and sums would have them twice.
            continue
        own = f'{start}{name}"}}'
        sheet.add(families.GPU_AGE, own, silent + max(read_before, gpu.age_seconds or 0.0))
        if code == state.STALE:
            # Its node is up, but these values are from before.
            continue
        if gpu.throttle_reasons is not None:
            sheet.add(families.GPU_THROTTLED, own, not SLOWED_DOWN.isdisjoint(gpu.throttle_reasons))
        for samples, value in zip(columns, _gpu_figures(gpu), strict=True):
            if value is not None:
                try:
                    samples.values.append(value)
                except OverflowError:
                    continue
                samples.labels.append(own)


def _names(gpus: list[Gpu]) -> list[str]:
    """As people say, "3", or "3.1" for a MIG instance; each only once, whatever a node may send."""
    found: dict[str, None] = {}
    for place, gpu in enumerate(gpus):
        name = "unknown" if gpu.index is None else str(gpu.index)
        if gpu.parent_uuid and gpu.mig_index is not None:
            name += f".{gpu.mig_index}"
        found[name if name not in found else f"{name}#{place}"] = None
    return list(found)


def _facts(fleet: Fleet, node: Node, name: str, gpu: Gpu) -> str:
    return labels(
        node=node.place.name,
        gpu=name,
        uuid=gpu.uuid,
        model=fleet.model(gpu.name),
        name=gpu.name,
        vendor=gpu.vendor,
        mig_profile=gpu.mig_profile,
        pci_bus_id=gpu.pci_bus_id,
        driver_version=gpu.driver_version,
    )


ENDPOINTS = (
    Endpoint(
        path="/metrics",
        name="metrics",
        summary="Nodes, GPUs and the hub for Prometheus; docs/metrics.md has the list.",
        answer=str,
        handle=get_metrics,
        may="read",
        scopes=frozenset({"metrics"}),
        query=MetricsQuery,
        errors=(400, 406),
        media=TEXT,
        other_media=(OPENMETRICS,),
    ),
)
