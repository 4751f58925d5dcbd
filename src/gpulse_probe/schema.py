"""The Snapshot as a plain table: the one contract between the probe, the hub, the database and the page.

Rules that hold for every field:
- the unit is in the name, and one name is used from the node to the pixel;
- unknown is absent, never 0, -1 or "N/A";
- counters travel raw, the hub turns them into rates.

`kind` says how a field behaves: a *fact* changes with the hardware or the set-up, a *value* with every
tick, a *counter* only grows until the thing it belongs to is restarted, and a *part* holds other records.
"""

from collections import OrderedDict, namedtuple

SCHEMA = 1

Field = namedtuple("Field", "name type unit kind meaning")

# A type is str, int, float, bool, a record's name, or one of these in [ ] for a list.
SNAPSHOT = (
    Field("schema", "int", "", "fact", "version of this table; a hub refuses one newer than its own"),
    Field("node", "str", "", "fact", "name the hub knows the node by; the host name unless told otherwise"),
    Field("time", "float", "seconds since 1970 UTC", "value", "when the snapshot was taken, by the node's clock"),
    Field("seq", "int", "", "counter", "number of the snapshot since the probe started, from 0"),
    Field("boot_id", "str", "", "fact", "the kernel's id of this boot; counters of the host start anew with it"),
    Field("probe", "Probe", "", "part", "the program that took the snapshot"),
    Field("host", "Host", "", "part", "the machine without its GPUs"),
    Field("gpus", "[Gpu]", "", "part", "GPUs and MIG instances; empty: there is none; absent: unknown, see reports"),
    Field("processes", "[Process]", "", "part", "processes on GPUs; absent: unknown, see reports"),
    Field("devices_age_seconds", "float", "seconds", "value", "how old gpus and processes are; absent: read just now"),
    Field("reports", "[Report]", "", "part", "what could not be read, and why"),
)

PROBE = (
    Field("version", "str", "", "fact", "version of the probe"),
    Field("python", "str", "", "fact", "version of the Python that runs it"),
    Field("interval_seconds", "float", "seconds", "fact", "time between two snapshots; absent: a single one"),
    Field(
        "gpu_source", "str", "", "fact", "who was asked for gpus: nvml, nvidia-smi or gpustat; absent: there is none"
    ),
    Field("collectors", "[Collector]", "", "part", "what each collector took and how it ended"),
)

COLLECTOR = (
    Field("name", "str", "", "fact", "file name of the collector"),
    Field("outcome", "str", "", "value", "data, absent (no such hardware) or failed (see reports)"),
    Field("duration_seconds", "float", "seconds", "value", "time it took at this tick"),
)

HOST = (
    Field("hostname", "str", "", "fact", "the machine's own name"),
    Field("os", "str", "", "fact", "distribution and release, as people write it"),
    Field("kernel", "str", "", "fact", "kernel release"),
    Field("architecture", "str", "", "fact", "machine type, such as x86_64"),
    Field("uptime_seconds", "float", "seconds", "value", "time since boot"),
    Field("cpu_model", "str", "", "fact", "the processor's name"),
    Field("cpu_sockets", "int", "", "fact", "processors"),
    Field("cpu_cores", "int", "", "fact", "physical cores of all sockets"),
    Field("cpu_threads", "int", "", "fact", "hardware threads of all sockets"),
    Field("cpu_user_seconds_total", "float", "seconds", "counter", "CPU time in user mode, all threads, without nice"),
    Field("cpu_nice_seconds_total", "float", "seconds", "counter", "CPU time of niced processes"),
    Field("cpu_system_seconds_total", "float", "seconds", "counter", "CPU time in the kernel"),
    Field("cpu_idle_seconds_total", "float", "seconds", "counter", "CPU time with nothing to do"),
    Field("cpu_iowait_seconds_total", "float", "seconds", "counter", "idle CPU time while a disk was waited for"),
    Field("cpu_irq_seconds_total", "float", "seconds", "counter", "CPU time in hard and soft interrupts"),
    Field("cpu_steal_seconds_total", "float", "seconds", "counter", "CPU time the hypervisor gave to others"),
    Field("load_1m", "float", "tasks", "value", "load average over one minute"),
    Field("load_5m", "float", "tasks", "value", "load average over five minutes"),
    Field("load_15m", "float", "tasks", "value", "load average over fifteen minutes"),
    Field("memory_total_bytes", "int", "bytes", "fact", "main memory"),
    Field(
        "memory_used_bytes",
        "int",
        "bytes",
        "value",
        "main memory that cannot be had for new work: total less available",
    ),
    Field("memory_available_bytes", "int", "bytes", "value", "main memory new work can have without swapping"),
    Field("memory_cached_bytes", "int", "bytes", "value", "page cache, buffers and reclaimable kernel memory"),
    Field("swap_total_bytes", "int", "bytes", "fact", "swap space"),
    Field("swap_used_bytes", "int", "bytes", "value", "swap space in use"),
    Field("disks", "[Disk]", "", "part", "real file systems, in the order of their mount points"),
    Field("networks", "[Network]", "", "part", "network interfaces but the loopback and those of containers"),
    Field("infiniband", "[InfinibandPort]", "", "part", "InfiniBand and RoCE ports"),
)

