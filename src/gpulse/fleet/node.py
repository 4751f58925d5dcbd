"""One node as told last: its last full Snapshot, and what the last update says is not so any more."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Collection, Sequence
from functools import cached_property
from struct import Struct
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from gpulse.errors import BadLine
from gpulse.fleet.history import History
from gpulse.fleet.model import Gpu, GpuUse, Host, Process, Report, Snapshot
from gpulse.fleet.places import Place
from gpulse.fleet.updates import (
    GPU_DECODERS,
    HOST_DECODERS,
    NOTHING_TO_JUDGE,
    PROCESS_DECODERS,
    USE_DECODERS,
    Arrival,
)
from gpulse.fleet.views import LogEntry

if TYPE_CHECKING:
    from gpulse.fleet.node_facts import NodeFacts

MOST_GPUS = 512
MOST_PROCESSES = 8192
LOG_ENTRIES = 200
# Of a model's name, and of a UUID.
LONGEST_NAME = 256
_MEMORY_OF_USE = {"memory_bytes": USE_DECODERS["memory_bytes"]}
_NAME_OF_PROCESS = {"name": PROCESS_DECODERS["name"]}
Record = TypeVar("Record", Gpu, GpuUse)


class Earlier:
    """A node as it was before, what rates are made of; read as far as somebody asks."""

    def __init__(self, node: Node, time: float, before: bool):
        """`before`: as of the line before the node's last."""
        self._node = node
        self.time = time
        self._before = before

    @cached_property
    def host(self) -> Host:
        return self._node.current_host(self._before)

    @cached_property
    def gpus(self) -> list[Gpu]:
        return self._node.current_gpus(self._before)

    @cached_property
    def processes(self) -> list[Process]:
        return self._node.current_processes(self._before)


