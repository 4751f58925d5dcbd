"""Whether a record is what the schema says: used by the tests of everything that makes one."""

import math
from typing import Any

from gpulse_probe import schema

_PLAIN = {"str": str, "int": int, "bool": bool}


def conforms(record_name: str, record: Any) -> list[str]:
    """What is wrong with a record of the schema, such as "Gpu"; empty where nothing is."""
    if type(record) is not dict:
        return [f"{record_name}: is {type(record).__name__}, not a record"]
    fields = {field.name: field for field in schema.RECORDS[record_name]}
    complaints = []
    for name, value in record.items():
        if name not in fields:
            complaints.append(f"{record_name}.{name}: not in the schema")
        else:
            complaints += _check(f"{record_name}.{name}", fields[name].type, fields[name].unit, value)
    return complaints


def _check(where: str, wanted: str, unit: str, value: Any) -> list[str]:
    if wanted.startswith("["):
        if type(value) is not list:
            return [f"{where}: is {type(value).__name__}, not a list"]
        return [complaint for each in value for complaint in _check(where, wanted[1:-1], unit, each)]
    if wanted in schema.RECORDS:
        return [f"{where}: {complaint}" for complaint in conforms(wanted, value)]
    complaint = None
    # A bool is an int to isinstance, and None never stands for unknown: hence exact types.
    if wanted == "float":
        if type(value) not in {float, int} or not math.isfinite(value):
            complaint = "is not a finite number"
    elif type(value) is not _PLAIN[wanted]:
        complaint = f"is not {wanted}"
    if complaint is None and unit.startswith("bytes") and value < 0:
        complaint = "is negative"
    if complaint is None and unit == "ratio" and not 0 <= value <= 10:
        complaint = "is no ratio"
    return [f"{where}: {value!r} {complaint}"] if complaint else []