DISK = (
    Field("mount", "str", "", "fact", "mount point"),
    Field("device", "str", "", "fact", "block device, or server and path"),
    Field("filesystem", "str", "", "fact", "type of the file system"),
    Field("kind", "str", "", "fact", "nvme, ssd, hdd or network; absent: the kernel does not say"),
    Field("total_bytes", "int", "bytes", "value", "size"),
    Field("used_bytes", "int", "bytes", "value", "in use"),
    Field("available_bytes", "int", "bytes", "value", "left for people without root"),
)

NETWORK = (
    Field("interface", "str", "", "fact", "name of the interface"),
    Field("addresses", "[str]", "", "fact", "IPv4 and IPv6 addresses, without link-local ones"),
    Field("up", "bool", "", "value", "the link is up"),
    Field("speed_bits_per_second", "int", "bits per second", "fact", "speed of the link"),
    Field("received_bytes_total", "int", "bytes", "counter", "bytes received"),
    Field("sent_bytes_total", "int", "bytes", "counter", "bytes sent"),
    Field("received_errors_total", "int", "", "counter", "packets received with errors"),
    Field("sent_errors_total", "int", "", "counter", "packets that could not be sent"),
)

INFINIBAND_PORT = (
    Field("device", "str", "", "fact", "adapter, such as mlx5_0"),
    Field("port", "int", "", "fact", "port of the adapter"),
    Field("link", "str", "", "fact", "InfiniBand or Ethernet"),
    Field("state", "str", "", "value", "state of the port, such as ACTIVE"),
    Field("speed_bits_per_second", "int", "bits per second", "fact", "speed of the link"),
    Field("received_bytes_total", "int", "bytes", "counter", "bytes received"),
    Field("sent_bytes_total", "int", "bytes", "counter", "bytes sent"),
    Field("errors_total", "int", "", "counter", "symbol errors and packets received with errors"),
    Field("link_downed_total", "int", "", "counter", "times the link went down"),
)

