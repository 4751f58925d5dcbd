"""Simulated GPUs: what each model is like, and how a card warms, draws power and counts under work."""

import math
from random import Random
from typing import Any, NamedTuple

Record = dict[str, Any]

MIB = 1024**2
# Seconds in which power and temperature cover most of the way to where the work drives them.
_POWER_LAG, _HEAT_LAG = 2.5, 45.0
_ROOM_CELSIUS = 26.0
# A card that has slowed itself down goes on doing so until it is this much cooler.
_RELIEF_CELSIUS = 6


class Model(NamedTuple):
    """A kind of card; clocks in MHz, memory in MiB."""

    name: str
    capability: str
    memory: int
    reserved: int
    idle_watts: float
    limit_watts: float
    clock: int
    idle_clock: int
    memory_clock: int
    video_clock: int
    slowdown_celsius: int
    # How much warmer than the room a sound card is at full power.
    heat_celsius: float
    pcie: int
    nvlinks: int = 0
    hbm: bool = False
    ecc: bool = True
    fans: bool = False
    gpm: bool = False


H100 = Model(
    "NVIDIA H100 80GB HBM3",
    "9.0",
    81559,
    546,
    72,
    700,
    1980,
    345,
    2619,
    1545,
    89,
    42,
    5,
    nvlinks=18,
    hbm=True,
    gpm=True,
)
A100_80 = Model(
    "NVIDIA A100-SXM4-80GB", "8.0", 81920, 667, 63, 400, 1410, 210, 1593, 1275, 92, 40, 4, nvlinks=12, hbm=True
)
A100_40 = Model(
    "NVIDIA A100-SXM4-40GB", "8.0", 40960, 640, 52, 400, 1410, 210, 1215, 1275, 92, 38, 4, nvlinks=12, hbm=True
)
A100_PCIE = Model("NVIDIA A100-PCIE-40GB", "8.0", 40960, 640, 34, 250, 1410, 210, 1215, 1275, 92, 44, 4, hbm=True)
L40S = Model("NVIDIA L40S", "8.9", 46068, 600, 33, 350, 2520, 210, 9001, 1965, 94, 44, 4)
RTX4090 = Model(
    "NVIDIA GeForce RTX 4090", "8.9", 24564, 346, 22, 450, 2520, 210, 10501, 1950, 90, 43, 4, ecc=False, fans=True
)
RTX3090 = Model(
    "NVIDIA GeForce RTX 3090", "8.6", 24576, 308, 21, 350, 1860, 210, 9751, 1950, 93, 46, 4, ecc=False, fans=True
)


class Work(NamedTuple):
    """What a card is asked to do: utilisation, how hard each busy moment is, memory, and bytes a second."""

    utilization: float = 0.0
    intensity: float = 0.0
    memory_bytes: int = 0
    pcie: float = 0.0
    nvlink: float = 0.0


