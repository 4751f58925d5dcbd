"""GPUs by NVML: every field as the card is described, each asked on its own terms."""

import ast
import time
from pathlib import Path

import gpulse_probe
from gpulse_probe.nvidia.names import NUMBERS, STRUCTURES
from tests.conform import conforms
from tests.fake_nvml import Process, a100_mig_node, h100_node, rtx3090_node
from tests.probe.running import RunningProbe, once

GIB = 1 << 30
MIB = 1 << 20


def test_every_field_of_an_h100(fake, pids):
    fake.describe(h100_node(2, [Process(pids[0], gpu=0, memory="3GiB", sm=40), Process(pids[1], gpu=1, sm=7)]))
    with RunningProbe(fake.environment(), "--interval", "0.2") as probe:
        probe.next()
        snapshot = probe.until(lambda taken: "sm_active_ratio" in taken["gpus"][0])
    assert conforms("Snapshot", snapshot) == []
    assert snapshot["reports"] == []
    assert snapshot["probe"]["gpu_source"] == "nvml"
    gpu = snapshot["gpus"][0]
    energy = gpu.pop("energy_joules_total")
    assert energy > 1_000_000
    for counter in ("pcie_sent", "pcie_received", "nvlink_sent", "nvlink_received"):
        assert gpu.pop(f"{counter}_bytes_total") > 10**10
    assert gpu == {
        "index": 0,
        "uuid": "GPU-a1b2c3d4-0000-4000-8000-000000000000",
        "vendor": "nvidia",
        "name": "NVIDIA H100 80GB HBM3",
        "serial": "1650923000000",
        "pci_bus_id": "00000000:19:00.0",
        "minor_number": 0,
        "driver_version": "550.54.15",
        "cuda_version": "12.4",
        "compute_capability": "9.0",
        "compute_mode": "default",
        "persistence": True,
        "mig_enabled": False,
        "memory_total_bytes": 81559 * MIB,
        "memory_used_bytes": 30000 * MIB,
        "memory_reserved_bytes": 546 * MIB,
        "utilization_ratio": 0.8,
        "memory_utilization_ratio": 0.4,
        "encoder_utilization_ratio": 0.0,
        "decoder_utilization_ratio": 0.0,
        "sm_active_ratio": 0.72,
        "sm_occupancy_ratio": 0.4,
        "tensor_active_ratio": 0.48,
        "dram_active_ratio": 0.32,
        "fp64_active_ratio": 0.0,
        "fp32_active_ratio": 0.08,
        "fp16_active_ratio": 0.04,
        "temperature_celsius": 50,
        "memory_temperature_celsius": 60,
        "temperature_slowdown_celsius": 89,
        "temperature_shutdown_celsius": 92,
        "power_watts": 400.5,
        "power_limit_watts": 700.0,
        "power_limit_default_watts": 700.0,
        "power_limit_max_watts": 700.0,
        "performance_state": "P0",
        "clock_graphics_hertz": 1_755_000_000,
        "clock_sm_hertz": 1_755_000_000,
        "clock_memory_hertz": 2_619_000_000,
        "clock_video_hertz": 1_545_000_000,
        "clock_graphics_max_hertz": 1_980_000_000,
        "clock_sm_max_hertz": 1_980_000_000,
        "clock_memory_max_hertz": 2_619_000_000,
        "clock_video_max_hertz": 1_545_000_000,
        "throttle_reasons": ["sw_power_cap"],
        "ecc_enabled": True,
        "ecc_corrected_volatile_total": 0,
        "ecc_uncorrected_volatile_total": 0,
        "ecc_corrected_aggregate_total": 2,
        "ecc_uncorrected_aggregate_total": 0,
        "remapped_rows_corrected_total": 1,
        "remapped_rows_uncorrected_total": 0,
        "remapped_rows_pending": False,
        "remapped_rows_failed": False,
        "pcie_generation": 5,
        "pcie_generation_max": 5,
        "pcie_width": 16,
        "pcie_width_max": 16,
        "pcie_replays_total": 0,
        "nvlink_links": 18,
        "nvlink_links_active": 18,
        "nvlink_errors_total": 0,
    }
    first, second = snapshot["processes"]
    assert first["gpus"] == [{"uuid": gpu["uuid"], "kinds": ["compute"], "memory_bytes": 3 * GIB, "sm_ratio": 0.4}]
    assert second["gpus"][0]["sm_ratio"] == 0.07
    assert first["command"] == "sleep 300"


