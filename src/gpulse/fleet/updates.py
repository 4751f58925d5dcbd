"""An Update: what changed on a node since its line before, in columns.

A column has one value for each GPU, process or use of the last full Snapshot, in its order; null is unknown.
Whatever is not named is as it was. Facts and the set of GPUs and processes change only with a full Snapshot.

Most lines are updates and most of what they tell is never looked at, so they are taken over as they come; whether
a column is what the schema says is checked when it is read (`checked`). The few figures that states are made of
are checked on arrival.
"""

from typing import Any

from msgspec import Struct

from gpulse.fleet.model import Report
from gpulse_probe.schema import RECORDS

Column = list[Any]
Columns = dict[str, Column]
# A node that names more fields than this makes them up.
MOST_COLUMNS = 256


class Update(Struct):
    update: int
    seq: int
    time: float
    devices_age_seconds: float | None = None
    host: dict[str, Any] | None = None
    gpus: Columns | None = None
    processes: Columns | None = None
    uses: Columns | None = None
    reports: list[Report] = []


_ALLOWED: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (float, int),
    "str": (str,),
    "bool": (bool,),
    "[str]": (list,),
    "[int]": (list,),
}


def _changing(record: str) -> dict[str, str]:
    return {field.name: field.type for field in RECORDS[record] if field.kind != "part" and field.type in _ALLOWED}


GPU_TYPES = _changing("Gpu")
PROCESS_TYPES = _changing("Process")
USE_TYPES = _changing("GpuUse")


def checked(columns: Columns, types: dict[str, str], count: int) -> tuple[Columns, list[str]]:
    """The columns that are what the schema says, and the names of those that are not; unknown names are left out."""
    good, bad = {}, []
    for name, column in columns.items():
        kind = types.get(name)
        if kind is None:
            continue
        if len(column) == count and all(_is(value, kind) for value in column):
            good[name] = column
        else:
            bad.append(name)
    return good, bad


def _is(value: object, kind: str) -> bool:
    if value is None:
        return True
    # type() and not isinstance: True is an int to the latter.
    if type(value) not in _ALLOWED[kind]:
        return False
    if isinstance(value, list):
        inner = str if kind == "[str]" else int
        return all(type(item) is inner for item in value)
    return True