class Card:
    """One card; `cooling` above 1 is a card that gets too little air."""

    def __init__(self, model: Model, index: int, identity: str, random: Random, driver: tuple[str, str]):
        self.model = model
        self.random = random
        self.cooling = random.uniform(0.92, 1.08)
        self.uuid = f"GPU-{identity}-{random.randrange(1 << 16):04x}-4{random.randrange(1 << 12):03x}-9a07-{index:012x}"
        self.facts: Record = {
            "driver_version": driver[0],
            "cuda_version": driver[1],
            "index": index,
            "vendor": "nvidia",
            "name": model.name,
            "uuid": self.uuid,
            "pci_bus_id": f"00000000:{0x19 + 0x11 * index:02X}:00.0",
            "minor_number": index,
            "compute_capability": model.capability,
            "temperature_slowdown_celsius": model.slowdown_celsius,
            "temperature_shutdown_celsius": model.slowdown_celsius + 3,
            "power_limit_watts": float(model.limit_watts),
            "power_limit_default_watts": float(model.limit_watts),
            "power_limit_max_watts": float(model.limit_watts),
            "clock_graphics_max_hertz": model.clock * 1_000_000,
            "clock_sm_max_hertz": model.clock * 1_000_000,
            "clock_memory_max_hertz": model.memory_clock * 1_000_000,
            "clock_video_max_hertz": model.video_clock * 1_000_000,
            "pcie_generation_max": model.pcie,
            "pcie_width_max": 16,
            "memory_total_bytes": model.memory * MIB,
            "persistence": True,
            "compute_mode": "default",
        }
        # Counters and states that stay as they are unless something breaks.
        self.lasting: Record = {
            "memory_reserved_bytes": model.reserved * MIB,
            "pcie_replays_total": 0,
            "pcie_generation": model.pcie,
            "pcie_width": 16,
        }
        self.xid_events: list[Record] = []
        # The driver answers with an error when asked for its utilization.
        self.unreadable = False
        if model.ecc:
            self._add_ecc()
        if model.nvlinks:
            self.facts["nvlink_links"] = model.nvlinks
            self.lasting |= {"nvlink_links_active": model.nvlinks, "nvlink_errors_total": 0}
        self._watts = float(model.idle_watts)
        self._celsius = _ROOM_CELSIUS + 8
        self._slowed = False
        self.restart()

    def _add_ecc(self) -> None:
        self.facts |= {"serial": f"16{self.random.randrange(10**11):011d}", "ecc_enabled": True, "mig_enabled": False}
        self.lasting |= {
            "ecc_corrected_volatile_total": 0,
            "ecc_uncorrected_volatile_total": 0,
            "ecc_corrected_aggregate_total": self.random.choice((0, 0, 0, 1, 3)),
            "ecc_uncorrected_aggregate_total": 0,
            "remapped_rows_corrected_total": 0,
            "remapped_rows_uncorrected_total": 0,
            "remapped_rows_pending": False,
            "remapped_rows_failed": False,
        }

    def restart(self) -> None:
        """The driver was loaded anew: its counters begin at nothing."""
        self._joules = 0.0
        self._pcie = [0.0, 0.0]
        self._nvlink = [0.0, 0.0]
        self.xid_events = []

    def settle(self, work: Work, seconds: float) -> None:
        """As if this work had gone on for so long."""
        for _ in range(8):
            self.step(work, seconds / 8)

    def step(self, work: Work, seconds: float) -> Record:
        """Go on for some seconds with this work: the values a probe reads then."""
        model, noise = self.model, self.random.gauss
        utilization = round(min(1.0, max(0.0, work.utilization + noise(0, 0.015))), 2) if work.utilization > 0 else 0.0
        watts, celsius = self._drive(utilization, work.intensity, seconds)
        self._joules += watts * seconds
        values: Record = {
            **self.lasting,
            "memory_used_bytes": work.memory_bytes + 3 * MIB,
            "temperature_celsius": round(celsius + noise(0, 0.25)),
            "power_watts": round(watts, 3),
            "energy_joules_total": round(self._joules, 3),
            **self._clocks(utilization, watts),
        }
        if not self.facts.get("mig_enabled"):
            # The driver tells no utilisation of a card that is split.
            values["utilization_ratio"] = utilization
            values["memory_utilization_ratio"] = round(utilization * (0.35 + 0.3 * work.intensity), 2)
            values["encoder_utilization_ratio"] = values["decoder_utilization_ratio"] = 0.0
        if model.hbm:
            values["memory_temperature_celsius"] = round(celsius + 7 + noise(0, 0.25))
        if model.fans:
            values["fan_ratio"] = round(min(1.0, max(0.3, 0.3 + (celsius - 45) / 55)), 2)
        self._count(values, work, seconds)
        if model.gpm:
            self._activity(values, utilization, work.intensity)
        if self.unreadable:
            _fail(values)
        return values

    def _drive(self, utilization: float, intensity: float, seconds: float) -> tuple[float, float]:
        """Power and temperature follow the work, each at its pace."""
        model = self.model
        wanted = model.idle_watts + (model.limit_watts - model.idle_watts) * utilization * intensity
        wanted = min(model.limit_watts, wanted) * (0.62 if self._slowed else 1.0)
        self._watts += (wanted - self._watts) * (1 - math.exp(-seconds / _POWER_LAG))
        heat = self.cooling * model.heat_celsius * self._watts / model.limit_watts
        self._celsius += (_ROOM_CELSIUS + 4 + heat - self._celsius) * (1 - math.exp(-seconds / _HEAT_LAG))
        if self._celsius >= model.slowdown_celsius:
            self._slowed = True
        elif self._celsius < model.slowdown_celsius - _RELIEF_CELSIUS:
            self._slowed = False
        return max(1.0, self._watts + self.random.gauss(0, 0.004 * self._watts)), self._celsius

    def _clocks(self, utilization: float, watts: float) -> Record:
        model = self.model
        if utilization == 0:
            clock, memory_clock, reasons, state = model.idle_clock, model.memory_clock, ["gpu_idle"], "P0"
            if model.fans:
                memory_clock, state = 405, "P8"
        else:
            capped = watts > 0.97 * model.limit_watts
            share = 0.55 if self._slowed else self.random.choice((0.87, 0.89, 0.9)) if capped else 1.0
            clock, memory_clock, state = round(model.clock * share / 15) * 15, model.memory_clock, "P0"
            if self._slowed:
                reasons = ["sw_thermal_slowdown", "hw_thermal_slowdown"]
            else:
                reasons = ["sw_power_cap"] if capped else []
            if model.fans:
                state = "P2"
        return {
            "clock_graphics_hertz": clock * 1_000_000,
            "clock_sm_hertz": clock * 1_000_000,
            "clock_memory_hertz": memory_clock * 1_000_000,
            "clock_video_hertz": round(model.video_clock * clock / model.clock / 15) * 15_000_000,
            "performance_state": state,
            "throttle_reasons": reasons,
        }

    def _count(self, values: Record, work: Work, seconds: float) -> None:
        if self.model.fans:
            # GeForce cards count no bytes; their driver tells a rate.
            values["pcie_sent_bytes_per_second"] = (
                round(work.pcie * 0.3 * self.random.uniform(0.7, 1.3) / 1000) * 1000.0
            )
            values["pcie_received_bytes_per_second"] = round(work.pcie * self.random.uniform(0.7, 1.3) / 1000) * 1000.0
        else:
            _grow(self._pcie, work.pcie, 0.3, seconds, self.random)
            values["pcie_sent_bytes_total"], values["pcie_received_bytes_total"] = map(int, self._pcie)
        if self.model.nvlinks:
            _grow(self._nvlink, work.nvlink, 1.0, seconds, self.random)
            values["nvlink_sent_bytes_total"], values["nvlink_received_bytes_total"] = map(int, self._nvlink)

    def _activity(self, values: Record, utilization: float, intensity: float) -> None:
        vary = self.random.uniform
        for field, share in (
            ("sm_active_ratio", 0.92),
            ("sm_occupancy_ratio", 0.42),
            ("tensor_active_ratio", 0.55 * intensity),
            ("dram_active_ratio", 0.48),
            ("fp64_active_ratio", 0.0),
            ("fp32_active_ratio", 0.11),
            ("fp16_active_ratio", 0.06),
        ):
            values[field] = round(min(1.0, utilization * share * vary(0.95, 1.05)), 4)


