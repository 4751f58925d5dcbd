"""Takes over what a node's line says: into its records, and into the columns that states are made of."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import attrgetter
from struct import Struct
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET

from gpulse.errors import BadLine
from gpulse.fleet import evidence, health, state
from gpulse.fleet.booked import spot_of
from gpulse.fleet.columns import HOT, figures
from gpulse.fleet.machines import boot_of
from gpulse.fleet.model import Gpu, Snapshot
from gpulse.fleet.node import Node
from gpulse.fleet.updates import JUDGED, UPDATE, Arrival, Hot
from gpulse.fleet.weight import check_weight
from gpulse_probe.schema import SCHEMA

if TYPE_CHECKING:
    from gpulse.fleet.fleet import Fleet

# A node that is restarted finds its GPUs' ids as they were; a card is not put into another machine that fast.
ABSENCE_SECONDS = 600.0
_decode_snapshot = msgspec.json.Decoder(Snapshot).decode
_decode_arrival = msgspec.json.Decoder(Arrival).decode
_fields = attrgetter(*HOT, *JUDGED)
_HOT_FIELDS = len(HOT)
_NOTHING_HOT = Hot()
_OLDEST = 1e9
# The kinds of a process that only draws.
_DISPLAY = ["graphics"]


def take(fleet: Fleet, node: Node, data: bytes) -> None:
    """A Snapshot or an Update; BadLine where it is neither."""
    check_weight(data)
    age_before = node.devices_age
    try:
        if data.startswith(UPDATE):
            _apply(fleet, node, _decode_arrival(data), data)
        else:
            snapshot = _decode_snapshot(data)
            if (snapshot.schema or 0) > SCHEMA:
                raise BadLine(f"its probe speaks schema {snapshot.schema}, this hub {SCHEMA}: upgrade the hub")
            refused = node.refused
            node.replace(snapshot)
            if node.refused != refused:
                for report in node.refused:
                    fleet.log(node.place.name, report.message or "")
            set_patience(fleet, node)
            _take_over(fleet, node)
        age = node.devices_age
        if age != age_before:
            # A node may send anything.
            fleet.node_columns.devices_age[node.slot] = min(age, _OLDEST) if age is not None and age > 0 else 0.0
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadLine(str(error)) from None
    except RecursionError:
        raise BadLine("it is nested too deeply") from None


def set_patience(fleet: Fleet, node: Node) -> None:
    """A node that can tell only every few seconds is not stale in between."""
    probe = node.snapshot.probe if node.snapshot is not None else None
    told = probe.interval_seconds if probe is not None and probe.interval_seconds else 0.0
    interval = max(node.place.interval_seconds, min(told, 3600.0))
    fleet.node_columns.patience[node.slot] = interval * fleet.settings.thresholds.stale_intervals


def judge(fleet: Fleet, node: Node) -> None:
    """Find which of its GPUs are unhealthy, and of which readings failed."""
    thresholds, columns, gpus = fleet.settings.thresholds, fleet.gpu_columns, node.current_gpus()
    slots = slice(node.start, node.start + node.count)
    columns.unhealthy[slots] = [
        not health.UNHEALTHY.isdisjoint(health.flags(gpu, thresholds, node.time)) for gpu in gpus
    ]
    # Of most GPUs nothing failed, and their processes are listed.
    columns.processes_known[slots] = node.processes_known
    columns.failed[slots] = columns.work_failed[slots] = False
    parents = {gpu.parent_uuid for gpu in gpus if gpu.parent_uuid}
    # Of a process on a split card nobody knows which instance it is on.
    unplaced = parents and parents.intersection(use.uuid for use in node.uses if use.kinds != _DISPLAY)
    for slot, gpu in enumerate(gpus, node.start):
        if gpu.failed_fields is not None or gpu.processes_listed is not None:
            columns.processes_known[slot] = evidence.knows_processes(node, gpu)
            columns.failed[slot] = evidence.has_failed(gpu)
            columns.work_failed[slot] = evidence.work_has_failed(gpu)
        if unplaced and gpu.parent_uuid in unplaced:
            columns.processes_known[slot] = False


def mark_reserved(fleet: Fleet, node: Node) -> None:
    name, bookings = node.place.name, fleet.bookings
    slots = slice(node.start, node.start + node.count)
    if name in bookings.nodes:
        fleet.gpu_columns.reserved[slots] = [bookings.at(spot_of(name, gpu)) is not None for gpu in node.gpus]
    else:
        fleet.gpu_columns.reserved[slots] = False


def identify(fleet: Fleet, node: Node, start: int | None = None, robs: bool = True) -> None:
    """Find the ids of its GPUs; `start`: where their slots began before, if not where they do now."""
    claim = fleet.identities.claim(node, lambda other: not robs or _is_there(fleet, other))
    node.contested = bool(claim.clashes)
    _find_double(fleet, node, claim.owners)
    for owner, uuid in claim.clashes.items():
        if owner.place.name != node.same_machine_as:
            _tell_clash(fleet, node, owner, uuid)
    if claim.ids != node.ids:
        fleet.recent.moved(node.start if start is None else start, node.ids, node.start, claim.ids)
        node.ids = claim.ids
        fleet.new_layout(node)
    for other in claim.robbed:
        identify(fleet, other, robs=False)


def _find_double(fleet: Fleet, node: Node, owners: Sequence[Node | None]) -> None:
    """See whether it is a machine that is listed under another name already; `owners` have its GPUs' UUIDs."""
    elsewhere = [owner is not None and _is_same_machine(fleet, node, owner) for owner in owners]
    same = next((owner for owner, is_same in zip(owners, elsewhere, strict=True) if is_same), None)
    twin = fleet.machines.twin(node, lambda other: _is_there(fleet, other))
    if fleet.machines.set_double(node, same or twin):
        _log_double(fleet, node)
        fleet.layout += 1
    if elsewhere != node.elsewhere:
        node.elsewhere = elsewhere
        _count(fleet, node)