GPU = (
    Field("index", "int", "", "fact", "number nvidia-smi gives the card; an instance has its card's"),
    Field("uuid", "str", "", "fact", "the driver's name for the device, the same after a reboot"),
    Field("parent_uuid", "str", "", "fact", "of a MIG instance: the card it is a part of"),
    Field("mig_index", "int", "", "fact", "of a MIG instance: its place on the card"),
    Field("mig_profile", "str", "", "fact", "of a MIG instance: its size, such as 1g.10gb"),
    Field("gpu_instance_id", "int", "", "fact", "of a MIG instance: the driver's id of its GPU instance"),
    Field("compute_instance_id", "int", "", "fact", "of a MIG instance: the driver's id of its compute instance"),
    Field("mig_enabled", "bool", "", "fact", "the card is split into MIG instances, or ready to be"),
    Field("vendor", "str", "", "fact", "nvidia, amd or intel"),
    Field("name", "str", "", "fact", "the model as the driver calls it"),
    Field("serial", "str", "", "fact", "serial number of the board"),
    Field("pci_bus_id", "str", "", "fact", "place on the PCI bus, such as 00000000:3B:00.0"),
    Field("minor_number", "int", "", "fact", "number N of the device file /dev/nvidiaN"),
    Field("driver_version", "str", "", "fact", "version of the driver"),
    Field("cuda_version", "str", "", "fact", "newest CUDA version the driver runs"),
    Field("compute_capability", "str", "", "fact", "CUDA compute capability, such as 9.0"),
    Field("compute_mode", "str", "", "fact", "who may compute: default, exclusive_process or prohibited"),
    Field("persistence", "bool", "", "fact", "the driver stays loaded while nobody uses the card"),
    Field("fault", "str", "", "value", "why the whole card cannot be read, such as GPU is lost"),
    Field("age_seconds", "float", "seconds", "value", "age of this GPU's values, where older than devices_age_seconds"),
    Field(
        "failed_fields",
        "[str]",
        "",
        "value",
        "fields that could not be read this time though the card has them, also: processes; absent: none failed",
    ),
    Field("failed_reason", "str", "", "value", "why they failed, in words"),
    Field(
        "processes_listed", "bool", "", "fact", "false: the driver never lists this GPU's processes; absent: it does"
    ),
    Field("memory_total_bytes", "int", "bytes", "fact", "memory of the device"),
    Field(
        "memory_used_bytes",
        "int",
        "bytes",
        "value",
        "memory in use, without what the driver keeps for itself; drivers before 510 cannot tell that apart",
    ),
    Field("memory_reserved_bytes", "int", "bytes", "value", "memory the driver keeps for itself"),
    Field("utilization_ratio", "float", "ratio", "value", "share of time in which any kernel ran"),
    Field("memory_utilization_ratio", "float", "ratio", "value", "share of time in which memory was read or written"),
    Field("encoder_utilization_ratio", "float", "ratio", "value", "load of the video encoder"),
    Field("decoder_utilization_ratio", "float", "ratio", "value", "load of the video decoder"),
    Field("sm_active_ratio", "float", "ratio", "value", "share of multiprocessors with work (GPM, Hopper and later)"),
    Field("sm_occupancy_ratio", "float", "ratio", "value", "warps resident, of those possible (GPM)"),
    Field("tensor_active_ratio", "float", "ratio", "value", "activity of the tensor cores (GPM)"),
    Field("dram_active_ratio", "float", "ratio", "value", "memory bandwidth used, of what is possible (GPM)"),
    Field("fp64_active_ratio", "float", "ratio", "value", "activity of the double precision pipe (GPM)"),
    Field("fp32_active_ratio", "float", "ratio", "value", "activity of the single precision pipe (GPM)"),
    Field("fp16_active_ratio", "float", "ratio", "value", "activity of the half precision pipe (GPM)"),
    Field("temperature_celsius", "int", "°C", "value", "temperature of the chip"),
    Field("memory_temperature_celsius", "int", "°C", "value", "temperature of the memory"),
    Field("temperature_slowdown_celsius", "int", "°C", "fact", "temperature at which the card slows itself down"),
    Field("temperature_shutdown_celsius", "int", "°C", "fact", "temperature at which the card switches itself off"),
    Field("fan_ratio", "float", "ratio", "value", "intended fan speed, of the fastest; may pass 1"),
    Field("power_watts", "float", "watts", "value", "power drawn; from Ampere on the mean of a second, but on GA100"),
    Field("power_limit_watts", "float", "watts", "fact", "power limit in force"),
    Field("power_limit_default_watts", "float", "watts", "fact", "power limit as delivered"),
    Field("power_limit_max_watts", "float", "watts", "fact", "highest power limit that can be set"),
    Field("energy_joules_total", "float", "joules", "counter", "energy used since the driver was loaded"),
    Field("performance_state", "str", "", "value", "P0 (fastest) to P15"),
    Field("clock_graphics_hertz", "int", "hertz", "value", "graphics clock"),
    Field("clock_sm_hertz", "int", "hertz", "value", "multiprocessor clock"),
    Field("clock_memory_hertz", "int", "hertz", "value", "memory clock"),
    Field("clock_video_hertz", "int", "hertz", "value", "video clock"),
    Field("clock_graphics_max_hertz", "int", "hertz", "fact", "highest graphics clock"),
    Field("clock_sm_max_hertz", "int", "hertz", "fact", "highest multiprocessor clock"),
    Field("clock_memory_max_hertz", "int", "hertz", "fact", "highest memory clock"),
    Field("clock_video_max_hertz", "int", "hertz", "fact", "highest video clock"),
    Field("throttle_reasons", "[str]", "", "value", "why the clocks are not at their highest; empty: they are"),
    Field("ecc_enabled", "bool", "", "fact", "memory errors are corrected"),
    Field("ecc_corrected_volatile_total", "int", "", "counter", "corrected memory errors since the driver was loaded"),
    Field(
        "ecc_uncorrected_volatile_total", "int", "", "counter", "uncorrected memory errors since the driver was loaded"
    ),
    Field("ecc_corrected_aggregate_total", "int", "", "counter", "corrected memory errors in the card's life"),
    Field("ecc_uncorrected_aggregate_total", "int", "", "counter", "uncorrected memory errors in the card's life"),
    Field("remapped_rows_corrected_total", "int", "", "counter", "memory rows replaced after corrected errors"),
    Field("remapped_rows_uncorrected_total", "int", "", "counter", "memory rows replaced after uncorrected errors"),
    Field("remapped_rows_pending", "bool", "", "value", "a row will be replaced at the next reset"),
    Field("remapped_rows_failed", "bool", "", "value", "a row could not be replaced: the card wants to be exchanged"),
    Field("retired_pages_corrected_total", "int", "", "counter", "memory pages given up after corrected errors"),
    Field("retired_pages_uncorrected_total", "int", "", "counter", "memory pages given up after uncorrected errors"),
    Field("retired_pages_pending", "bool", "", "value", "a page will be given up at the next reset"),
    Field("pcie_generation", "int", "", "value", "PCIe generation of the link now"),
    Field("pcie_generation_max", "int", "", "fact", "highest PCIe generation of card and slot"),
    Field("pcie_width", "int", "lanes", "value", "PCIe lanes in use now"),
    Field("pcie_width_max", "int", "lanes", "fact", "most PCIe lanes of card and slot"),
    Field("pcie_sent_bytes_total", "int", "bytes", "counter", "bytes the card sent over PCIe"),
    Field("pcie_received_bytes_total", "int", "bytes", "counter", "bytes the card received over PCIe"),
    Field(
        "pcie_sent_bytes_per_second",
        "float",
        "bytes per second",
        "value",
        "the same as a rate, where the card counts no bytes",
    ),
    Field(
        "pcie_received_bytes_per_second",
        "float",
        "bytes per second",
        "value",
        "the same as a rate, where the card counts no bytes",
    ),
    Field("pcie_replays_total", "int", "", "counter", "packets that had to be sent again over PCIe"),
    Field("nvlink_links", "int", "", "fact", "NVLink links of the card"),
    Field("nvlink_links_active", "int", "", "value", "NVLink links that are up"),
    Field("nvlink_sent_bytes_total", "int", "bytes", "counter", "bytes sent over all NVLink links"),
    Field("nvlink_received_bytes_total", "int", "bytes", "counter", "bytes received over all NVLink links"),
    Field("nvlink_errors_total", "int", "", "counter", "replay, recovery and CRC errors of all NVLink links"),
    Field("fabric_state", "str", "", "value", "NVSwitch fabric: not_started, in_progress or completed"),
    Field(
        "fabric_status", "str", "", "value", "how joining the fabric ended: Success, or NVIDIA's words for the failure"
    ),
    Field("fabric_cluster_uuid", "str", "", "fact", "the NVLink domain it belongs to"),
    Field("fabric_clique_id", "int", "", "fact", "the part of that domain whose GPUs reach each other"),
    Field(
        "fabric_faults",
        "[str]",
        "",
        "value",
        "what is wrong with its fabric: degraded_bandwidth, route_recovery, route_unhealthy, access_timeout_recovery, "
        "incorrect_configuration; empty: nothing; absent: unknown",
    ),
    Field("xid_events", "[XidEvent]", "", "part", "the last errors the driver told of since the probe started"),
)

