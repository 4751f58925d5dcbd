"""The last ten minutes of every GPU, in memory: a plane of all of them every ten seconds, in a ring.

300 bytes a GPU, and half a millisecond a tick for 100,000 of them. Shares are half percents; 255 is unknown, for power
65535, as in live frames. Utilisation and power jump about and are told as their mean, memory and temperature as they
were at the end of a step.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpulse.fleet.columns import GpuColumns, NodeColumns
from gpulse.fleet.planes import UNKNOWN_BYTE, UNKNOWN_WORD, WHOLE, Bytes, Words, as_bytes, as_words
from gpulse.fleet.state import UP

STEP_SECONDS = 10
STEPS = 60


class Series(NamedTuple):
    """STEPS rows, the oldest first; a column for each GPU that was asked for."""

    utilization: Bytes
    memory: Bytes
    temperature: Bytes
    power: Words


class Recent:
    """Follows the slots of the columns: told when GPUs get other slots, and once a tick."""

    def __init__(self, wall: float):
        # When the newest step ended: seconds since 1970.
        self.end = wall
        self._size = 0
        # The row that the next step goes into.
        self._row = 0
        self._next: float | None = None
        self._rings = [np.zeros((STEPS, 0), kind) for kind in (np.uint8, np.uint8, np.uint8, np.uint16)]
        self._utilization = _Mean()
        self._power = _Mean()

    def tick(self, gpus: GpuColumns, nodes: NodeColumns, now: float, wall: float) -> None:
        """Take the figures of this tick; `now` never goes back, `wall` is what people's clocks show."""
        used = slice(gpus.used)
        self._fit(gpus.used)
        # What a node told before it fell silent is not so now.
        up = nodes.state.take(gpus.node[used]) == UP if gpus.used else _NONE
        if self._next is None:
            self._next, self.end = now + STEP_SECONDS, wall
            return
        missed = int((now - self._next) // STEP_SECONDS)
        if missed > 0:
            # The hub slept: what it knew before, then steps of which nothing is known.
            self._write(gpus, used, up)
            for _ in range(min(missed - 1, STEPS)):
                self._write_nothing()
            self._next += missed * STEP_SECONDS
        self._utilization.add(gpus.hot["utilization_ratio"][used], up)
        self._power.add(gpus.hot["power_watts"][used], up)
        if now >= self._next:
            self._write(gpus, used, up)
            self.end = wall - (now - self._next)
            self._next += STEP_SECONDS

    def series(self, start: int, count: int) -> Series:
        """Of the GPUs in these slots."""
        order = np.roll(np.arange(STEPS), -self._row)
        self._fit(start + count)
        utilization, memory, temperature, power = (ring[order, start : start + count] for ring in self._rings)
        return Series(utilization, memory, temperature, power)

    def moved(self, before: int, old: Sequence[str], start: int, new: Sequence[str]) -> None:
        """A node's GPUs of these ids have the slots from `start` on; its `old` ones had those from `before` on.

        Who was there before keeps its past; who is new, or comes into the slot of another, has none.
        """
        self._fit(max(before + len(old), start + len(new)))
        places = {identity: before + place for place, identity in enumerate(old)}
        sources = np.array([places.get(identity, -1) for identity in new], np.int64)
        known = sources >= 0
        for ring, unknown in zip(self._rings, _UNKNOWN, strict=True):
            kept = np.where(known, ring[:, sources], unknown).astype(ring.dtype)
            ring[:, before : before + len(old)] = unknown
            ring[:, start : start + len(new)] = kept
        for mean in (self._utilization, self._power):
            mean.forget(slice(before, before + len(old)))
            mean.forget(slice(start, start + len(new)))

    def _write(self, gpus: GpuColumns, used: slice, up: NDArray[np.bool_]) -> None:
        with np.errstate(divide="ignore", invalid="ignore"):
            # A node may say that a card has no memory at all.
            memory = gpus.hot["memory_used_bytes"][used] / gpus.memory_total[used]
        planes: tuple[NDArray[Any], ...] = (
            as_bytes(np.rint(self._utilization.taken(used) * WHOLE)),
            as_bytes(memory * WHOLE),
            as_bytes(gpus.hot["temperature_celsius"][used]),
            as_words(np.rint(self._power.taken(used))),
        )
        for plane in planes[1:3]:
            np.putmask(plane, ~up, UNKNOWN_BYTE)
        for ring, plane in zip(self._rings, planes, strict=True):
            ring[self._row, used] = plane
        self._row = (self._row + 1) % STEPS

    def _write_nothing(self) -> None:
        for ring, unknown in zip(self._rings, _UNKNOWN, strict=True):
            ring[self._row] = unknown
        self._row = (self._row + 1) % STEPS

    def _fit(self, size: int) -> None:
        if size <= self._size:
            return
        # By a quarter, so that what is held for those to come stays small.
        self._size = max(64, size + size // 4)
        for place, (ring, unknown) in enumerate(zip(self._rings, _UNKNOWN, strict=True)):
            larger = np.full((STEPS, self._size), unknown, ring.dtype)
            larger[:, : ring.shape[1]] = ring
            self._rings[place] = larger
        self._utilization.fit(self._size)
        self._power.fit(self._size)


_NONE = np.zeros(0, np.bool_)
_UNKNOWN = (UNKNOWN_BYTE, UNKNOWN_BYTE, UNKNOWN_BYTE, UNKNOWN_WORD)


class _Mean:
    """The mean of a figure over the ticks at which it was known."""

    def __init__(self) -> None:
        self._sum = np.zeros(0, np.float32)
        self._count = np.zeros(0, np.uint16)

    def fit(self, size: int) -> None:
        self._sum = np.concatenate([self._sum, np.zeros(size - len(self._sum), np.float32)])
        self._count = np.concatenate([self._count, np.zeros(size - len(self._count), np.uint16)])

    def add(self, values: NDArray[np.float32], up: NDArray[np.bool_]) -> None:
        known = up & ~np.isnan(values)
        used = slice(len(values))
        with np.errstate(over="ignore"):
            # A node may send any number.
            self._sum[used] += np.where(known, values, np.float32(0))
        self._count[used] += known

    def taken(self, used: slice) -> NDArray[np.float32]:
        """The means, NaN where it was never known; the next begin anew."""
        with np.errstate(divide="ignore", invalid="ignore"):
            means = np.divide(self._sum[used], self._count[used], dtype=np.float32)
        self.forget(used)
        return means

    def forget(self, slots: slice) -> None:
        self._sum[slots] = 0
        self._count[slots] = 0