def _is_same_machine(fleet: Fleet, node: Node, owner: Node) -> bool:
    boot = boot_of(node)
    if boot is None or boot_of(owner) == boot:
        return boot is not None
    # The machine was rebooted, and its first name has not reported since.
    return owner.place.name == node.same_machine_as and bool(fleet.node_columns.state[owner.slot] != state.UP)


def _log_double(fleet: Fleet, node: Node) -> None:
    name, other = node.place.name, node.same_machine_as
    if other is None:
        fleet.log(name, "it is counted again: the other name of this machine is gone")
        return
    fleet.log(
        name, f"same machine as {other}, which reported first: its GPUs are counted there. Remove one of the names"
    )
    fleet.log(other, f"same machine as {name}: its GPUs are counted here. Remove one of the names")


def _count(fleet: Fleet, node: Node) -> None:
    """Say which of its GPUs are counted: not a card whose MIG instances are, nor one that another node counts."""
    parents = {gpu.parent_uuid for gpu in node.gpus if gpu.parent_uuid}
    slots = slice(node.start, node.start + node.count)
    fleet.gpu_columns.elsewhere[slots] = node.elsewhere
    fleet.gpu_columns.counted[slots] = [
        not elsewhere and not gpu.mig_enabled and (not gpu.uuid or gpu.uuid not in parents)
        for gpu, elsewhere in zip(node.gpus, node.elsewhere, strict=True)
    ]


def _is_there(fleet: Fleet, node: Node) -> bool:
    nodes = fleet.node_columns
    return bool(nodes.state[node.slot] == state.UP or fleet.clock() - nodes.last_line[node.slot] < ABSENCE_SECONDS)


def _tell_clash(fleet: Fleet, node: Node, owner: Node, uuid: str) -> None:
    """Once for two nodes, however often they change what they say."""
    if owner.place.name in node.rivals:
        return
    node.rivals.add(owner.place.name)
    fix = "list a machine under one name, or see which of the two is not what it says"
    name, place = owner.place.name, node.place.name
    fleet.log(place, f"{uuid} is told by {name} too, which had it first: here it goes by {place}/index; {fix}")
    fleet.log(name, f"{uuid} is told by {place} too, and stays with {name}, which had it first; {fix}")


def _apply(fleet: Fleet, node: Node, update: Arrival, line: bytes) -> None:
    if update.update != node.seq:
        raise BadLine("an update of another snapshot than the last")
    hot = update.gpus or _NOTHING_HOT
    fields = _fields(hot)
    told = [(field, values) for field, values in zip(HOT, fields, strict=False) if values is not UNSET]
    # All of it is checked before any of it counts.
    for field, values in told:
        if len(values) != node.count:
            raise BadLine(f"{len(values)} values of {field} for {node.count} GPUs")
    node.apply(update, line)
    moved = tuple([field for field, _ in told])
    if moved != node.moved:
        _put_back(fleet, node, set(node.moved).difference(moved))
        node.moved = moved
    for field, values in told:
        fleet.gpu_columns.write(field, node.start, values, node.packing)
    judged = fields[_HOT_FIELDS:]
    if judged != node.judged:
        node.judged = judged
        judge(fleet, node)


def _put_back(fleet: Fleet, node: Node, fields: Collection[str]) -> None:
    """Figures that are as in the Snapshot again."""
    for field in fields:
        fleet.gpu_columns.write(field, node.start, [getattr(gpu, field) for gpu in node.gpus], node.packing)


def _take_over(fleet: Fleet, node: Node) -> None:
    columns = fleet.gpu_columns
    gpus = node.gpus
    start = node.start
    if len(gpus) != node.count:
        columns.give_back(node.start, node.count)
        node.count = len(gpus)
        node.packing = Struct(f"{node.count}f")
        node.start = columns.take(node.count, node.slot) if node.count else 0
    facts = [_described(gpu) for gpu in gpus]
    if facts != node.layout_facts:
        node.layout_facts = facts
        fleet.new_layout(node)
        identify(fleet, node, start)
    elif node.contested or not gpus:
        identify(fleet, node)
    slots = slice(node.start, node.start + node.count)
    _put_back(fleet, node, HOT)
    columns.memory_total[slots] = figures([gpu.memory_total_bytes for gpu in gpus])
    _count(fleet, node)
    # A display on the card holds nobody up; its memory still counts.
    held = {use.uuid for use in node.uses if use.kinds != _DISPLAY}
    columns.occupied[slots] = [gpu.uuid in held for gpu in gpus]
    columns.person[slots] = fleet.people_names.take(node, fleet.clock())
    judge(fleet, node)
    mark_reserved(fleet, node)


def _described(gpu: Gpu) -> tuple[object, ...]:
    """What the layout of live frames says of a GPU."""
    return (gpu.uuid, gpu.index, gpu.name, gpu.memory_total_bytes, gpu.power_limit_watts, gpu.parent_uuid)