XID_EVENT = (
    Field("time", "float", "seconds since 1970 UTC", "value", "when the probe learnt of it"),
    Field("xid", "int", "", "value", "NVIDIA's number of the error"),
)

PROCESS = (
    Field("pid", "int", "", "fact", "process id on the node"),
    Field("parent_pid", "int", "", "value", "process id of its parent"),
    Field("user", "str", "", "fact", "login name; the uid in digits where it has no name"),
    Field("uid", "int", "", "fact", "user id"),
    Field("name", "str", "", "value", "program name"),
    Field("command", "str", "", "fact", "command line, secrets masked, at most 4,096 characters"),
    Field("start_time", "float", "seconds since 1970 UTC", "fact", "when it was started"),
    Field("nice", "int", "", "value", "-20 to 19; above 0: it gives way to others"),
    Field(
        "state",
        "str",
        "",
        "value",
        "the kernel's letter: R running, S sleeping, D waiting for a device, Z dead, T stopped",
    ),
    Field("cpu_seconds_total", "float", "seconds", "counter", "CPU time it used"),
    Field("memory_bytes", "int", "bytes", "value", "main memory it holds"),
    Field("cgroup", "str", "", "fact", "control group as the kernel names it"),
    Field(
        "vanished",
        "bool",
        "",
        "value",
        "the driver lists it, the kernel does not: it died and its GPU memory was not given back",
    ),
    Field("children", "[int]", "", "value", "of a vanished process: pids of children that still live"),
    Field("gpus", "[GpuUse]", "", "part", "what it holds on each GPU"),
)

