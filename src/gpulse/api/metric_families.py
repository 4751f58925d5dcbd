"""Every metric the hub tells, in the order it tells them; docs/metrics.md has the same list."""

from gpulse.api.exposition import Family

BUILD = Family("gpulse_build_info", "info", "The hub's version.", ("version", "python"))
NODES = Family("gpulse_hub_nodes", "gauge", "Nodes by their state: new, up, stale, down.", ("state",))
TICKS = Family("gpulse_hub_ticks_total", "counter", "Times the hub has judged the whole fleet, once a second.")
TICK_SECONDS = Family("gpulse_hub_tick_seconds_total", "counter", "Time that judging the whole fleet took.")
LISTENERS = Family("gpulse_hub_live_listeners", "gauge", "Pages and programs that watch the live stream.")
LINES = Family("gpulse_hub_lines_total", "counter", "Live lines taken from nodes.")
LINE_BYTES = Family("gpulse_hub_line_bytes_total", "counter", "Bytes of the live lines taken from nodes.")
BAD_LINES = Family("gpulse_hub_bad_lines_total", "counter", "Lines of nodes that could not be read.")
LATE_LINES = Family("gpulse_hub_late_lines_total", "counter", "Lines that nodes kept while the hub was away.")
CONNECTS = Family("gpulse_hub_connects_total", "counter", "Agents that connected to push.")
REFUSED = Family(
    "gpulse_hub_refused_total", "counter", "What nodes asked for or sent and was refused, by why.", ("code",)
)
CPU = Family("process_cpu_seconds_total", "counter", "CPU time of the hub, user and system.")
RESIDENT = Family("process_resident_memory_bytes", "gauge", "Memory of the hub that is in RAM.")
VIRTUAL = Family("process_virtual_memory_bytes", "gauge", "Address space of the hub.")
OPEN_FILES = Family("process_open_fds", "gauge", "Files and connections the hub has open.")
MOST_FILES = Family("process_max_fds", "gauge", "Files and connections the hub may have open.")
STARTED = Family("process_start_time_seconds", "gauge", "When the hub was started, since 1970.")

MEMORY_TOTAL = Family("gpulse_memory_total_bytes", "gauge", "Memory of all GPUs whose memory is known.")
MEMORY_TOTAL_GPUS = Family("gpulse_memory_total_known_gpus", "gauge", "GPUs in gpulse_memory_total_bytes.")
MEMORY_FREE = Family("gpulse_memory_free_bytes", "gauge", "Memory that new processes could take, where it is known.")
MEMORY_FREE_GPUS = Family("gpulse_memory_free_known_gpus", "gauge", "GPUs in gpulse_memory_free_bytes.")
POWER = Family("gpulse_power_watts", "gauge", "Power that all GPUs draw, where it is known.")
POWER_GPUS = Family("gpulse_power_known_gpus", "gauge", "GPUs in gpulse_power_watts.")
SAME_MACHINE = Family(
    "gpulse_same_machine_nodes", "gauge", "Nodes that are the same machine as another, and are not counted."
)
SUMMARY = (
    (MEMORY_TOTAL, "memory_total_bytes"),
    (MEMORY_TOTAL_GPUS, "memory_total_known_gpus"),
    (MEMORY_FREE, "memory_free_bytes"),
    (MEMORY_FREE_GPUS, "memory_free_known_gpus"),
    (POWER, "power_watts"),
    (POWER_GPUS, "power_known_gpus"),
    (SAME_MACHINE, "same_machine_nodes"),
)
GPUS = Family("gpulse_gpus", "gauge", "GPUs and MIG instances by model and state.", ("model", "state"))