class Instance:
    """A MIG instance of a card: memory of its own, no utilisation the driver could tell."""

    def __init__(self, card: Card, mig_index: int, profile: str, memory: int):
        identity = card.uuid.split("-")[1]
        shared = ("index", "vendor", "driver_version", "cuda_version", "compute_capability", "pci_bus_id")
        self.uuid = f"MIG-{identity}-0000-5000-8000-{card.facts['index'] * 16 + mig_index:012x}"
        self.facts: Record = {
            "mig_index": mig_index,
            **{name: card.facts[name] for name in shared},
            "parent_uuid": card.uuid,
            "name": f"{card.model.name} MIG {profile}",
            "uuid": self.uuid,
            "gpu_instance_id": mig_index + 1,
            "compute_instance_id": 0,
            "mig_profile": profile,
            "memory_total_bytes": memory * MIB,
        }

    def step(self, memory_bytes: int) -> Record:
        return {"memory_used_bytes": memory_bytes + 14 * MIB, "memory_reserved_bytes": 0}


def _fail(values: Record) -> None:
    values["failed_fields"] = [
        name for name in ("utilization_ratio", "sm_active_ratio") if values.pop(name, None) is not None
    ]
    values["failed_reason"] = "Unknown Error from nvmlDeviceGetUtilizationRates"


def _grow(pair: list[float], rate: float, sent_share: float, seconds: float, random: Random) -> None:
    pair[0] += rate * sent_share * seconds * random.uniform(0.9, 1.1)
    pair[1] += rate * seconds * random.uniform(0.9, 1.1)
