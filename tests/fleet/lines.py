"""Lines as probes write them, for tests of the fleet."""

import json
from typing import Any

GIB = 1 << 30


def gpu(index: int = 0, **fields: Any) -> dict[str, Any]:
    return {
        "index": index,
        "uuid": f"GPU-{index}",
        "name": "NVIDIA H100 80GB HBM3",
        "memory_total_bytes": 80 * GIB,
        "memory_used_bytes": 0,
        "utilization_ratio": 0.0,
        "temperature_celsius": 40,
        "power_watts": 100.0,
        **fields,
    }


def process(pid: int, uuid: str, user: str = "alice", memory: int = GIB, **fields: Any) -> dict[str, Any]:
    return {"pid": pid, "user": user, "gpus": [{"uuid": uuid, "kinds": ["compute"], "memory_bytes": memory}], **fields}


def snapshot(*gpus: dict[str, Any], processes: Any = (), seq: int = 0, time: float = 1000.0, **fields: Any) -> bytes:
    record = {
        "schema": 1,
        "node": "x",
        "time": time,
        "seq": seq,
        "probe": {"version": "0.1.0", "python": "3.11.0", "interval_seconds": 1.0, "gpu_source": "nvml"},
        "host": {"hostname": "x", "cpu_threads": 8},
        "gpus": list(gpus),
        "processes": list(processes),
        "reports": [],
    }
    return json.dumps({**record, **fields}).encode()


def update(base: int, seq: int, time: float, **parts: Any) -> bytes:
    return json.dumps({"update": base, "seq": seq, "time": time, **parts}, separators=(",", ":")).encode()
