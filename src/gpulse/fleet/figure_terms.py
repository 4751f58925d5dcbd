"""Terms that compare a figure, mem>40G or util<10: decided by the columns alone."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpulse.errors import FilterError
from gpulse.fleet.columns import Floats, GpuColumns
from gpulse.fleet.sizes import parse_size

if TYPE_CHECKING:
    from gpulse.fleet.fleet import Fleet
    from gpulse.fleet.roster import Roster

Figures = NDArray[np.float64]
Mask = NDArray[np.bool_]

_EXAMPLES = {"mem": "40G", "free_mem": "20G", "util": "10", "temp": "80", "power": "300"}
FIGURES = tuple(_EXAMPLES)
_UNITS = {"util": "%", "temp": "c", "power": "w"}
_OPERATORS: dict[str, Callable[[Any, float], Mask]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
}
# A column has seven digits: what a node told with fewer is found again by rounding.
_DECIMALS = 3


def compared(term: str, key: str, sign: str, value: str) -> Callable[[Fleet, Roster], Mask]:
    """Which rows hold; what a card has not told does not compare. FilterError names what is wrong."""
    if sign == ":":
        raise FilterError(f'"{term}": {key} is compared, as in {key}>{_EXAMPLES[key]}; allowed are > >= < <= =')
    limit = _limit(term, key, value)
    holds = _OPERATORS[sign]

    def by_columns(fleet: Fleet, roster: Roster) -> Mask:
        figures = readings(fleet.gpu_columns, key)
        with np.errstate(invalid="ignore"):
            holding: Mask = holds(figures, limit) & ~np.isnan(figures)
        return roster.of_gpus(holding) & roster.has_gpu

    return by_columns


def at_least(memory_bytes: int) -> Callable[[Fleet, Roster], Mask]:
    """Which cards have so much memory."""

    def by_columns(fleet: Fleet, roster: Roster) -> Mask:
        return roster.of_gpus(fleet.gpu_columns.memory_total.astype(np.float64) >= memory_bytes) & roster.has_gpu

    return by_columns


def readings(gpus: GpuColumns, key: str) -> Figures:
    """A figure of all slots, as people write it; NaN is unknown."""
    if key == "mem":
        return gpus.memory_total.astype(np.float64)
    if key == "free_mem":
        return free_memory(gpus)
    if key == "util":
        return _rounded(gpus.hot["utilization_ratio"], 100.0)
    name = "temperature_celsius" if key == "temp" else "power_watts"
    return _rounded(gpus.hot[name])


def _rounded(figures: Floats, times: float = 1.0) -> Figures:
    # Multiplied in double, or the product has its own seventh digit.
    return np.asarray(np.round(figures.astype(np.float64) * times, _DECIMALS), np.float64)


def free_memory(gpus: GpuColumns, slots: slice = slice(None)) -> Figures:
    """Return the memory a new process could still take, on all slots or these."""
    held = np.nan_to_num(gpus.hot["memory_reserved_bytes"][slots].astype(np.float64), nan=0.0)
    total = gpus.memory_total[slots].astype(np.float64)
    return np.maximum(total - gpus.hot["memory_used_bytes"][slots] - held, 0.0)


def _limit(term: str, key: str, value: str) -> float:
    if key in ("mem", "free_mem"):
        size = parse_size(value)
        if size is None:
            raise FilterError(f'"{term}": "{value}" is not an amount of memory; write it like {key}>{_EXAMPLES[key]}')
        return float(size)
    text = value.removesuffix(_UNITS[key])
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,6})?", text, re.ASCII) is None:
        raise FilterError(f'"{term}": "{value}" is not a number; write it like {key}>{_EXAMPLES[key]}')
    return float(text)
