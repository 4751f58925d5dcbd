"""Whether a node's disks are nearly full: nobody's job writes its results then."""

from gpulse.fleet.model import Disk
from gpulse.fleet.node import Node


def fullest(disks: list[Disk]) -> float:
    """The share that is used of the disk with the least room left, 0 to 1; as df tells it."""
    shares = [share for disk in disks if (share := _used(disk)) is not None]
    return max(shares, default=0.0)


def is_full(node: Node, ratio: float) -> bool:
    host = node.current_host() if node.mentions(b'"disks"') else node.snapshot and node.snapshot.host
    return bool(host and host.disks and fullest(host.disks) >= ratio)


def _used(disk: Disk) -> float | None:
    used, available = disk.used_bytes, disk.available_bytes
    # What is kept for root is neither used nor there for people.
    return None if used is None or available is None or used + available <= 0 else used / (used + available)