def test_counters_grow_and_values_move(fake):
    fake.describe(
        "gpu\n  utilisation 50 +- 40 every 2\n  energy 1000 grows 500\n  nvlink_links 4\n  nvlink_sent 0 grows 1GB\n"
    )
    with RunningProbe(fake.environment(), "--interval", "0.3") as probe:
        taken = [probe.next() for _ in range(6)]
    energies = [snapshot["gpus"][0]["energy_joules_total"] for snapshot in taken]
    times = [snapshot["time"] for snapshot in taken]
    assert 400 < (energies[-1] - energies[0]) / (times[-1] - times[0]) < 600
    assert len({snapshot["gpus"][0]["utilization_ratio"] for snapshot in taken}) > 2
    sent = [snapshot["gpus"][0]["nvlink_sent_bytes_total"] for snapshot in taken]
    assert sent == sorted(sent)
    assert sent[-1] > sent[0]


def test_a_card_has_no_fields_it_does_not_have(fake):
    """A consumer card: fan and encoder, but no ECC, NVLink, GPM, serial; PCIe rates come in turns."""
    fake.describe(rtx3090_node(2))
    with RunningProbe(fake.environment(), "--interval", "0.1") as probe:
        snapshot = probe.until(lambda taken: all("pcie_sent_bytes_per_second" in gpu for gpu in taken["gpus"]))
    assert conforms("Snapshot", snapshot) == []
    assert snapshot["reports"] == []
    first, second = snapshot["gpus"]
    assert (first["fan_ratio"], second["fan_ratio"]) == (0.45, 0.46)
    assert first["throttle_reasons"] == ["sw_power_cap", "hw_thermal_slowdown"]
    assert (first["encoder_utilization_ratio"], first["decoder_utilization_ratio"]) == (0.07, 0.03)
    assert first["pcie_sent_bytes_per_second"] == 1_500_000.0
    assert second["pcie_received_bytes_per_second"] == 2_500_000.0
    absent = ("serial", "ecc_enabled", "nvlink_links", "sm_active_ratio", "mig_enabled", "pcie_sent_bytes_total")
    assert [name for name in absent if name in first] == []


def test_mig_instances_are_devices_with_a_parent(fake, pids):
    used = [Process(pids[0], gpu=0, memory="1GiB", instance=(3, 0)), Process(pids[1], gpu=1, memory="2GiB", sm=30)]
    fake.describe(a100_mig_node(used))
    snapshot = once(fake.environment())
    assert conforms("Snapshot", snapshot) == []
    card, first, second, third, whole = snapshot["gpus"]
    assert card["mig_enabled"] is True
    assert whole["mig_enabled"] is False
    assert [one["mig_profile"] for one in (first, second, third)] == ["3g.20gb", "2g.10gb", "1g.5gb"]
    assert {one["parent_uuid"] for one in (first, second, third)} == {card["uuid"]}
    assert (second["uuid"], second["index"], second["mig_index"]) == ("MIG-a1000000-0000-5000-8000-000000000002", 0, 1)
    assert (second["gpu_instance_id"], second["compute_instance_id"]) == (3, 0)
    assert (second["memory_total_bytes"], second["memory_used_bytes"]) == (9856 * MIB, 2 * GIB)
    assert "utilization_ratio" not in second
    by_pid = {process["pid"]: process["gpus"] for process in snapshot["processes"]}
    assert by_pid[pids[0]] == [{"uuid": second["uuid"], "kinds": ["compute"], "memory_bytes": GIB}]
    assert by_pid[pids[1]][0]["uuid"] == whole["uuid"]
    assert snapshot["reports"] == []


