"""The hub's types of the Snapshot; a test compares them with the probe's schema, field by field."""

import msgspec


class Collector(msgspec.Struct, omit_defaults=True, gc=False):
    """What one collector of the probe took, and how it ended."""

    name: str | None = None
    outcome: str | None = None
    duration_seconds: float | None = None


class Probe(msgspec.Struct, omit_defaults=True):
    """The program that took the snapshot."""

    version: str | None = None
    python: str | None = None
    interval_seconds: float | None = None
    gpu_source: str | None = None
    collectors: list[Collector] | None = None


class Disk(msgspec.Struct, omit_defaults=True, gc=False):
    """A file system."""

    mount: str | None = None
    device: str | None = None
    filesystem: str | None = None
    kind: str | None = None
    total_bytes: int | None = None
    used_bytes: int | None = None
    available_bytes: int | None = None


class Network(msgspec.Struct, omit_defaults=True):
    """A network interface."""

    interface: str | None = None
    addresses: list[str] | None = None
    up: bool | None = None
    speed_bits_per_second: int | None = None
    received_bytes_total: int | None = None
    sent_bytes_total: int | None = None
    received_errors_total: int | None = None
    sent_errors_total: int | None = None


class InfinibandPort(msgspec.Struct, omit_defaults=True):
    """A port of an InfiniBand adapter."""

    device: str | None = None
    port: int | None = None
    link: str | None = None
    state: str | None = None
    speed_bits_per_second: int | None = None
    received_bytes_total: int | None = None
    sent_bytes_total: int | None = None
    errors_total: int | None = None
    link_downed_total: int | None = None


class Host(msgspec.Struct, omit_defaults=True):
    """The machine without its GPUs."""

    hostname: str | None = None
    os: str | None = None
    kernel: str | None = None
    architecture: str | None = None
    uptime_seconds: float | None = None
    cpu_model: str | None = None
    cpu_sockets: int | None = None
    cpu_cores: int | None = None
    cpu_threads: int | None = None
    cpu_user_seconds_total: float | None = None
    cpu_nice_seconds_total: float | None = None
    cpu_system_seconds_total: float | None = None
    cpu_idle_seconds_total: float | None = None
    cpu_iowait_seconds_total: float | None = None
    cpu_irq_seconds_total: float | None = None
    cpu_steal_seconds_total: float | None = None
    load_1m: float | None = None
    load_5m: float | None = None
    load_15m: float | None = None
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    memory_available_bytes: int | None = None
    memory_cached_bytes: int | None = None
    swap_total_bytes: int | None = None
    swap_used_bytes: int | None = None
    disks: list[Disk] | None = None
    networks: list[Network] | None = None
    infiniband: list[InfinibandPort] | None = None


class XidEvent(msgspec.Struct, omit_defaults=True, gc=False):
    """An error the driver told of."""

    time: float | None = None
    xid: int | None = None