class Node:
    """The values of one node. Lines are applied in order; reading puts Snapshot and columns together."""

    def __init__(self, place: Place, slot: int):
        self.place = place
        self.slot = slot
        self.reason = ""
        self.log: deque[LogEntry] = deque(maxlen=LOG_ENTRIES)
        # Its GPUs' slots in the fleet's columns, and how that many figures are packed.
        self.start = 0
        self.count = 0
        self.packing = Struct("0f")
        self.ids: list[str] = []
        # Whether another node has the UUID of one of them, and those others that were told of.
        self.contested = False
        self.rivals: set[str] = set()
        # By GPU, the node that has it too and counts it; the machine of a node without GPUs; whose double it is.
        self.elsewhere: list[bool] = []
        self.machine_key: tuple[str, str] | None = None
        self.same_machine_as: str | None = None
        # The people on its GPUs that have a number; how many of them no node had before, less one every few seconds.
        self.people: frozenset[str] = frozenset()
        self.newcomers = 0.0
        self.newcomers_at = 0.0
        self.layout_facts: list[tuple[object, ...]] = []
        # Its piece of the layout in live frames; None: to be made anew.
        self.described: bytes | None = None
        # What filters look for; None: to be put together anew.
        self.facts: NodeFacts | None = None
        # The models that are named in its piece of the layout.
        self.models: Collection[str] = ()
        # The hot figures that were not as in the Snapshot at the last line.
        self.moved: tuple[str, ...] = ()
        # The fields of its last update that its GPUs' health and evidence were judged by.
        self.judged: tuple[object, ...] = NOTHING_TO_JUDGE
        self.time = 0.0
        self.time_before = 0.0
        self.clock_difference: float | None = None
        self.snapshot: Snapshot | None = None
        self.seq: int | None = None
        self.reports: Sequence[Report] = ()
        self.devices_age: float | None = None
        self.gpus: list[Gpu] = []
        self.processes: list[Process] = []
        # False: nobody knows which processes there are; `processes` is empty then.
        self.processes_known = False
        self.uses: list[GpuUse] = []
        self._before_snapshot: Node | None = None
        self._updates = History(self._lies)

    def replace(self, snapshot: Snapshot) -> None:
        """Take over a full Snapshot."""
        gpus = snapshot.gpus or []
        processes = snapshot.processes or []
        if len(gpus) > MOST_GPUS or len(processes) > MOST_PROCESSES:
            raise BadLine(f"{len(gpus)} GPUs and {len(processes)} processes on one node are not believed")
        if snapshot.seq is None or snapshot.time is None:
            raise BadLine("a snapshot without seq or time")
        for gpu in gpus:
            _bound(gpu)
        if self.snapshot is not None:
            # Most are never asked for: made when somebody does.
            self._before_snapshot = self._past()
        self.snapshot = snapshot
        self.facts = None
        self.seq = snapshot.seq
        self.time = snapshot.time
        self.reports = snapshot.reports or []
        self.devices_age = snapshot.devices_age_seconds
        self.gpus = gpus
        self.processes = processes
        self.processes_known = snapshot.processes is not None
        self.uses = [use for process in processes for use in process.gpus or ()]
        self._updates = History(self._lies)
        self.moved = ()
        self.judged = NOTHING_TO_JUDGE

    def _past(self) -> Node:
        past = copy.copy(self)
        past._before_snapshot = None
        return past

    def apply(self, update: Arrival, line: bytes) -> None:
        """Take over an update."""
        self._updates.add(line)
        self.time_before = self.time
        self.time = update.time
        self.reports = update.reports or ()
        self._before_snapshot = None
        self.devices_age = update.devices_age_seconds

    def earlier(self) -> Earlier | None:
        """The node as of the line before the last."""
        if not self._updates:
            past = self._before_snapshot
            return None if past is None else Earlier(past, past.time, before=False)
        return Earlier(self, self.time_before, before=True)

    def current_host(self, before: bool = False) -> Host:
        host = (self.snapshot.host if self.snapshot else None) or Host()
        values = self._updates.columns("host", HOST_DECODERS, None, before)
        return msgspec.structs.replace(host, **values) if values else host

    def current_gpus(self, before: bool = False) -> list[Gpu]:
        """The GPUs' records as of now, or as of the line before."""
        columns = self._updates.columns("gpus", GPU_DECODERS, len(self.gpus), before)
        return [_with(gpu, columns, place) for place, gpu in enumerate(self.gpus)] if columns else self.gpus

    def current_processes(self, before: bool = False) -> list[Process]:
        """The processes' records as of now, or as of the line before."""
        use_columns = self._updates.columns("uses", USE_DECODERS, len(self.uses), before)
        columns = self._updates.columns("processes", PROCESS_DECODERS, len(self.processes), before)
        if not use_columns and not columns:
            return self.processes
        uses = [_with(use, use_columns, place) for place, use in enumerate(self.uses)]
        found = []
        position = 0
        for place, process in enumerate(self.processes):
            values: dict[str, Any] = {name: column[place] for name, column in columns.items()}
            if process.gpus:
                values["gpus"] = uses[position : position + len(process.gpus)]
                position += len(process.gpus)
            found.append(msgspec.structs.replace(process, **values))
        return found

    def held_memory(self) -> list[int | None]:
        """Return by process how much memory it holds on all its GPUs as of now; None where that is not known."""
        columns = self._updates.columns("uses", _MEMORY_OF_USE, len(self.uses))
        sizes = iter(columns.get("memory_bytes") or [use.memory_bytes for use in self.uses])
        by_process = [[next(sizes) for _ in process.gpus or ()] for process in self.processes]
        return [_sum([size for size in held if size is not None]) for held in by_process]

    def process_names(self) -> list[str | None]:
        """The names of the processes as of now: of their texts the only one that an update may change."""
        if self.mentions(b'"name"'):
            columns = self._updates.columns("processes", _NAME_OF_PROCESS, len(self.processes))
            if "name" in columns:
                return list(columns["name"])
        return [process.name for process in self.processes]

    def mentions(self, *words: bytes) -> bool:
        """Whether the last update may have one of these words in it; cheaper than to read it."""
        return self._updates.mentions(*words)

    def _lies(self, what: str) -> None:
        message = f"the node sent nonsense: {what}"[:1000]
        if not self.log or self.log[-1].message != message:
            self.log.append(LogEntry(time=round(self.time, 3), message=message))


def _sum(known: list[int]) -> int | None:
    return sum(known) if known else None


def _bound(gpu: Gpu) -> None:
    """Names and ids are told to everybody who watches."""
    if gpu.name is not None and len(gpu.name) > LONGEST_NAME:
        gpu.name = gpu.name[:LONGEST_NAME]
    for uuid in (gpu.uuid, gpu.parent_uuid):
        if uuid is not None and len(uuid) > LONGEST_NAME:
            raise BadLine(f"a UUID of {len(uuid):,} characters is not believed")


def _with(record: Record, columns: dict[str, Any], place: int) -> Record:
    return msgspec.structs.replace(record, **{name: column[place] for name, column in columns.items()})