def test_instances_come_and_go(fake):
    fake.describe(a100_mig_node())
    with RunningProbe(fake.environment(), "--interval", "0.5") as probe:
        assert len(probe.next()["gpus"]) == 5
        fake.describe("\n".join(line for line in a100_mig_node().splitlines() if "1g.5gb" not in line) + "\n")
        snapshot = probe.until(lambda taken: len(taken["gpus"]) == 4)
    assert [gpu.get("mig_profile") for gpu in snapshot["gpus"]] == [None, "3g.20gb", "2g.10gb", None]


def test_kinds_and_unknown_memory_of_processes(fake, pids):
    first, second, third = pids
    fake.describe(
        f"gpu\n  process {first} compute 1GiB\n  process {first} graphics 1GiB\n"
        f"  process {second} mps 2GiB\n  process {third} compute unknown\n"
    )
    uses = {process["pid"]: process["gpus"][0] for process in once(fake.environment())["processes"]}
    assert uses[first]["kinds"] == ["compute", "graphics"]
    assert uses[first]["memory_bytes"] == GIB
    assert uses[second]["kinds"] == ["mps"]
    assert "memory_bytes" not in uses[third]


def test_more_processes_than_expected(fake):
    """The driver says how much room it needs, and gets it."""
    lines = "".join(f"  process {number} compute 1MiB sm 1\n" for number in range(4_000_000, 4_000_200))
    fake.describe("gpu\n" + lines)
    assert len(once(fake.environment())["processes"]) == 200


def test_xid_events_have_a_time(fake):
    fake.describe("gpu\ngpu\n")
    with RunningProbe(fake.environment(), "--interval", "0.2") as probe:
        probe.next()
        began = time.time()
        fake.describe("gpu\ngpu\n  xid 79\n")
        snapshot = probe.until(lambda taken: "xid_events" in taken["gpus"][1])
        (event,) = snapshot["gpus"][1]["xid_events"]
        assert event["xid"] == 79
        assert began - 0.01 <= event["time"] <= time.time()
        assert "xid_events" not in snapshot["gpus"][0]
        fake.describe("gpu\ngpu\n" + "  xid 79\n" + "  xid 31\n" * 20)
        events = probe.until(lambda taken: len(taken["gpus"][1]["xid_events"]) > 1)["gpus"][1]["xid_events"]
        assert [one["xid"] for one in events] == [31] * 10


def test_old_driver_without_the_newer_functions(make_fake, pids):
    old = make_fake(
        [
            "nvmlDeviceGetMemoryInfo_v2",
            "nvmlDeviceGetCurrentClocksEventReasons",
            "nvmlDeviceGetFieldValues",
            "nvmlDeviceGetMigMode",
            "nvmlGpmQueryDeviceSupport",
            *(
                f"nvmlDeviceGet{kind}RunningProcesses{version}"
                for kind in ("Compute", "Graphics", "MPSCompute")
                for version in ("_v2", "_v3")
            ),
        ],
    )
    old.describe(rtx3090_node(1, [Process(pids[0], memory="1GiB", sm=10)]))
    snapshot = once(old.environment())
    assert snapshot["reports"] == []
    gpu = snapshot["gpus"][0]
    # The older call counts what the driver keeps for itself as used.
    assert gpu["memory_used_bytes"] == (4000 + 308) * MIB
    assert gpu["throttle_reasons"] == ["sw_power_cap", "hw_thermal_slowdown"]
    assert snapshot["processes"][0]["gpus"][0]["memory_bytes"] == GIB


def test_no_card_is_not_an_error(fake):
    fake.describe("driver 550.54.15\n")
    snapshot = once(fake.environment())
    assert (snapshot["gpus"], snapshot["processes"], snapshot["reports"]) == ([], [], [])


def test_names_taken_from_the_binding_are_those_used():
    """names.py is what travels in the bundle: nothing is missing, nothing is dead."""
    package = Path(gpulse_probe.__file__).parent
    used = {
        node.attr
        for path in [*package.glob("nvidia/*.py"), package / "collectors" / "nvidia_nvml.py"]
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "binding"
    }
    assert used == {*NUMBERS, *STRUCTURES}
