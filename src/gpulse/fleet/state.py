"""Exactly one state for each GPU, by precedence, for the whole fleet at once; pure.

down: the node is down, or has told nothing yet. stale: it has been silent for some intervals. unhealthy: the card
must not be given to anybody. busy: it works, or did a moment ago and is still held. idle: memory is held, but it
does not work. reserved: booked and not used. free: the rest. A card split into MIG instances has no state of its
own: its instances are counted.
"""

import numpy as np
from numpy.typing import NDArray

from gpulse.fleet.columns import GpuColumns, NodeColumns
from gpulse.fleet.thresholds import Thresholds
from gpulse.fleet.views import GPU_STATES, NodeState

NODE_STATES: tuple[NodeState, ...] = ("new", "up", "stale", "down")
NEW, UP, STALE_NODE, DOWN_NODE = range(4)
DOWN, STALE, UNHEALTHY, BUSY, IDLE, RESERVED, FREE = range(7)
# What a slot has that is not counted: no GPU, or a card whose instances are counted.
NOT_COUNTED = len(GPU_STATES)


def mark_stale(nodes: NodeColumns, now: float) -> None:
    """Nodes that are up but have been silent for too long, by the hub's own clock."""
    used = slice(nodes.used)
    late = (nodes.state[used] == UP) & (now - nodes.last_line[used] > nodes.patience[used])
    nodes.state[used][late] = STALE_NODE


def evaluate(
    gpus: GpuColumns, nodes: NodeColumns, thresholds: Thresholds, now: float, slots: slice | None = None
) -> None:
    """Put the state of every slot, or of these, into gpus.state."""
    used = slots or slice(gpus.used)
    utilization = gpus.hot["utilization_ratio"][used]
    activity = gpus.hot["sm_active_ratio"][used]
    work = np.where(np.isnan(utilization), activity, utilization)
    occupied = gpus.occupied[used]
    with np.errstate(invalid="ignore"):
        # What cannot be measured counts as work where somebody is on it.
        working = np.where(np.isnan(work), occupied, work >= thresholds.busy_utilization_ratio)
        held = occupied | (gpus.hot["memory_used_bytes"][used] >= thresholds.held_memory_bytes)
    gpus.last_busy[used][working] = now
    busy = working | (held & (now - gpus.last_busy[used] <= thresholds.busy_hold_seconds))
    node_state = nodes.state[gpus.node[used]] if gpus.used else np.zeros(0, np.uint8)
    state = np.select(
        [
            ~gpus.counted[used],
            (node_state == DOWN_NODE) | (node_state == NEW),
            node_state == STALE_NODE,
            gpus.unhealthy[used],
            busy,
            held,
            gpus.reserved[used],
        ],
        [NOT_COUNTED, DOWN, STALE, UNHEALTHY, BUSY, IDLE, RESERVED],
        FREE,
    ).astype(np.uint8)
    _follow_idle(gpus, used, state, now)
    gpus.state[used] = state


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
