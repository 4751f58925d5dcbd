"""Descriptions of believable nodes, as text for the fake NVML library."""

from collections.abc import Sequence
from typing import NamedTuple


class Process(NamedTuple):
    """One process on a card; `memory` None: the driver does not tell, `sm` None: no samples of it."""

    pid: int
    gpu: int = 0
    memory: str | None = "2GiB"
    sm: int | None = None
    kind: str = "compute"
    instance: tuple[int, int] | None = None

    def line(self) -> str:
        words = ["process", str(self.pid), self.kind, self.memory or "unknown"]
        if self.sm is not None:
            words += ["sm", str(self.sm), "mem", str(self.sm // 2)]
        if self.instance is not None:
            words += ["gi", str(self.instance[0]), "ci", str(self.instance[1])]
        return " ".join(words)


def swing(mean: float, amplitude: float, seconds: float, moving: bool) -> str:
    return f"{mean} +- {amplitude} every {seconds}" if moving else f"{mean}"


def node(cards: Sequence[Sequence[str]], processes: Sequence[Process], driver: str, cuda: str) -> str:
    lines = [f"driver {driver}", f"nvml {cuda.split('.', maxsplit=1)[0]}.{driver}", f"cuda {cuda}"]
    for index, card in enumerate(cards):
        lines += ["", "gpu", *("  " + line for line in card)]
        lines += ["  " + process.line() for process in processes if process.gpu == index]
    return "\n".join(lines) + "\n"


def h100_node(gpus: int = 8, processes: Sequence[Process] = (), moving: bool = False) -> str:
    """A training node: SXM boards with NVLink and GPM, no fans of their own."""
    cards = []
    for index in range(gpus):
        load = 0 if processes and not any(process.gpu == index for process in processes) else 80 + index
        cards.append(
            [
                "name NVIDIA H100 80GB HBM3",
                f"uuid GPU-a1b2c3d4-0000-4000-8000-0000000000{index:02x}",
                f"serial 16509230{index:05d}",
                f"bus 00000000:{0x19 + 0x11 * index:02X}:00.0",
                "architecture hopper",
                "capability 9.0",
                "cores 16896",
                "memory_total 81559MiB",
                f"memory_used {30000 + 1000 * index}MiB",
                "memory_reserved 546MiB",
                "bar1_total 128GiB",
                f"utilisation {swing(load, 10, 30 + index, moving)}",
                f"memory_utilisation {swing(load // 2, 8, 20 + index, moving)}",
                f"temperature {swing(50 + index, 5, 120, moving)}",
                f"memory_temperature {swing(60 + index, 5, 120, moving)}",
                "temperature_shutdown 92",
                "temperature_slowdown 89",
                "temperature_gpu_max 87",
                "temperature_memory_max 95",
                f"power {swing(400.5 + index, 60, 15 + index, moving)}",
                "power_limit 700",
                "power_limit_default 700",
                "power_limit_min 200",
                "power_limit_max 700",
                f"energy 1000000 grows {400 + index}",
                "clock_graphics 1755",
                "clock_sm 1755",
                "clock_memory 2619",
                "clock_video 1545",
                "clock_graphics_max 1980",
                "clock_sm_max 1980",
                "clock_memory_max 2619",
                "clock_video_max 1545",
                "fan none",
                "fans 0",
                "pstate 0",
                "throttle software_power_cap" if load else "throttle gpu_idle",
                "ecc on",
                "ecc_corrected_volatile 0",
                "ecc_uncorrected_volatile 0",
                "ecc_corrected_aggregate 2",
                "ecc_uncorrected_aggregate 0",
                "remapped_corrected 1",
                "remapped_uncorrected 0",
                "remapped_pending no",
                "remapped_failed no",
                "pcie_generation 5",
                "pcie_generation_max 5",
                "pcie_sent 10GB grows 1GB",
                "pcie_received 20GB grows 2GB",
                "nvlink_links 18",
                "nvlink_version 4",
                "nvlink_sent 100GB grows 20GB",
                "nvlink_received 100GB grows 20GB",
                "mig_mode off",
                f"gpm graphics {swing(load, 10, 30 + index, moving)}",
                f"gpm sm {swing(load * 0.9, 9, 30 + index, moving)}",
                f"gpm occupancy {swing(load * 0.5, 5, 30 + index, moving)}",
                f"gpm tensor {swing(load * 0.6, 6, 30 + index, moving)}",
                f"gpm dram {swing(load * 0.4, 4, 30 + index, moving)}",
                "gpm fp64 0",
                f"gpm fp32 {swing(load * 0.1, 1, 30 + index, moving)}",
                f"gpm fp16 {swing(load * 0.05, 0.5, 30 + index, moving)}",
            ]
        )
    return node(cards, processes, driver="550.54.15", cuda="12.4")


def rtx3090_node(gpus: int = 4, processes: Sequence[Process] = (), moving: bool = False) -> str:
    """A workstation: consumer boards with fans, without ECC, NVLink, GPM, MIG or a serial number."""
    cards = []
    for index in range(gpus):
        cards.append(
            [
                "name NVIDIA GeForce RTX 3090",
                f"uuid GPU-3090aaaa-0000-4000-8000-0000000000{index:02x}",
                "serial none",
                f"bus 00000000:{0x01 + 0x20 * index:02X}:00.0",
                "brand geforce",
                "memory_total 24GiB",
                f"memory_used {4000 + 500 * index}MiB",
                "memory_reserved 308MiB",
                f"utilisation {swing(40 + index, 20, 25, moving)}",
                f"memory_utilisation {swing(20 + index, 10, 25, moving)}",
                "encoder 7",
                "decoder 3",
                f"temperature {swing(61 + index, 6, 90, moving)}",
                f"power {swing(210.25 + index, 40, 25, moving)}",
                f"energy 5000 grows {210 + index}",
                "clock_graphics 1695",
                "clock_sm 1695",
                "clock_memory 9501",
                f"fan {45 + index}",
                "fans 2",
                "pstate 2",
                "throttle software_power_cap hardware_thermal",
                "pcie_width 8",
                "pcie_sent_rate 1500",
                "pcie_received_rate 2500",
            ]
        )
    return node(cards, processes, driver="535.183.01", cuda="12.2")


def a100_mig_node(processes: Sequence[Process] = ()) -> str:
    """Two cards: the first cut into 3g.20gb, 2g.10gb and 1g.5gb, the second whole."""
    fact = [
        "name NVIDIA A100-SXM4-40GB",
        "capability 8.0",
        "memory_total 40GiB",
        "memory_reserved 640MiB",
        "temperature 41",
        "power 88.125",
        "power_limit 400",
        "fan none",
        "fans 0",
        "pstate 0",
        "ecc on",
        "ecc_corrected_volatile 0",
        "ecc_uncorrected_volatile 0",
        "ecc_corrected_aggregate 0",
        "ecc_uncorrected_aggregate 0",
        "nvlink_links 12",
        "nvlink_version 3",
        "nvlink_sent 1GB",
        "nvlink_received 1GB",
    ]
    cut = [
        "uuid GPU-a1000000-0000-4000-8000-000000000000",
        "memory_used 7GiB",
        "mig 3g.20gb gi 1 ci 0 uuid MIG-a1000000-0000-5000-8000-000000000001 total 19968MiB used 4GiB",
        "mig 2g.10gb gi 3 ci 0 uuid MIG-a1000000-0000-5000-8000-000000000002 total 9856MiB used 2GiB",
        "mig 1g.5gb gi 9 ci 0 uuid MIG-a1000000-0000-5000-8000-000000000003 total 4864MiB used 1GiB",
    ]
    whole = ["uuid GPU-a1000000-0000-4000-8000-000000000001", "memory_used 3GiB", "utilisation 55", "mig_mode off"]
    return node([fact + cut, fact + whole], processes, driver="535.183.01", cuda="12.2")
