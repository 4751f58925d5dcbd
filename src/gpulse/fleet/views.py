"""What the hub tells about now: the types of the API, the command line and the page."""

from typing import Literal

import msgspec

from gpulse.fleet.booked import BookedView
from gpulse.fleet.model import Gpu, Host, Process, Report

NodeState = Literal["new", "up", "stale", "down"]
GpuState = Literal["down", "stale", "unhealthy", "busy", "idle", "reserved", "free"]
GPU_STATES: tuple[GpuState, ...] = ("down", "stale", "unhealthy", "busy", "idle", "reserved", "free")


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
    """A GPU or MIG instance with its state, and who is on it."""

    node: str
    # Unique in the fleet and stable: the UUID, or node/index where the card has told none or that of another.
    id: str
    state: GpuState
    # Short for people: "H100 80G".
    model: str | None = None
    # False for a card split into MIG instances: they are counted, it is not.
    counted: bool = True
    flags: list[str] = []
    # How long it has been held without work, as far as the hub has seen; null: it is not, or nobody knows.
    idle_seconds: float | None = None
    people: list[PersonUse] = []
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
    processes: list[ProcessView] | None = None
    reports: list[Report] | None = None


class PersonView(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Who holds what now, over the whole fleet."""

    person: str
    gpus: int
    busy_gpus: int
    memory_bytes: int
    processes: int
    nodes: list[str]


class Summary(msgspec.Struct, kw_only=True):
    """The fleet in figures. The states add up to `gpus`."""

    nodes: int
    nodes_up: int
    gpus: int
    states: dict[str, int]
    memory_total_bytes: int
    memory_free_bytes: int
    power_watts: float


class LogEntry(msgspec.Struct, kw_only=True):
    """A line of a node's log: its connection's and its probe's messages."""

    time: float
    message: str
