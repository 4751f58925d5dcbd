"""Small fleets for the tests of the API: real ones, fed with lines as probes send them."""

from typing import Any

import msgspec

from gpulse.fleet.fleet import Fleet
from gpulse.fleet.places import Place

GIB = 2**30
HOSTILE = "<img src=x onerror=alert(1)>\"'&\u202e\n\x1b[31m"


def card(uuid: str | None, index: int, **more: Any) -> dict[str, Any]:
    values = {
        "index": index,
        "uuid": uuid,
        "vendor": "nvidia",
        "name": "NVIDIA H100 80GB HBM3",
        "memory_total_bytes": 80 * GIB,
        "memory_used_bytes": 0,
        "utilization_ratio": 0.0,
        "temperature_celsius": 35,
        "power_watts": 70.5,
        "power_limit_watts": 700.0,
    }
    return values | more


def process(pid: int, user: str, uuid: str, command: str, gigabytes: int = 40) -> dict[str, Any]:
    use = {"uuid": uuid, "kinds": ["compute"], "memory_bytes": gigabytes * GIB, "sm_ratio": 0.5}
    return {
        "pid": pid,
        "user": user,
        "uid": 1000,
        "name": command.split(maxsplit=1)[0],
        "command": command,
        "gpus": [use],
    }


def snapshot(
    node: str, gpus: list[dict[str, Any]], processes: list[dict[str, Any]] | None = None, **more: Any
) -> bytes:
    values = {
        "schema": 1,
        "node": node,
        "time": 1000.0,
        "seq": 1,
        "boot_id": "b",
        "probe": {"version": "0.1.0", "python": "3.11", "interval_seconds": 1.0, "gpu_source": "nvml"},
        "host": {"hostname": node, "cpu_threads": 64, "memory_total_bytes": 512 * GIB, "memory_used_bytes": 9 * GIB},
        "gpus": gpus,
        "processes": processes or [],
        "reports": [],
    }
    return msgspec.json.encode(values | more)


def add(fleet: Fleet, name: str, gpus: int = 2, **place: Any) -> None:
    """A node whose GPUs are free, but for the first, which alice works on."""
    fleet.place(Place(name=name, address=f"ssh {name}", **place))
    cards = [card(f"GPU-{name}-{index}", index) for index in range(gpus)]
    processes = []
    if cards:
        cards[0] |= {"memory_used_bytes": 40 * GIB, "utilization_ratio": 0.9, "temperature_celsius": 70}
        processes = [process(11, "alice", cards[0]["uuid"], "python train.py")]
    fleet.line(name, snapshot(name, cards, processes))


def small() -> Fleet:
    """gpu1, gpu2 and gpu10 with two cards each, and gpu3, which cannot be reached."""
    fleet = Fleet()
    for name in ("gpu1", "gpu2", "gpu10"):
        add(fleet, name, group="lab" if name != "gpu10" else "shared", rack="r1")
    fleet.place(Place(name="gpu3"))
    fleet.down("gpu3", "connection refused")
    fleet.tick()
    return fleet
