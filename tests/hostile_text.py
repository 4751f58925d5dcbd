"""Snapshots in which every text is an attack: on shells, pages, terminals, logs and spreadsheets.

They are made by a walk over the schema, so that a field added there is attacked, too.
"""

import json
from typing import Any

from gpulse_probe.schema import RECORDS

IMAGE = "<img src=x onerror=window.hacked=1>"
SCRIPT = "</script><script>window.hacked=1</script>"
FORGED = "gpulse: all is well"
# By kind; `{mark}` is a file that a shell makes if it obeys.
ATTACKS = {
    "shell": "x;touch {mark};`touch {mark}`$(touch {mark})&'\"|",
    "html": f"x{IMAGE}{SCRIPT}\"'&",
    "ansi": "x\x1b]0;owned\x07\x1b[2J\x1b[31m\x08\x7f\x00",
    "c1": "x\x9b2J\x9d0;owned\x9c\x85",
    "bidi": "x\u202eevil\u2066\u2067\u2069\u200f\u061c\u2028\u2029\ufeff\U000e0041",
    "newline": f"x\r\n{FORGED}\nBEGIN:VEVENT\r\nSet-Cookie: a=b\n\n",
    "formula": '=HYPERLINK("http://evil","x")',
    "quotes": "x\\\"}} 1\n'\\",
}
# Fields that the hub looks into, and that a snapshot needs to be one; of the rest nothing is left out.
_GIVEN: dict[str, Any] = {
    "schema": 1,
    "seq": 1,
    "time": 1000.0,
    "interval_seconds": 600.0,
    "memory_total_bytes": 80 << 30,
}


def text_fields() -> list[tuple[str, str]]:
    """Every (record, field) of the schema that holds text."""
    return [
        (record, field.name) for record, fields in RECORDS.items() for field in fields if field.type in ("str", "[str]")
    ]


def snapshot(node: str, attack: str, *, seq: int = 1, free: bool = False) -> bytes:
    """A snapshot of the node with the attack in each of its texts: two cards, an MIG instance and a process on each.

    `free`: nobody is on the GPUs, so that the hub offers them.
    """
    whole = _record("Snapshot", attack) | {"node": node, "seq": seq}
    number = iter(range(3))
    cards = [_gpu(attack, next(number)) for _ in range(2)]
    instance = _record("Gpu", attack) | {
        "index": 0,
        "mig_index": 1,
        "uuid": attack + "mig",
        "parent_uuid": cards[0]["uuid"],
    }
    whole["gpus"] = [*cards, instance]
    whole["processes"] = [_process(attack, 40 + at, gpu["uuid"]) for at, gpu in enumerate(whole["gpus"])]
    for gpu in whole["gpus"]:
        # A card that is lost would hide what else is told of it.
        gpu["mig_enabled"] = False
        if free:
            del gpu["fault"], gpu["failed_fields"], gpu["failed_reason"], gpu["fabric_faults"], gpu["fabric_status"]
            gpu |= {"memory_used_bytes": 0, "utilization_ratio": 0.0, "sm_active_ratio": 0.0, "temperature_celsius": 30}
            gpu |= {"age_seconds": 0.0, "remapped_rows_failed": False, "xid_events": [], "processes_listed": True}
            gpu |= {name: 0 for name, value in gpu.items() if name.endswith("_total") and value == 1}
            gpu |= {name: False for name in gpu if name.endswith("_pending")}
    if free:
        whole["processes"] = []
        whole["devices_age_seconds"] = 0.0
    return json.dumps(whole).encode()


def update(attack: str, *, base: int = 1, gpus: int = 3, processes: int = 3) -> bytes:
    """An update with the attack in all texts that one may change."""
    return json.dumps(
        {
            "update": base,
            "seq": base + 1,
            "time": 1001.0,
            "host": {
                name: value for name, value in _record("Host", attack).items() if not isinstance(value, (int, float))
            },
            "gpus": _columns("Gpu", attack, gpus),
            "processes": _columns("Process", attack, processes),
            "uses": {"memory_bytes": [1] * processes},
            "reports": [_record("Report", attack)],
        },
        separators=(",", ":"),
    ).encode()


def _gpu(attack: str, index: int) -> dict[str, Any]:
    card = _record("Gpu", attack) | {"index": index, "uuid": f"{attack}{index}"}
    del card["parent_uuid"], card["mig_index"]
    return card


def _process(attack: str, pid: int, uuid: str) -> dict[str, Any]:
    use = _record("GpuUse", attack) | {"uuid": uuid, "memory_bytes": 1 << 30}
    return _record("Process", attack) | {"pid": pid, "gpus": [use], "vanished": False}


def _columns(record: str, attack: str, count: int) -> dict[str, list[Any]]:
    return {
        field.name: [[attack] if field.type == "[str]" else attack] * count
        for field in RECORDS[record]
        if field.kind == "value" and field.type in ("str", "[str]")
    }


def _record(name: str, attack: str) -> dict[str, Any]:
    return {field.name: _value(field.name, field.type, attack) for field in RECORDS[name]}


def _value(name: str, kind: str, attack: str) -> Any:
    if name in _GIVEN:
        return _GIVEN[name]
    if kind.startswith("["):
        return [_value(name, kind[1:-1], attack)]
    simple = {"str": attack, "int": 1, "float": 0.5, "bool": True}
    return simple[kind] if kind in simple else _record(kind, attack)