class Gpu(msgspec.Struct, omit_defaults=True):
    """A GPU or a MIG instance."""

    index: int | None = None
    uuid: str | None = None
    parent_uuid: str | None = None
    mig_index: int | None = None
    mig_profile: str | None = None
    gpu_instance_id: int | None = None
    compute_instance_id: int | None = None
    mig_enabled: bool | None = None
    vendor: str | None = None
    name: str | None = None
    serial: str | None = None
    pci_bus_id: str | None = None
    minor_number: int | None = None
    driver_version: str | None = None
    cuda_version: str | None = None
    compute_capability: str | None = None
    compute_mode: str | None = None
    persistence: bool | None = None
    fault: str | None = None
    age_seconds: float | None = None
    failed_fields: list[str] | None = None
    failed_reason: str | None = None
    processes_listed: bool | None = None
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    memory_reserved_bytes: int | None = None
    utilization_ratio: float | None = None
    memory_utilization_ratio: float | None = None
    encoder_utilization_ratio: float | None = None
    decoder_utilization_ratio: float | None = None
    sm_active_ratio: float | None = None
    sm_occupancy_ratio: float | None = None
    tensor_active_ratio: float | None = None
    dram_active_ratio: float | None = None
    fp64_active_ratio: float | None = None
    fp32_active_ratio: float | None = None
    fp16_active_ratio: float | None = None
    temperature_celsius: int | None = None
    memory_temperature_celsius: int | None = None
    temperature_slowdown_celsius: int | None = None
    temperature_shutdown_celsius: int | None = None
    fan_ratio: float | None = None
    power_watts: float | None = None
    power_limit_watts: float | None = None
    power_limit_default_watts: float | None = None
    power_limit_max_watts: float | None = None
    energy_joules_total: float | None = None
    performance_state: str | None = None
    clock_graphics_hertz: int | None = None
    clock_sm_hertz: int | None = None
    clock_memory_hertz: int | None = None
    clock_video_hertz: int | None = None
    clock_graphics_max_hertz: int | None = None
    clock_sm_max_hertz: int | None = None
    clock_memory_max_hertz: int | None = None
    clock_video_max_hertz: int | None = None
    throttle_reasons: list[str] | None = None
    ecc_enabled: bool | None = None
    ecc_corrected_volatile_total: int | None = None
    ecc_uncorrected_volatile_total: int | None = None
    ecc_corrected_aggregate_total: int | None = None
    ecc_uncorrected_aggregate_total: int | None = None
    remapped_rows_corrected_total: int | None = None
    remapped_rows_uncorrected_total: int | None = None
    remapped_rows_pending: bool | None = None
    remapped_rows_failed: bool | None = None
    retired_pages_corrected_total: int | None = None
    retired_pages_uncorrected_total: int | None = None
    retired_pages_pending: bool | None = None
    pcie_generation: int | None = None
    pcie_generation_max: int | None = None
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    pcie_sent_bytes_total: int | None = None
    pcie_received_bytes_total: int | None = None
    pcie_sent_bytes_per_second: float | None = None
    pcie_received_bytes_per_second: float | None = None
    pcie_replays_total: int | None = None
    nvlink_links: int | None = None
    nvlink_links_active: int | None = None
    nvlink_sent_bytes_total: int | None = None
    nvlink_received_bytes_total: int | None = None
    nvlink_errors_total: int | None = None
    fabric_state: str | None = None
    fabric_status: str | None = None
    fabric_cluster_uuid: str | None = None
    fabric_clique_id: int | None = None
    fabric_faults: list[str] | None = None
    xid_events: list[XidEvent] | None = None


class GpuUse(msgspec.Struct, omit_defaults=True, gc=False):
    """What a process holds on one GPU."""

    uuid: str | None = None
    kinds: list[str] | None = None
    memory_bytes: int | None = None
    sm_ratio: float | None = None


class Process(msgspec.Struct, omit_defaults=True):
    """A process on one or more GPUs."""

    pid: int | None = None
    parent_pid: int | None = None
    user: str | None = None
    uid: int | None = None
    name: str | None = None
    command: str | None = None
    start_time: float | None = None
    nice: int | None = None
    state: str | None = None
    cpu_seconds_total: float | None = None
    memory_bytes: int | None = None
    cgroup: str | None = None
    vanished: bool | None = None
    children: list[int] | None = None
    gpus: list[GpuUse] | None = None


class Report(msgspec.Struct, omit_defaults=True, gc=False):
    """Something that could not be read."""

    collector: str | None = None
    message: str | None = None


class Snapshot(msgspec.Struct, omit_defaults=True):
    """A node at one moment."""

    schema: int | None = None
    node: str | None = None
    time: float | None = None
    seq: int | None = None
    boot_id: str | None = None
    probe: Probe | None = None
    host: Host | None = None
    gpus: list[Gpu] | None = None
    processes: list[Process] | None = None
    devices_age_seconds: float | None = None
    reports: list[Report] | None = None
