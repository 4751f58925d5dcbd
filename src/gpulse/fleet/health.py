"""What is wrong with a GPU: the flags people see, and which of them make it unhealthy. Pure."""

from collections.abc import Iterable

from gpulse.fleet.model import Gpu, XidEvent
from gpulse.fleet.thresholds import Thresholds

# XID numbers that tell of a mistake in a program, or of something the card has dealt with.
PROGRAM_XIDS = frozenset({8, 13, 31, 32, 43, 45, 63, 68, 69, 94})
SLOWED_DOWN = frozenset({"hw_slowdown", "hw_thermal_slowdown", "sw_thermal_slowdown", "hw_power_brake_slowdown"})
# The flags with which nobody should be given the card.
UNHEALTHY = frozenset({"fault", "rows_failed", "ecc_uncorrected", "xid", "fabric_failed"})
# Faults of the NVSwitch fabric with which no job over several GPUs works; with the others it is slower for a while.
_BROKEN_FABRIC = frozenset({"route_unhealthy", "incorrect_configuration"})
# While a card joins its fabric CUDA does not start (cudaErrorSystemNotReady): for good where nobody runs the fabric.
_JOINING = "in_progress"
_FABRIC_IS_WELL = frozenset({"", "success", "n/a"})
# All flags, the gravest first; `vanished` is told of a card whose process is gone and still holds memory.
FLAGS = (
    "fault",
    "rows_failed",
    "ecc_uncorrected",
    "xid",
    "fabric_failed",
    "hot",
    "throttled",
    "vanished",
    "rows_pending",
    "pages_pending",
    "nvlink_down",
    "fabric",
    "prohibited",
    "xid_program",
)
# A change of one of these fields may change a flag that makes a card unhealthy.
HEALTH_FIELDS = (
    "fault",
    "remapped_rows_failed",
    "ecc_uncorrected_volatile_total",
    "fabric_state",
    "fabric_status",
    "fabric_faults",
)


def flags(gpu: Gpu, thresholds: Thresholds, now: float) -> list[str]:
    """Everything about the card that somebody may want to look at; `now` is the node's clock."""
    found = []
    if gpu.fault:
        found.append("fault")
    if gpu.remapped_rows_failed:
        found.append("rows_failed")
    if gpu.ecc_uncorrected_volatile_total:
        found.append("ecc_uncorrected")
    recent = _recent(gpu.xid_events or (), thresholds, now)
    if any(event.xid not in PROGRAM_XIDS for event in recent):
        found.append("xid")
    elif recent:
        found.append("xid_program")
    if _fabric_failed(gpu):
        found.append("fabric_failed")
    limit = gpu.temperature_slowdown_celsius
    if limit and (gpu.temperature_celsius or 0) >= limit - thresholds.hot_margin_celsius:
        found.append("hot")
    return found + lasting_flags(gpu)


def lasting_flags(gpu: Gpu) -> list[str]:
    """Those that depend on nothing but the record, and leave the card usable."""
    found = []
    if not SLOWED_DOWN.isdisjoint(gpu.throttle_reasons or ()):
        found.append("throttled")
    if gpu.remapped_rows_pending:
        found.append("rows_pending")
    if gpu.retired_pages_pending:
        found.append("pages_pending")
    if gpu.nvlink_links and gpu.nvlink_links_active is not None and gpu.nvlink_links_active < gpu.nvlink_links:
        found.append("nvlink_down")
    if gpu.fabric_faults or _fabric_failed(gpu):
        found.append("fabric")
    if gpu.compute_mode == "prohibited":
        found.append("prohibited")
    return found


def _fabric_failed(gpu: Gpu) -> bool:
    """Whether CUDA does not start on the card, or no job over several cards runs on it."""
    status = gpu.fabric_status
    if gpu.fabric_state == _JOINING:
        return True
    return (status is not None and status.strip().casefold() not in _FABRIC_IS_WELL) or not _BROKEN_FABRIC.isdisjoint(
        gpu.fabric_faults or ()
    )


def _recent(events: Iterable[XidEvent], thresholds: Thresholds, now: float) -> list[XidEvent]:
    return [event for event in events if event.time is not None and now - event.time < thresholds.xid_hold_seconds]
