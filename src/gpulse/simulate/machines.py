"""Simulated machines: what each kind of node is built of, and what its host does under load."""

import math
from random import Random
from typing import Any, NamedTuple

from gpulse.simulate.cards import A100_40, A100_80, A100_PCIE, H100, L40S, RTX3090, RTX4090, Model

Record = dict[str, Any]

GIB = 1024**3
TB = 10**12
# The probe looks at file systems that seldom: so do we.
_DISKS_SECONDS = 10.0


class Machine(NamedTuple):
    """A kind of node."""

    group: str
    card: Model
    cards: int
    cpu: str
    sockets: int
    cores: int
    memory_gib: int
    # Mount point, device, file system, kind, size in TB.
    disks: tuple[tuple[str, str, str, str, float], ...]
    # Name and speed in Gbit/s.
    network: tuple[str, int]
    infiniband: int = 0
    os: str = "Ubuntu 22.04.5 LTS"
    kernel: str = "5.15.0-130-generic"
    driver: tuple[str, str] = ("550.127.05", "12.4")
    desktop: bool = False


_SHARED = (
    ("/home", "nas1:/export/home", "nfs4", "network", 60.0),
    ("/data", "nas2:/export/data", "nfs4", "network", 480.0),
)
_SERVER = (("/", "/dev/nvme0n1p2", "ext4", "nvme", 0.94), *_SHARED, ("/scratch", "/dev/md0", "xfs", "nvme", 14.0))

H100_NODE = Machine(
    "h100", H100, 8, "Intel(R) Xeon(R) Platinum 8480+", 2, 112, 2048, _SERVER, ("ens3f0np0", 100), infiniband=8
)
A100_80_NODE = Machine(
    "a100", A100_80, 8, "AMD EPYC 7763 64-Core Processor", 2, 128, 1024, _SERVER, ("eno1", 25), infiniband=4
)
A100_40_NODE = Machine(
    "a100", A100_40, 8, "AMD EPYC 7742 64-Core Processor", 2, 128, 1024, _SERVER, ("eno1", 25), infiniband=2
)
A100_SMALL_NODE = Machine(
    "a100",
    A100_PCIE,
    4,
    "AMD EPYC 7543 32-Core Processor",
    2,
    64,
    512,
    _SERVER,
    ("eno1", 10),
    driver=("535.183.06", "12.2"),
)
L40S_NODE = Machine("l40s", L40S, 8, "Intel(R) Xeon(R) Gold 6448Y", 2, 64, 512, _SERVER, ("ens1f0", 25))
_WORKSTATION = (
    ("/", "/dev/nvme0n1p2", "ext4", "nvme", 1.9),
    _SHARED[0],
    ("/mnt/hdd", "/dev/sda1", "ext4", "hdd", 7.9),
)
RTX4090_NODE = Machine(
    "workstations",
    RTX4090,
    4,
    "AMD Ryzen Threadripper PRO 5975WX 32-Cores",
    1,
    32,
    256,
    _WORKSTATION,
    ("enp36s0", 10),
    os="Ubuntu 24.04.1 LTS",
    kernel="6.8.0-51-generic",
    driver=("560.35.03", "12.6"),
    desktop=True,
)
RTX3090_NODE = RTX4090_NODE._replace(
    card=RTX3090, cpu="AMD Ryzen Threadripper 3970X 32-Core Processor", memory_gib=128, network=("enp68s0", 1)
)

# How a cluster is made up, in this order; shares of all nodes.
MIX = (
    (H100_NODE, 0.25),
    (A100_80_NODE, 0.2),
    (A100_40_NODE, 0.15),
    (A100_SMALL_NODE, 0.1),
    (L40S_NODE, 0.1),
    (RTX4090_NODE, 0.12),
    (RTX3090_NODE, 0.08),
)


class Demand(NamedTuple):
    """What all processes of a node ask of its host: cores, of these niced, bytes of memory, bytes a second."""

    cores: float = 0.0
    nice_cores: float = 0.0
    memory_bytes: int = 0
    network: float = 0.0
    infiniband: float = 0.0


