"""A small site whose drivers don't say everything: readings fail, hang, are old, or are never given."""

from typing import Any

from tests.api.fleets import GIB, card, process, snapshot
from tests.system.agents import Site

# Each node sends once and stays up.
CALM = {"version": "0.1.0", "python": "3.11", "interval_seconds": 600.0, "gpu_source": "nvml"}
ERROR = "Unknown Error from nvmlDeviceGetUtilizationRates"
HANG = "waiting for the driver (nvmlDeviceGetPowerUsage), 12 s"
WAIT = "Waiting for the driver (nvmlDeviceGetPowerUsage, GPU 1), 12 s"
FREE, FAILED, HANGING, BUSY, UNSEEN = (f"GPU-{name}" for name in ("free", "failed", "hanging", "busy", "unseen"))
UNLISTED, SPLIT = "GPU-unlisted", "GPU-split"


def _cards() -> list[dict[str, Any]]:
    failed = card(FAILED, 0, power_watts=211.0, failed_fields=["utilization_ratio"], failed_reason=ERROR)
    del failed["utilization_ratio"]
    hanging = card(
        HANGING,
        1,
        failed_fields=["power_watts", "utilization_ratio", "processes"],
        failed_reason=HANG,
        age_seconds=12.0,
    )
    del hanging["power_watts"], hanging["utilization_ratio"]
    fabric = {"fabric_state": "completed", "fabric_status": "Success", "fabric_clique_id": 7}
    return [
        failed,
        hanging,
        card(FREE, 2, fabric_faults=["degraded_bandwidth"], **fabric),
        card(BUSY, 3, memory_used_bytes=40 * GIB, utilization_ratio=0.9, power_watts=600.0),
    ]


def gpu1(*reports: str, old: float = 0.0) -> bytes:
    """Four cards: one that fails, one that hangs, one free, one busy; values `old` seconds old."""
    told = [{"collector": "gpus", "message": report} for report in reports]
    processes = [process(7, "alice", BUSY, "python train.py")]
    return snapshot("gpu1", _cards(), processes, probe=CALM, reports=told, devices_age_seconds=old)


def _gpu2() -> bytes:
    """A driver that never lists processes, and a split card."""
    part = card("MIG-part", 1, parent_uuid=SPLIT, mig_index=0, mig_profile="3g.40gb")
    cards = [
        card(UNLISTED, 0, memory_used_bytes=20 * GIB, utilization_ratio=0.5, processes_listed=False),
        card(SPLIT, 1, mig_enabled=True),
        part,
    ]
    return snapshot("gpu2", cards, [], probe=CALM, boot_id="other")


class UnreadableSite(Site):
    """gpu1 and gpu2; oldname is another name of gpu1."""

    def __enter__(self) -> "UnreadableSite":
        self._token = self.token("gpu1")
        self.send(gpu1())
        self.until_up("gpu1")
        # The same machine under another name, and later.
        for node, body in {"gpu2": _gpu2(), "oldname": gpu1().replace(b'"node":"gpu1"', b'"node":"oldname"')}.items():
            self.tell(node, body)
            self.until_up(node)
        return self

    def send(self, body: bytes) -> None:
        """A snapshot of gpu1."""
        answer = self.post(self._token, body)
        assert answer.status_code == 200, answer.text