_NODE = ("node",)
NODE_UP = Family("gpulse_node_up", "gauge", "1: the node tells its figures; 0: it is new, stale or down.", _NODE)
NODE_INFO = Family(
    "gpulse_node_info",
    "info",
    "Facts about the node.",
    ("node", "group", "rack", "os", "kernel", "architecture", "cpu_model", "probe_version"),
)
NODE_AGE = Family("gpulse_node_last_line_age_seconds", "gauge", "How long ago the node told something.", _NODE)
NODE_DEVICES_AGE = Family(
    "gpulse_node_devices_age_seconds", "gauge", "How old the values of the node's GPUs and processes are.", _NODE
)
NODE_SAME_MACHINE = Family(
    "gpulse_node_same_machine_info",
    "info",
    "The node is the same machine as another, which counts its GPUs.",
    ("node", "same_as"),
)
NODE_CLOCK = Family("gpulse_node_clock_offset_seconds", "gauge", "The node's clock less the hub's.", _NODE)
NODE_REPORTS = Family("gpulse_node_unread", "gauge", "Things the node's probe could not read.", _NODE)

# Figures of a host: metric, meaning, field of the Snapshot.
HOST = tuple(
    (Family(f"gpulse_node_{name}", "gauge", text, _NODE), field)
    for name, text, field in (
        ("uptime_seconds", "Since the node started.", "uptime_seconds"),
        ("cpu_threads", "CPUs as the kernel counts them.", "cpu_threads"),
        ("load1", "Load average of 1 minute.", "load_1m"),
        ("load5", "Load average of 5 minutes.", "load_5m"),
        ("load15", "Load average of 15 minutes.", "load_15m"),
        ("memory_total_bytes", "Memory of the node.", "memory_total_bytes"),
        ("memory_used_bytes", "Memory in use, without caches.", "memory_used_bytes"),
        ("memory_available_bytes", "Memory that programs can have.", "memory_available_bytes"),
        ("memory_cached_bytes", "Memory that caches files.", "memory_cached_bytes"),
        ("swap_total_bytes", "Swap space.", "swap_total_bytes"),
        ("swap_used_bytes", "Swap space in use.", "swap_used_bytes"),
    )
)
NODE_CPU = Family("gpulse_node_cpu_seconds_total", "counter", "CPU time by what it was spent on.", ("node", "mode"))
CPU_MODES = ("user", "nice", "system", "idle", "iowait", "irq", "steal")


def _parts(
    start: str, kind: str, text: str, own: tuple[str, ...], *fields: tuple[str, str, str]
) -> tuple[tuple[Family, str], ...]:
    return tuple(
        (Family(start + name, "counter" if kind == "counter" else "gauge", f"{text}: {what}.", (*_NODE, *own)), field)
        for name, what, field in fields
    )


DISK = _parts(
    "gpulse_node_filesystem_",
    "gauge",
    "File system",
    ("mountpoint", "kind"),
    ("size_bytes", "its size", "total_bytes"),
    ("used_bytes", "what is used", "used_bytes"),
    ("available_bytes", "what users can still write", "available_bytes"),
)
NETWORK = _parts(
    "gpulse_node_network_",
    "counter",
    "Network interface",
    ("device",),
    ("receive_bytes_total", "received", "received_bytes_total"),
    ("transmit_bytes_total", "sent", "sent_bytes_total"),
    ("receive_errors_total", "errors in receiving", "received_errors_total"),
    ("transmit_errors_total", "errors in sending", "sent_errors_total"),
)
INFINIBAND = _parts(
    "gpulse_node_infiniband_",
    "counter",
    "InfiniBand port",
    ("device", "port"),
    ("receive_bytes_total", "received", "received_bytes_total"),
    ("transmit_bytes_total", "sent", "sent_bytes_total"),
    ("errors_total", "errors", "errors_total"),
    ("link_downed_total", "times its link went down", "link_downed_total"),
)

_GPU = ("node", "gpu")
GPU_INFO = Family(
    "gpulse_gpu_info",
    "info",
    "Facts about the GPU or MIG instance.",
    ("node", "gpu", "uuid", "model", "name", "vendor", "mig_profile", "pci_bus_id", "driver_version"),
)
GPU_STATE = Family(
    "gpulse_gpu_state",
    "gauge",
    "1 for the state that the GPU is in: down, stale, unhealthy, unknown, busy, idle, reserved, free.",
    ("node", "gpu", "state"),
)
GPU_AGE = Family("gpulse_gpu_age_seconds", "gauge", "How old the GPU's values are.", _GPU)
GPU_THROTTLED = Family("gpulse_gpu_throttled", "gauge", "1: heat or lack of power slows the GPU down.", _GPU)