GPU_USE = (
    Field("uuid", "str", "", "fact", "the GPU or MIG instance"),
    Field("kinds", "[str]", "", "fact", "compute, graphics or mps"),
    Field("memory_bytes", "int", "bytes", "value", "GPU memory it holds"),
    Field("sm_ratio", "float", "ratio", "value", "share of the GPU's time it computed"),
)

REPORT = (
    Field("collector", "str", "", "fact", "who reports"),
    Field("message", "str", "", "value", "what could not be read, why, and what to do"),
)

# A line of `--stream --updates`, between two Snapshots. Its host, gpus, processes and uses have the names of those
# records' fields, but only of those that changed; in the last three a name has a list of values, one for each.
UPDATE = (
    Field("update", "int", "", "fact", "seq of the last Snapshot: the one this is about"),
    Field("seq", "int", "", "counter", "number of the line since the probe started; Snapshots count too"),
    Field("time", "float", "seconds since 1970 UTC", "value", "when it was taken, by the node's clock"),
    Field("devices_age_seconds", "float", "seconds", "value", "how old gpus and processes are; absent: read just now"),
    Field("host", "Host", "", "part", "fields that are not as in that Snapshot, lists in full; null: no longer known"),
    Field("gpus", "Gpu", "", "part", "fields that are not, each with a value for each GPU of the Snapshot"),
    Field("processes", "Process", "", "part", "the same for each process of the Snapshot"),
    Field("uses", "GpuUse", "", "part", "the same for what each process holds on each GPU, all in one row"),
    Field("reports", "[Report]", "", "part", "what could not be read, and why: all of it; absent: nothing"),
)

RECORDS = OrderedDict(
    (
        ("Snapshot", SNAPSHOT),
        ("Probe", PROBE),
        ("Collector", COLLECTOR),
        ("Host", HOST),
        ("Disk", DISK),
        ("Network", NETWORK),
        ("InfinibandPort", INFINIBAND_PORT),
        ("Gpu", GPU),
        ("XidEvent", XID_EVENT),
        ("Process", PROCESS),
        ("GpuUse", GPU_USE),
        ("Report", REPORT),
        ("Update", UPDATE),
    )
)

GPU_FACTS = frozenset(field.name for field in GPU if field.kind == "fact")