class Host:
    """The machine without its GPUs."""

    def __init__(self, machine: Machine, name: str, number: int, random: Random):
        self.machine = machine
        self._random = random
        self._total = int(machine.memory_gib * GIB * 0.983) // 4096 * 4096
        self._address = f"10.20.{number // 200}.{number % 200 + 10}"
        self.facts: Record = {
            "hostname": name,
            "os": machine.os,
            "kernel": machine.kernel,
            "architecture": "x86_64",
            "cpu_model": machine.cpu,
            "cpu_sockets": machine.sockets,
            "cpu_cores": machine.cores,
            "cpu_threads": machine.cores * 2,
            "memory_total_bytes": self._total,
            "swap_total_bytes": 8 * GIB,
        }
        self._fill = {disk[0]: random.uniform(0.3, 0.85) for disk in machine.disks}
        self._loads = [1.0, 1.0, 1.0]
        self._disks: list[Record] = []
        self.restart(random.uniform(3, 90) * 86400)

    def restart(self, uptime: float = 60.0) -> None:
        """The machine was booted so long ago; what it counts began then."""
        self.uptime = uptime
        self.boot_id = "-".join(f"{self._random.randrange(16**width):0{width}x}" for width in (8, 4, 4, 4, 12))
        threads = self.machine.cores * 2
        self._cpu = dict.fromkeys(("user", "nice", "system", "idle", "iowait", "irq"), 0.0)
        self._cpu["user"] = 0.15 * threads * uptime
        self._cpu["idle"] = 0.83 * threads * uptime
        self._cpu["system"] = 0.02 * threads * uptime
        self._network = [2e5 * uptime, 1e5 * uptime]
        self._ports = [[1e6 * uptime, 1e6 * uptime] for _ in range(self.machine.infiniband)]
        self._disks_left = 0.0

    def step(self, demand: Demand, seconds: float) -> Record:
        """Go on for some seconds: the values a probe reads then."""
        random = self._random
        self.uptime += seconds
        self._spend_cpu(demand, seconds)
        for place, window in enumerate((60.0, 300.0, 900.0)):
            wanted = demand.cores + 0.4 + random.gauss(0, 0.3)
            self._loads[place] += (max(0.0, wanted) - self._loads[place]) * (1 - math.exp(-seconds / window))
        used = (
            min(int(0.97 * self._total), 9 * GIB + demand.memory_bytes + random.randrange(200_000_000)) // 4096 * 4096
        )
        values: Record = {
            "uptime_seconds": round(self.uptime, 2),
            **{f"cpu_{name}_seconds_total": round(spent, 2) for name, spent in self._cpu.items()},
            "cpu_steal_seconds_total": 0.0,
            "load_1m": round(self._loads[0], 2),
            "load_5m": round(self._loads[1], 2),
            "load_15m": round(self._loads[2], 2),
            "memory_available_bytes": self._total - used,
            "memory_used_bytes": used,
            "memory_cached_bytes": int(0.3 * (self._total - used)) // 4096 * 4096,
            "swap_used_bytes": 0,
            "disks": self._look_at_disks(seconds),
            "networks": [self._interface(demand.network, seconds)],
        }
        if self._ports:
            values["infiniband"] = [
                self._port(place, pair, demand.infiniband / len(self._ports), seconds)
                for place, pair in enumerate(self._ports)
            ]
        return values

    def _spend_cpu(self, demand: Demand, seconds: float) -> None:
        threads = self.machine.cores * 2
        busy = min(threads * 0.98, demand.cores * self._random.uniform(0.93, 1.07) + 0.3)
        share = demand.nice_cores / demand.cores if demand.cores else 0.0
        parts = {
            "nice": 0.9 * busy * share,
            "user": 0.9 * busy * (1 - share),
            "system": 0.09 * busy,
            "irq": 0.01 * busy,
            "iowait": 0.02 * self._random.random(),
        }
        for name, cores in parts.items():
            self._cpu[name] += cores * seconds
        self._cpu["idle"] += max(0.0, threads - sum(parts.values())) * seconds

    def _look_at_disks(self, seconds: float) -> list[Record]:
        self._disks_left -= seconds
        if self._disks_left > 0:
            return self._disks
        self._disks_left = _DISKS_SECONDS
        self._disks = []
        for mount, device, filesystem, kind, size in self.machine.disks:
            self._fill[mount] = min(0.97, max(0.2, self._fill[mount] + self._random.gauss(0, 2e-5)))
            total = int(size * TB)
            used = int(total * self._fill[mount]) // 4096 * 4096
            self._disks.append(
                {
                    "mount": mount,
                    "device": device,
                    "filesystem": filesystem,
                    "kind": kind,
                    "total_bytes": total,
                    "used_bytes": used,
                    "available_bytes": int(0.95 * total) - used if used < 0.95 * total else 0,
                }
            )
        return self._disks

    def _interface(self, rate: float, seconds: float) -> Record:
        name, speed = self.machine.network
        self._network[0] += (rate + 2e4) * seconds * self._random.uniform(0.5, 1.5)
        self._network[1] += (0.2 * rate + 1e4) * seconds * self._random.uniform(0.5, 1.5)
        return {
            "interface": name,
            "addresses": [self._address],
            "up": True,
            "speed_bits_per_second": speed * 10**9,
            "received_bytes_total": int(self._network[0]),
            "sent_bytes_total": int(self._network[1]),
            "received_errors_total": 0,
            "sent_errors_total": 0,
        }

    def _port(self, place: int, pair: list[float], rate: float, seconds: float) -> Record:
        for way in (0, 1):
            pair[way] += rate * seconds * self._random.uniform(0.9, 1.1)
        return {
            "device": f"mlx5_{place}",
            "port": 1,
            "link": "InfiniBand",
            "state": "ACTIVE",
            "speed_bits_per_second": 400_000_000_000 if self.machine.card is H100 else 200_000_000_000,
            "errors_total": 0,
            "link_downed_total": 1,
            "received_bytes_total": int(pair[0]),
            "sent_bytes_total": int(pair[1]),
        }
