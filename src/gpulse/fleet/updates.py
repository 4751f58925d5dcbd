"""An Update: what is not as in a node's last full Snapshot, in columns.

A column has one value for each GPU, process or use of that Snapshot, in its order; null is unknown. Whatever is not
named is as in the Snapshot, so that a line stands for itself: none before it is needed, and one that is lost does no
harm. Facts and the set of GPUs and processes change only with a full Snapshot.

Most lines are updates and most of what they tell is never looked at. So a line is kept as it came, and decoded and
checked against the schema when somebody reads it; only the few figures that states are made of are decoded on
arrival.
"""

from types import GenericAlias
from typing import Any, Literal, get_args

from msgspec import UNSET, Raw, Struct, UnsetType, defstruct, field
from msgspec.json import Decoder

from gpulse.fleet.health import HEALTH_FIELDS
from gpulse.fleet.model import Host, Report
from gpulse_probe.schema import RECORDS

# How its text begins, and that of no Snapshot.
UPDATE = b'{"update":'

Column = list[Any]
Figures = list[float | None] | UnsetType


class Hot(Struct):
    """The columns of GPUs that states are made of; raw ones are read when they differ from the line before."""

    utilization_ratio: Figures = UNSET
    memory_used_bytes: Figures = UNSET
    temperature_celsius: Figures = UNSET
    power_watts: Figures = UNSET
    sm_active_ratio: Figures = UNSET
    memory_reserved_bytes: Figures = UNSET
    age_seconds: Figures = UNSET
    fault: Raw | UnsetType = UNSET
    remapped_rows_failed: Raw | UnsetType = UNSET
    ecc_uncorrected_volatile_total: Raw | UnsetType = UNSET
    fabric_state: Raw | UnsetType = UNSET
    fabric_status: Raw | UnsetType = UNSET
    fabric_faults: Raw | UnsetType = UNSET
    failed_fields: Raw | UnsetType = UNSET


# What an Update says of health and of failed readings; most say nothing.
JUDGED = (*HEALTH_FIELDS, "failed_fields")
NOTHING_TO_JUDGE: tuple[object, ...] = (UNSET,) * len(JUDGED)


class Arrival(Struct):
    """What is read of an Update when it comes."""

    update: int
    seq: int
    time: float
    devices_age_seconds: float | None = None
    gpus: Hot | None = None
    reports: list[Report] | None = None


Part = Literal["host", "gpus", "processes", "uses"]
# What is read of an Update when somebody looks at its node, one part at a time: the rest of the line is only skipped.
PART_DECODERS: dict[Part, Decoder[Any]] = {
    part: Decoder(defstruct(part, [(part, dict[str, Raw], field(default_factory=dict))])) for part in get_args(Part)
}


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
        if field.kind not in ("fact", "part") and field.type in _TYPES
    }


GPU_DECODERS = _decoders("Gpu")
PROCESS_DECODERS = _decoders("Process")
USE_DECODERS = _decoders("GpuUse")
HOST_DECODERS: dict[str, Decoder[Any]] = {
    name: Decoder(kind) for name, kind in Host.__annotations__.items() if name in Host.__struct_fields__
}
