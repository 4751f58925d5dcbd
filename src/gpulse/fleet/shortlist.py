"""The few nodes that must be looked at to find free GPUs: chosen by columns, as finder.py chooses among their GPUs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpulse.fleet.booked import spot_of
from gpulse.fleet.finder import Wish
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.roster import Roster, Rows
from gpulse.fleet.state import FREE, IDLE, NOT_COUNTED, RESERVED, UNKNOWN
from gpulse.fleet.terms import Mask


def shortlist(fleet: Fleet, roster: Roster, rows: Rows, wish: Wish, now: float) -> Rows:
    """Of these rows, whose GPUs all fit, those of nodes that suffice for the answer."""
    states = np.where(roster.has_gpu, roster.of_gpus(fleet.gpu_columns.state), NOT_COUNTED)
    rows = rows[states[rows] != NOT_COUNTED]
    kept, reserved = _booked(fleet, roster, rows, wish, now)
    mine = reserved & (states == RESERVED)
    takeable = ((states == FREE) & ~kept) | mine
    free = np.bincount(roster.node[rows[takeable[rows]]], minlength=len(roster.nodes))
    own = np.bincount(roster.node[rows[mine[rows]]], minlength=len(roster.nodes))
    used = np.zeros(len(roster.nodes), np.bool_)
    used[roster.node[(states != FREE) & (states != NOT_COUNTED)]] = True
    enough = np.flatnonzero(free >= wish.n)
    if len(enough):
        best = np.lexsort((enough, free[enough], ~used[enough], -np.minimum(own[enough], wish.n)))
        nodes = enough[best][:1]
    elif not wish.same_node and free.sum() >= wish.n:
        some = np.flatnonzero(free)
        some = some[np.lexsort((some, ~used[some], -free[some], -own[some]))]
        nodes = some[: np.searchsorted(np.cumsum(free[some]), wish.n) + 1]
    else:
        nodes = _telling(roster, rows, states)
    return rows[np.isin(roster.node[rows], nodes)]


def _booked(fleet: Fleet, roster: Roster, rows: Rows, wish: Wish, now: float) -> tuple[Mask, Mask]:
    """By row, whether somebody else has it within the time; and whether it is reserved for who wants it."""
    kept, mine = np.zeros(len(roster), np.bool_), np.zeros(len(roster), np.bool_)
    bookings = fleet.bookings
    if not bookings.nodes:
        return kept, mine
    booked = np.array([node.place.name in bookings.nodes for node in roster.nodes], np.bool_)
    # Most nodes have none, and need not be looked at one by one.
    few = rows[booked[roster.node[rows]]]
    for row, number, place in zip(few.tolist(), roster.node[few].tolist(), roster.place[few].tolist(), strict=True):
        node = roster.nodes[number]
        if place < len(node.gpus):
            spot = spot_of(node.place.name, node.gpus[place])
            others = bookings.kept(spot, wish.me, now + wish.for_seconds)
            kept[row], mine[row] = others, not others and bookings.own(spot, wish.me)
    return kept, mine


def _telling(roster: Roster, rows: Rows, states: NDArray[np.uint8]) -> Rows:
    """Who could have been chosen, or is named in the words about what is missing."""
    named = rows[np.isin(states[rows], (FREE, IDLE, RESERVED, UNKNOWN))]
    return np.unique(roster.node[named if len(named) else rows[:1]])
