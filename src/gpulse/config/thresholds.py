"""[thresholds]: the figures by which the fleet calls a GPU busy, idle or unhealthy and a node stale."""

from typing import Annotated

import msgspec
from msgspec import Meta

from gpulse.config.kinds import Bytes, Ratio, Seconds


class Thresholds(msgspec.Struct, frozen=True):
    """When is a GPU busy, idle or unhealthy, when a node stale, a card hot, a disk full."""

    busy_utilization_ratio: Ratio = 0.05
    busy_hold_seconds: Seconds = 30.0
    held_memory_bytes: Bytes = 268435456
    stale_intervals: Annotated[int, Meta(ge=1, le=1000, description="missed intervals, 1 to 1000")] = 3
    xid_hold_seconds: Seconds = 3600.0
    hot_margin_celsius: Annotated[int, Meta(ge=0, le=50, description="degrees below the card's limit, 0 to 50")] = 5
    full_disk_ratio: Ratio = 0.95
