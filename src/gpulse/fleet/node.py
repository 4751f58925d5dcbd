"""One node as told last: its last full Snapshot, and over it the columns that changed since."""

from collections import deque
from operator import attrgetter
from typing import Any

import msgspec

from gpulse.errors import BadLine
from gpulse.fleet.model import Gpu, GpuUse, Host, Process, Report, Snapshot
from gpulse.fleet.places import Place
from gpulse.fleet.updates import GPU_TYPES, MOST_COLUMNS, PROCESS_TYPES, USE_TYPES, Column, Columns, Update, checked
from gpulse.fleet.views import LogEntry

MOST_GPUS = 512
MOST_PROCESSES = 8192
LOG_ENTRIES = 200

CPU_TIMES = (
    "cpu_user_seconds_total",
    "cpu_nice_seconds_total",
    "cpu_system_seconds_total",
    "cpu_irq_seconds_total",
    "cpu_steal_seconds_total",
    "cpu_idle_seconds_total",
    "cpu_iowait_seconds_total",
)
HOST_COUNTERS = (*CPU_TIMES, "networks", "infiniband")
_host_counters = attrgetter(*HOST_COUNTERS)
# Counters of GPUs that rates are made of.
GPU_COUNTERS = (
    "pcie_sent_bytes_total",
    "pcie_received_bytes_total",
    "nvlink_sent_bytes_total",
    "nvlink_received_bytes_total",
)
Timed = tuple[float, Column]


