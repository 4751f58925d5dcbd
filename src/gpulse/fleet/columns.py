"""The hot figures of all GPUs and nodes as arrays: written when a line arrives, evaluated for all at the tick."""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]

# The GPU fields kept as columns; unknown is NaN.
HOT = (
    "utilization_ratio",
    "memory_used_bytes",
    "temperature_celsius",
    "power_watts",
    "sm_active_ratio",
    "memory_reserved_bytes",
    "age_seconds",
)


_LARGEST = 1e18
_COLUMNS = (
    "memory_total",
    "node",
    "counted",
    "elsewhere",
    "unhealthy",
    "occupied",
    "failed",
    "work_failed",
    "processes_known",
    "reserved",
    "person",
    "last_busy",
    "idle_since",
    "state",
)


_NODE_COLUMNS = ("state", "last_line", "patience", "devices_age", "outdated", "taken")


class GpuColumns:
    """A slot for each GPU of the fleet; a node's GPUs have neighbouring slots."""

    def __init__(self) -> None:
        self._size = 0
        self._free: dict[int, list[int]] = {}
        self.used = 0
        self.hot: dict[str, Floats] = {name: _floats(0) for name in HOT}
        self._buffers: dict[str, memoryview] = {}
        self.memory_total = _floats(0)
        self.node = np.zeros(0, np.int32)
        self.counted = np.zeros(0, np.bool_)
        # Whether another node of the same machine has it, and counts it.
        self.elsewhere = np.zeros(0, np.bool_)
        self.unhealthy = np.zeros(0, np.bool_)
        self.occupied = np.zeros(0, np.bool_)
        # Whether its memory or its processes could not be read this time; the same of its utilization and activity.
        self.failed = np.zeros(0, np.bool_)
        self.work_failed = np.zeros(0, np.bool_)
        self.processes_known = np.zeros(0, np.bool_)
        self.reserved = np.zeros(0, np.bool_)
        self.person = np.zeros(0, np.uint16)
        self.last_busy = np.zeros(0, np.float64)
        # Since when it is known to be held without work, by the hub's clock; NaN: it is not.
        self.idle_since = np.zeros(0, np.float64)
        self.state = np.zeros(0, np.uint8)

    def take(self, count: int, node: int) -> int:
        """The first of so many neighbouring slots, cleared."""
        waiting = self._free.get(count)
        if waiting:
            start = waiting.pop()
        else:
            start = self.used
            self.used += count
            if self.used > self._size:
                self._grow(max(64, self.used * 2))
        self._clear(start, count, node)
        return start

    def give_back(self, start: int, count: int) -> None:
        if count:
            self._clear(start, count, -1)
            self._free.setdefault(count, []).append(start)

    def write(self, name: str, start: int, values: Sequence[float | None], packing: struct.Struct) -> None:
        """One hot figure of a node's GPUs; `packing` packs that many of them."""
        if not values:
            return
        try:
            # A third of what assigning to a slice of the array takes.
            packing.pack_into(self._buffers[name], 4 * start, *values)
        except (struct.error, OverflowError):
            self.hot[name][start : start + len(values)] = figures(values)

    def _clear(self, start: int, count: int, node: int) -> None:
        slots = slice(start, start + count)
        for column in self.hot.values():
            column[slots] = np.nan
        self.memory_total[slots] = np.nan
        self.node[slots] = node
        self.person[slots] = 0
        self.last_busy[slots] = -np.inf
        self.idle_since[slots] = np.nan
        self.state[slots] = 0
        for flags in (
            self.counted,
            self.elsewhere,
            self.unhealthy,
            self.occupied,
            self.failed,
            self.work_failed,
            self.processes_known,
            self.reserved,
        ):
            flags[slots] = False

    def _grow(self, size: int) -> None:
        self._size = size
        self.hot = {name: _grown(column, size) for name, column in self.hot.items()}
        self._buffers = {name: column.data.cast("B") for name, column in self.hot.items()}
        for name in _COLUMNS:
            setattr(self, name, _grown(getattr(self, name), size))


def figures(values: Sequence[float | None]) -> list[float]:
    """Numbers for a column: what is unknown, or larger than anything a node can have, is NaN."""
    return [np.nan if value is None or not abs(value) < _LARGEST else float(value) for value in values]


class NodeColumns:
    """A slot for each node."""

    def __init__(self) -> None:
        self._free: list[int] = []
        self.used = 0
        self.state = np.zeros(0, np.uint8)
        self.last_line = np.zeros(0, np.float64)
        self.patience = np.zeros(0, np.float64)
        # How old the values of its GPUs were when its last line came, and whether they are too old by now.
        self.devices_age = np.zeros(0, np.float64)
        self.outdated = np.zeros(0, np.bool_)
        self.taken = np.zeros(0, np.bool_)

    def take(self) -> int:
        if self._free:
            slot = self._free.pop()
        else:
            slot = self.used
            self.used += 1
            if self.used > len(self.state):
                for name in _NODE_COLUMNS:
                    setattr(self, name, _grown(getattr(self, name), max(64, self.used * 2)))
        self.taken[slot] = True
        return slot

    def give_back(self, slot: int) -> None:
        self.state[slot] = 0
        self.devices_age[slot] = 0.0
        self.outdated[slot] = False
        self.taken[slot] = False
        self._free.append(slot)


def _floats(size: int) -> Floats:
    return np.full(size, np.nan, np.float32)


def _grown(column: NDArray[Any], size: int) -> NDArray[Any]:
    larger = np.zeros(size, column.dtype)
    larger[: len(column)] = column
    return larger
