"""Exactly one state for each GPU, by precedence, for the whole fleet at once; pure.

down: the node is down, or has sent nothing yet. stale: it has been silent for some intervals, or the GPU's values are
old. unhealthy: the card must not be given to anybody. unknown: nobody can say whether it is used. busy: it works, or
did a moment ago and is still held. idle: memory is held, but it does not work. reserved: booked and not used. free:
what is known suffices to say so. A card split into MIG instances has no state of its own: its instances are counted.
"""

import numpy as np
from numpy.typing import NDArray

from gpulse.fleet.columns import GpuColumns, NodeColumns
from gpulse.fleet.evidence import ENOUGH
from gpulse.fleet.thresholds import Thresholds
from gpulse.fleet.views import GPU_STATES, NodeState

NODE_STATES: tuple[NodeState, ...] = ("new", "up", "stale", "down")
NEW, UP, STALE_NODE, DOWN_NODE = range(4)
DOWN, STALE, UNHEALTHY, UNKNOWN, BUSY, IDLE, RESERVED, FREE = range(8)
# What a slot has that is not counted: no GPU, a card whose instances are counted, or one that another node has.
NOT_COUNTED = len(GPU_STATES)
# nvidia-smi alone takes some seconds, and cards next to one that hangs are read again after ten.
DEVICES_PATIENCE_SECONDS = 15.0
Mask = NDArray[np.bool_]


def judge_age(nodes: NodeColumns, now: float, slots: slice) -> None:
    """Find the nodes that are up but silent for too long, and those whose GPUs' values are too old."""
    silent = now - nodes.last_line[slots]
    patience = nodes.patience[slots]
    nodes.state[slots][(nodes.state[slots] == UP) & (silent > patience)] = STALE_NODE
    nodes.outdated[slots] = silent + nodes.devices_age[slots] > np.maximum(patience, DEVICES_PATIENCE_SECONDS)


def evaluate(
    gpus: GpuColumns, nodes: NodeColumns, thresholds: Thresholds, now: float, slots: slice | None = None
) -> None:
    """Put the state of every slot, or of these, into gpus.state."""
    used = slots or slice(gpus.used)
    if not gpus.used:
        return
    utilization = gpus.hot["utilization_ratio"][used]
    activity = gpus.hot["sm_active_ratio"][used]
    memory = gpus.hot["memory_used_bytes"][used]
    work = np.where(np.isnan(utilization), activity, utilization)
    occupied = gpus.occupied[used]
    work_known = ~np.isnan(work)
    unknown = _unknown(gpus, used, work_known, ~np.isnan(memory))
    with np.errstate(invalid="ignore"):
        # Where work cannot be measured, a process on the GPU counts as work.
        working = np.where(work_known, work >= thresholds.busy_utilization_ratio, occupied & ~unknown)
        held = occupied | (memory >= thresholds.held_memory_bytes)
    gpus.last_busy[used][working] = now
    node = gpus.node[used]
    node_state = nodes.state[node]
    failed = gpus.failed[used] | (gpus.work_failed[used] & ~work_known)
    state = np.full(len(node), FREE, np.uint8)
    # The last that holds wins.
    np.putmask(state, gpus.reserved[used], RESERVED)
    np.putmask(state, held, IDLE)
    np.putmask(state, working | (held & (now - gpus.last_busy[used] <= thresholds.busy_hold_seconds)), BUSY)
    np.putmask(state, unknown, UNKNOWN)
    # Values are old because the card could not be read: what failed says more than that.
    np.putmask(state, _outdated(gpus, nodes, used, node, now) & ~failed, STALE)
    np.putmask(state, gpus.unhealthy[used], UNHEALTHY)
    np.putmask(state, node_state == STALE_NODE, STALE)
    np.putmask(state, (node_state == DOWN_NODE) | (node_state == NEW), DOWN)
    np.putmask(state, ~gpus.counted[used], NOT_COUNTED)
    _follow_idle(gpus, used, state, now)
    gpus.state[used] = state


def _unknown(gpus: GpuColumns, used: slice, work_known: Mask, memory_known: Mask) -> Mask:
    """Whether nobody can say if a GPU is used: reading it failed, or too few signs of use are known."""
    known = work_known.view(np.uint8) + memory_known.view(np.uint8) + gpus.processes_known[used].view(np.uint8)
    return gpus.failed[used] | (gpus.work_failed[used] & ~work_known) | (known < ENOUGH)


def _outdated(gpus: GpuColumns, nodes: NodeColumns, used: slice, node: NDArray[np.int32], now: float) -> Mask:
    """Whether a GPU's values are too old, though its node may be up."""
    outdated = nodes.outdated[node]
    aged = np.flatnonzero(~np.isnan(gpus.hot["age_seconds"][used]))
    # Most GPUs have no age of their own.
    if len(aged):
        its = node[aged]
        age = now - nodes.last_line[its] + gpus.hot["age_seconds"][used][aged]
        outdated[aged] |= age > np.maximum(nodes.patience[its], DEVICES_PATIENCE_SECONDS)
    return outdated


def _follow_idle(gpus: GpuColumns, used: slice, state: NDArray[np.uint8], now: float) -> None:
    """Since when each is idle. Who worked until a moment ago, since then; who was not watched before, since now."""
    idle = state == IDLE
    since = gpus.idle_since[used]
    # A node that is silent for a while has still been seen idle; what came while it was down nobody knows.
    np.putmask(since, ~idle & (state != STALE), np.nan)
    begins = idle & np.isnan(since)
    if begins.any():
        worked = gpus.state[used] == BUSY
        np.putmask(since, begins, np.where(worked, np.minimum(gpus.last_busy[used], now), now))
