"""The flags of a node's GPUs, and which of them have one of some: most nodes need not be read for that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gpulse.fleet import health
from gpulse.fleet.model import Gpu, Process
from gpulse.fleet.node import Node
from gpulse.fleet.node_facts import facts

if TYPE_CHECKING:
    from gpulse.fleet.fleet import Fleet


def flags(fleet: Fleet, node: Node, gpus: Sequence[Gpu], processes: Sequence[Process]) -> list[list[str]]:
    """By GPU; `gpus` and `processes` are the node's as they are now."""
    vanished = {use.uuid for process in processes if process.vanished for use in process.gpus or ()}
    found = [health.flags(gpu, fleet.settings.thresholds, node.time) for gpu in gpus]
    for gpu, told in zip(gpus, found, strict=True):
        if gpu.uuid in vanished:
            told.append("vanished")
    return found


def having(fleet: Fleet, node: Node, wanted: frozenset[str]) -> bool | list[bool]:
    """By GPU, whether it has one of these flags."""
    if not any(_MAY_HAVE[flag](fleet, node) for flag in wanted):
        return False
    found = flags(fleet, node, node.current_gpus(), node.current_processes())
    return [not wanted.isdisjoint(told) for told in found]


def _unhealthy(fleet: Fleet, node: Node) -> bool:
    return bool(fleet.gpu_columns.unhealthy[node.start : node.start + node.count].any())


def _hot(fleet: Fleet, node: Node) -> bool:
    limit = facts(fleet, node).slowdown_celsius
    if limit is None:
        return False
    temperatures = fleet.gpu_columns.hot["temperature_celsius"][node.start : node.start + node.count].tolist()
    limit -= fleet.settings.thresholds.hot_margin_celsius
    # Unknown is NaN, which is not below anything.
    return any(not temperature < limit for temperature in temperatures)


def _told(flag: str, mark: bytes) -> Callable[[Fleet, Node], bool]:
    """As in the Snapshot, unless the last update has the mark."""
    return lambda fleet, node: flag in facts(fleet, node).flags or node.mentions(mark)


# Whether one of a node's GPUs may have the flag; no is certain.
_MAY_HAVE: dict[str, Callable[[Fleet, Node], bool]] = {
    **dict.fromkeys(health.UNHEALTHY, _unhealthy),
    "hot": _hot,
    # All the reasons that count end in this word, which most updates do not have.
    "throttled": _told("throttled", b"slowdown"),
    "vanished": _told("vanished", b'"vanished"'),
    "rows_pending": _told("rows_pending", b'"remapped_rows_pending"'),
    "pages_pending": _told("pages_pending", b'"retired_pages_pending"'),
    "nvlink_down": _told("nvlink_down", b'"nvlink_links_active"'),
    "fabric": _told("fabric", b'"fabric_'),
    "prohibited": _told("prohibited", b'"compute_mode"'),
    "xid_program": _told("xid_program", b'"xid_events"'),
}
