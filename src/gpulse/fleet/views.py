"""What the hub tells about now: the types of the API, the command line and the page."""

from typing import Literal

import msgspec

from gpulse.fleet.booked import BookedView
from gpulse.fleet.model import Gpu, Host, Process, Report

NodeState = Literal["new", "up", "stale", "down"]
GpuState = Literal["down", "stale", "unhealthy", "unknown", "busy", "idle", "reserved", "free"]
GPU_STATES: tuple[GpuState, ...] = ("down", "stale", "unhealthy", "unknown", "busy", "idle", "reserved", "free")


class Rates(msgspec.Struct, omit_defaults=True):
    """What counters of a host grew by, a second, between its last two snapshots."""

    cpu_ratio: float | None = None
    network_received_bytes_per_second: float | None = None
    network_sent_bytes_per_second: float | None = None
    infiniband_received_bytes_per_second: float | None = None
    infiniband_sent_bytes_per_second: float | None = None


class PersonUse(msgspec.Struct, omit_defaults=True):
    """A person on a GPU."""

    person: str
    memory_bytes: int | None = None
    processes: int = 0


class GpuView(Gpu, omit_defaults=True, kw_only=True):
    """A GPU or MIG instance with its state, and who is on it. Its `age_seconds` is the age now, by the hub's clock."""

    node: str
    # Unique in the fleet and stable: the UUID, or node/index where the card has told none or that of another.
    id: str
    # Null where the GPU is not counted.
    state: GpuState | None
    # Short for people: "H100 80G".
    model: str | None = None
    # False for a card split into MIG instances, which are counted instead, and for the GPUs of a machine that is listed
    # under another name already.
    counted: bool = True
    flags: list[str] = []
    # How long it has been held without work, as far as the hub has seen; null: it is not, or nobody knows.
    idle_seconds: float | None = None
    # Empty: nobody. Absent: unknown, because its processes could not be read or the driver never lists them.
    people: list[PersonUse] | None = None
    # Who has reserved it now, and who has it next, where that is soon.
    reservation: BookedView | None = None
    next_reservation: BookedView | None = None
    pcie_sent_rate_bytes_per_second: float | None = None
    pcie_received_rate_bytes_per_second: float | None = None
    nvlink_sent_rate_bytes_per_second: float | None = None
    nvlink_received_rate_bytes_per_second: float | None = None


class ProcessView(Process, omit_defaults=True, kw_only=True):
    """A process with the node it runs on and the CPU share it takes (1 is one core)."""

    node: str
    person: str | None = None
    cpu_ratio: float | None = None


class NodeView(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A node as the hub knows it. Lists leave out `host`, `processes` and `reports`; one node has them."""

    name: str
    display_name: str
    state: NodeState
    # Why it is not up, in words a person can act on; empty while it is up.
    reason: str
    # Seconds since its last snapshot by the hub's clock; null: there was none yet.
    age_seconds: float | None
    gpus: list[GpuView]
    # How old the values of its GPUs and processes are, by the hub's clock: at least as old as the snapshot.
    devices_age_seconds: float | None = None
    # The node that is the same machine under another name; this one's GPUs are not counted.
    same_machine_as: str | None = None
    group: str | None = None
    rack: str | None = None
    address: str | None = None
    interval_seconds: float = 1.0
    # The node's clock less the hub's, when the last snapshot came.
    clock_difference_seconds: float | None = None
    probe_version: str | None = None
    gpu_source: str | None = None
    rates: Rates | None = None
    host: Host | None = None
    # Absent from the view of one node: its processes are unknown.
    processes: list[ProcessView] | None = None
    reports: list[Report] | None = None


class PersonView(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Who holds what now, over the whole fleet."""

    person: str
    gpus: int
    busy_gpus: int
    # Null: the driver does not say of any of their processes.
    memory_bytes: int | None
    processes: int
    nodes: list[str]


class Summary(msgspec.Struct, kw_only=True):
    """The fleet in figures. The states add up to `gpus`.

    A sum is of the GPUs whose value is known, as many as the field with `known` says; null: no value is known.
    """

    nodes: int
    nodes_up: int
    gpus: int
    states: dict[str, int]
    memory_total_bytes: int | None
    memory_total_known_gpus: int
    # What new processes could still take on GPUs that are busy, idle, reserved or free.
    memory_free_bytes: int | None
    memory_free_known_gpus: int
    power_watts: float | None
    power_known_gpus: int
    # How many nodes are machines that are listed under another name already.
    same_machine_nodes: int


class LogEntry(msgspec.Struct, kw_only=True):
    """A line of a node's log: its connection's and its probe's messages."""

    time: float
    message: str
