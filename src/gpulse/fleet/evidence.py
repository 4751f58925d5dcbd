"""Which signs of a GPU's use are known: its memory, its utilization or activity, its processes. Pure."""

from gpulse.fleet.model import Gpu
from gpulse.fleet.node import Node

_MEMORY = "memory_used_bytes"
_PROCESSES = "processes"
_WORK = ("utilization_ratio", "sm_active_ratio")
# Of the three signs so many must be known to call a GPU busy, idle or free.
ENOUGH = 2


def has_failed(gpu: Gpu) -> bool:
    """Whether its memory or its processes could not be read this time, though the card has them."""
    failed = gpu.failed_fields
    return failed is not None and (_MEMORY in failed or _PROCESSES in failed)


def work_has_failed(gpu: Gpu) -> bool:
    """Whether its utilization or its activity could not be read this time; one of the two suffices."""
    failed = gpu.failed_fields
    return failed is not None and any(field in failed for field in _WORK)


def knows_processes(node: Node, gpu: Gpu) -> bool:
    """Whether the node's list of processes tells who is on this GPU."""
    return (
        node.processes_known
        and gpu.processes_listed is not False
        and (gpu.failed_fields is None or _PROCESSES not in gpu.failed_fields)
    )