class Node:
    """The values of one node. Lines are applied in order; reading puts Snapshot and columns together."""

    def __init__(self, place: Place, slot: int):
        self.place = place
        self.slot = slot
        self.reason = ""
        self.log: deque[LogEntry] = deque(maxlen=LOG_ENTRIES)
        # Its GPUs' slots in the fleet's columns.
        self.start = 0
        self.count = 0
        self.uuids: list[str | None] = []
        self.time = 0.0
        self.clock_difference: float | None = None
        self.snapshot: Snapshot | None = None
        self.seq: int | None = None
        self.reports: list[Report] = []
        self.devices_age: float | None = None
        self.gpus: list[Gpu] = []
        self.processes: list[Process] = []
        self.uses: list[GpuUse] = []
        self.host_values: dict[str, Any] = {}
        # Those of the last full Snapshot.
        self.host_counters: dict[str, Any] = {}
        self.gpu_columns: Columns = {}
        self.process_columns: Columns = {}
        self.use_columns: Columns = {}
        # The value before the last one of what rates are made of, with its time.
        self.gpu_before: dict[str, Timed] = {}
        self.gpu_counted_at: dict[str, float] = {}
        self.cpu_before: Timed | None = None
        self.host_before: tuple[float, dict[str, Any]] | None = None

    def replace(self, snapshot: Snapshot) -> None:
        """Take over a full Snapshot."""
        gpus = snapshot.gpus or []
        processes = snapshot.processes or []
        if len(gpus) > MOST_GPUS or len(processes) > MOST_PROCESSES:
            raise BadLine(f"{len(gpus)} GPUs and {len(processes)} processes on one node are not believed")
        if snapshot.seq is None or snapshot.time is None:
            raise BadLine("a snapshot without seq or time")
        self._remember_counters(gpus)
        self.snapshot = snapshot
        self.seq = snapshot.seq
        self.time = snapshot.time
        self.reports = snapshot.reports or []
        self.devices_age = snapshot.devices_age_seconds
        self.gpus = gpus
        self.processes = processes
        self.uses = [use for process in processes for use in process.gpus or ()]
        self.host_values = {}
        self.host_counters = {}
        self.gpu_columns = {}
        self.process_columns = {}
        self.use_columns = {}

    def _remember_counters(self, gpus: list[Gpu]) -> None:
        """Rates go on over a full Snapshot, as long as the GPUs are the same."""
        self.gpu_before = {}
        self.gpu_counted_at = {}
        self.cpu_before = None
        if self.snapshot is None:
            return
        host = self.current_host()
        self.host_before = (self.time, dict(zip(HOST_COUNTERS, _host_counters(host), strict=True)))
        if [gpu.uuid for gpu in gpus] == [gpu.uuid for gpu in self.gpus]:
            before = self.current_gpus()
            self.gpu_before = {name: (self.time, [getattr(gpu, name) for gpu in before]) for name in GPU_COUNTERS}

    def apply(self, update: Update) -> Columns:
        """Take over what changed; the changed columns of the GPUs are returned."""
        if update.update != self.seq:
            raise BadLine("an update of another snapshot than the last")
        changed = update.gpus
        if changed:
            columns = self.gpu_columns
            for name in GPU_COUNTERS:
                if name in changed:
                    old = columns.get(name)
                    if old is not None:
                        self.gpu_before[name] = (self.gpu_counted_at[name], old)
                    else:
                        self.gpu_before[name] = (self.time, [getattr(gpu, name) for gpu in self.gpus])
                    self.gpu_counted_at[name] = update.time
            columns.update(changed)
        processes = update.processes
        if processes:
            if "cpu_seconds_total" in processes:
                old = self.process_columns.get("cpu_seconds_total")
                self.cpu_before = (self.time, old or [process.cpu_seconds_total for process in self.processes])
            self.process_columns.update(processes)
        if update.uses:
            self.use_columns.update(update.uses)
        host = update.host
        if host:
            values = self.host_values
            if "cpu_idle_seconds_total" in host:
                self.host_before = (self.time, self._host_counters_now())
            values.update(host)
        if len(self.gpu_columns) + len(self.process_columns) + len(self.use_columns) > MOST_COLUMNS:
            raise BadLine(f"more than {MOST_COLUMNS} fields")
        self.time = update.time
        self.reports = update.reports
        self.devices_age = update.devices_age_seconds
        return changed or {}

    def _host_counters_now(self) -> dict[str, Any]:
        values = self.host_values
        if not self.host_counters:
            self.host_counters = dict(zip(HOST_COUNTERS, _host_counters(self._host()), strict=True))
        return {name: values.get(name, told) for name, told in self.host_counters.items()}

    def _host(self) -> Host:
        return (self.snapshot.host if self.snapshot else None) or Host()

    def current_host(self) -> Host:
        """The host as of now; a field that is not what the schema says is unknown."""
        host = self._host()
        if not self.host_values:
            return host
        try:
            changed = msgspec.convert(self.host_values, Host)
        except msgspec.ValidationError as error:
            self._lies(str(error))
            return host
        values = {name: value for name in self.host_values if (value := getattr(changed, name, None)) is not None}
        return msgspec.structs.replace(host, **values)

    def current_gpus(self) -> list[Gpu]:
        """The GPUs' records as of now."""
        columns = self._good(self.gpu_columns, GPU_TYPES, len(self.gpus))
        if not columns:
            return self.gpus
        return [
            msgspec.structs.replace(gpu, **{name: column[place] for name, column in columns.items()})
            for place, gpu in enumerate(self.gpus)
        ]

    def current_processes(self) -> list[Process]:
        """The processes' records as of now."""
        uses = self.uses
        use_columns = self._good(self.use_columns, USE_TYPES, len(uses))
        if use_columns:
            uses = [
                msgspec.structs.replace(use, **{name: column[place] for name, column in use_columns.items()})
                for place, use in enumerate(uses)
            ]
        columns = self._good(self.process_columns, PROCESS_TYPES, len(self.processes))
        found = []
        position = 0
        for place, process in enumerate(self.processes):
            values: dict[str, Any] = {name: column[place] for name, column in columns.items()}
            if process.gpus:
                values["gpus"] = uses[position : position + len(process.gpus)]
                position += len(process.gpus)
            found.append(msgspec.structs.replace(process, **values))
        return found

    def _good(self, columns: Columns, types: dict[str, str], count: int) -> Columns:
        good, bad = checked(columns, types, count)
        for name in bad:
            # Told once: from here on it is unknown until the node tells it right.
            del columns[name]
            self._lies(f"{name} is not what the schema says")
        return good

    def _lies(self, what: str) -> None:
        self.log.append(LogEntry(time=round(self.time, 3), message=f"the node sent nonsense: {what}"[:1000]))