# Figures of a GPU: metric, meaning, field of the Snapshot.
GPU = tuple(
    (Family(f"gpulse_gpu_{name}", "counter" if name.endswith("_total") else "gauge", text, _GPU), field)
    for name, text, field in (
        ("utilization_ratio", "Share of time in which it computed.", "utilization_ratio"),
        (
            "memory_utilization_ratio",
            "Share of time in which its memory was read or written.",
            "memory_utilization_ratio",
        ),
        ("encoder_utilization_ratio", "Share of time in which it encoded video.", "encoder_utilization_ratio"),
        ("decoder_utilization_ratio", "Share of time in which it decoded video.", "decoder_utilization_ratio"),
        ("sm_active_ratio", "Share of its multiprocessors at work.", "sm_active_ratio"),
        ("tensor_active_ratio", "Share of its tensor cores at work.", "tensor_active_ratio"),
        ("dram_active_ratio", "Share of its memory bandwidth in use.", "dram_active_ratio"),
        ("memory_total_bytes", "Its memory.", "memory_total_bytes"),
        ("memory_used_bytes", "Memory in use.", "memory_used_bytes"),
        ("temperature_celsius", "Temperature of the chip.", "temperature_celsius"),
        ("memory_temperature_celsius", "Temperature of its memory.", "memory_temperature_celsius"),
        ("fan_ratio", "Speed of its fan, as a share of the most.", "fan_ratio"),
        ("power_watts", "Power it draws.", "power_watts"),
        ("power_limit_watts", "Power it may draw.", "power_limit_watts"),
        ("energy_joules_total", "Energy it has used.", "energy_joules_total"),
        ("clock_sm_hertz", "Clock of its multiprocessors.", "clock_sm_hertz"),
        ("clock_memory_hertz", "Clock of its memory.", "clock_memory_hertz"),
        ("ecc_corrected_errors_total", "Memory errors that were corrected.", "ecc_corrected_volatile_total"),
        ("ecc_uncorrected_errors_total", "Memory errors that were not.", "ecc_uncorrected_volatile_total"),
        (
            "remapped_rows_corrected_total",
            "Memory rows replaced for errors that were corrected.",
            "remapped_rows_corrected_total",
        ),
        (
            "remapped_rows_uncorrected_total",
            "Memory rows replaced for errors that were not.",
            "remapped_rows_uncorrected_total",
        ),
        ("pcie_transmit_bytes_total", "Sent over PCIe.", "pcie_sent_bytes_total"),
        ("pcie_receive_bytes_total", "Received over PCIe.", "pcie_received_bytes_total"),
        ("pcie_replays_total", "Transfers over PCIe that had to be made again.", "pcie_replays_total"),
        ("nvlink_transmit_bytes_total", "Sent over NVLink.", "nvlink_sent_bytes_total"),
        ("nvlink_receive_bytes_total", "Received over NVLink.", "nvlink_received_bytes_total"),
        ("nvlink_errors_total", "Errors of its NVLinks.", "nvlink_errors_total"),
    )
)

HUB = (
    BUILD,
    NODES,
    TICKS,
    TICK_SECONDS,
    LISTENERS,
    LINES,
    LINE_BYTES,
    BAD_LINES,
    LATE_LINES,
    CONNECTS,
    REFUSED,
    CPU,
    RESIDENT,
    VIRTUAL,
    OPEN_FILES,
    MOST_FILES,
    STARTED,
)
NODE = (
    NODE_UP,
    NODE_INFO,
    NODE_AGE,
    NODE_DEVICES_AGE,
    NODE_SAME_MACHINE,
    NODE_CLOCK,
    NODE_REPORTS,
    *(family for family, _ in HOST),
    NODE_CPU,
    *(family for family, _ in (*DISK, *NETWORK, *INFINIBAND)),
)
ALL = (
    *HUB,
    GPUS,
    *(family for family, _ in SUMMARY),
    *NODE,
    GPU_INFO,
    GPU_STATE,
    GPU_AGE,
    GPU_THROTTLED,
    *(family for family, _ in GPU),
)
