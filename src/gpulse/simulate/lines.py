"""The lines a probe writes: a full Snapshot, or what is not as in the last one."""

from typing import Any, NamedTuple

import msgspec

from gpulse_probe import __version__
from gpulse_probe.schema import SCHEMA

Record = dict[str, Any]

_encode = msgspec.json.encode
_COLLECTORS = ("machine", "cpu", "memory", "disks", "networks", "infiniband", "nvidia_nvml", "processes")


class Parts(NamedTuple):
    """A node's records: all facts, or all values, of the same things in the same order; uses process by process."""

    host: Record
    gpus: list[Record]
    processes: list[Record]
    uses: list[Record]


class Lines:
    """The stream of one probe, from its start: seq counts on, updates build on the last full Snapshot."""

    def __init__(self, node: str, boot_id: str, *, infiniband: bool):
        outcome = {"infiniband": "data" if infiniband else "absent"}
        self._node = node
        self._boot_id = boot_id
        self._probe = {
            "version": __version__,
            "python": "3.10.12",
            "interval_seconds": 1.0,
            "gpu_source": "nvml",
            "collectors": [
                {
                    "name": name,
                    "outcome": outcome.get(name, "data"),
                    "duration_seconds": round(0.0003 + place / 2000, 4),
                }
                for place, name in enumerate(_COLLECTORS)
            ],
        }
        self._seq = 0
        self._full_seq = 0
        self._facts = self._values = Parts({}, [], [], [])
        self._uses_of: list[int] = []
        self._columns: list[dict[str, list[Any]]] = []

    def full(self, time: float, facts: Parts, values: Parts, uses_of: list[int], *, reports: list[Record]) -> bytes:
        """Everything; `uses_of` is how many uses each process has."""
        self._full_seq = self._seq
        self._seq += 1
        self._facts, self._values, self._uses_of = facts, values, uses_of
        self._columns = [_columns(values.gpus), _columns(values.processes), _columns(values.uses)]
        return self.restated(time, reports)

    def restated(self, time: float, reports: list[Record]) -> bytes:
        """The last full Snapshot again, for one who begins to listen now."""
        facts, values = self._facts, self._values
        uses = iter(_merged(facts.uses, values.uses))
        processes = _merged(facts.processes, values.processes)
        for process, count in zip(processes, self._uses_of, strict=True):
            process["gpus"] = [next(uses) for _ in range(count)]
        return _encode(
            {
                "schema": SCHEMA,
                "node": self._node,
                "boot_id": self._boot_id,
                "time": round(time, 3),
                "seq": self._full_seq,
                "probe": self._probe,
                "host": {**facts.host, **values.host},
                "gpus": _merged(facts.gpus, values.gpus),
                "processes": processes,
                "reports": reports,
            }
        )

    def update(self, time: float, values: Parts, reports: list[Record]) -> bytes:
        """What is not as in the last full one; facts and the set of GPUs, processes and uses must be."""
        line: Record = {"update": self._full_seq, "seq": self._seq, "time": round(time, 3)}
        self._seq += 1
        host = {name: value for name, value in values.host.items() if self._values.host.get(name) != value}
        if host:
            line["host"] = host
        lists = (("gpus", values.gpus), ("processes", values.processes), ("uses", values.uses))
        for place, (part, records) in enumerate(lists):
            before, now = self._columns[place], _columns(records)
            changed = {name: column for name, column in now.items() if before.get(name) != column}
            changed |= {name: [None] * len(records) for name in before if name not in now}
            if changed:
                line[part] = changed
        if reports:
            line["reports"] = reports
        return _encode(line)


def _merged(facts: list[Record], values: list[Record]) -> list[Record]:
    return [{**fact, **value} for fact, value in zip(facts, values, strict=True)]


def _columns(records: list[Record]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for record in records for name in record)
    return {name: [record.get(name) for record in records] for name in names}
