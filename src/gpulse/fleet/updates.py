"""An Update: what changed on a node since its line before, in columns.

A column has one value for each GPU, process or use of the last full Snapshot, in its order; null is unknown.
Whatever is not named is as it was. Facts and the set of GPUs and processes change only with a full Snapshot.

Most lines are updates and most of what they tell is never looked at, so columns are kept as they came, and decoded
and checked against the schema when somebody reads them. The few figures that states are made of are decoded on
arrival.
"""

from types import GenericAlias
from typing import Any

from msgspec import Raw, Struct
from msgspec.json import Decoder

from gpulse.fleet.model import Host, Report
from gpulse_probe.schema import RECORDS

Column = list[Any]
RawColumns = dict[str, Raw]
# A node that names more fields than this makes them up.
MOST_COLUMNS = 256


class Update(Struct, gc=False):
    update: int
    seq: int
    time: float
    devices_age_seconds: float | None = None
    host: RawColumns | None = None
    gpus: RawColumns | None = None
    processes: RawColumns | None = None
    uses: RawColumns | None = None
    reports: tuple[Report, ...] = ()


_TYPES: dict[str, Any] = {
    "int": int | None,
    "float": float | None,
    "str": str | None,
    "bool": bool | None,
    "[str]": list[str] | None,
    "[int]": list[int] | None,
}


def _decoders(record: str) -> dict[str, Decoder[Column]]:
    return {
        field.name: Decoder(GenericAlias(list, (_TYPES[field.type],)))
        for field in RECORDS[record]
        if field.type in _TYPES
    }


GPU_DECODERS = _decoders("Gpu")
PROCESS_DECODERS = _decoders("Process")
USE_DECODERS = _decoders("GpuUse")
HOST_DECODERS: dict[str, Decoder[Any]] = {
    name: Decoder(kind) for name, kind in Host.__annotations__.items() if name in Host.__struct_fields__
}
