"""The few nodes that must be looked at to find free GPUs: chosen by columns, as finder.py chooses among their GPUs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpulse.fleet.finder import Wish
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.roster import Roster, Rows
from gpulse.fleet.state import FREE, IDLE, NOT_COUNTED, RESERVED


def shortlist(fleet: Fleet, roster: Roster, rows: Rows, wish: Wish) -> Rows:
    """Of these rows, whose GPUs all fit, those of nodes that suffice for the answer."""
    states = np.where(roster.has_gpu, roster.of_gpus(fleet.gpu_columns.state), NOT_COUNTED)
    rows = rows[states[rows] != NOT_COUNTED]
    free = np.bincount(roster.node[rows[states[rows] == FREE]], minlength=len(roster.nodes))
    used = np.zeros(len(roster.nodes), np.bool_)
    used[roster.node[(states != FREE) & (states != NOT_COUNTED)]] = True
    enough = np.flatnonzero(free >= wish.n)
    if len(enough):
        nodes = enough[np.lexsort((enough, free[enough], ~used[enough]))][:1]
    elif not wish.same_node and free.sum() >= wish.n:
        some = np.flatnonzero(free)
        some = some[np.lexsort((some, ~used[some], -free[some]))]
        nodes = some[: np.searchsorted(np.cumsum(free[some]), wish.n) + 1]
    else:
        nodes = _telling(roster, rows, states)
    return rows[np.isin(roster.node[rows], nodes)]


def _telling(roster: Roster, rows: Rows, states: NDArray[np.uint8]) -> Rows:
    """Who could have been chosen, or is named in the words about what is missing."""
    named = rows[np.isin(states[rows], (FREE, IDLE, RESERVED))]
    return np.unique(roster.node[named if len(named) else rows[:1]])
