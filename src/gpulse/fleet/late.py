"""Lines of a time when the hub was away: read and checked, and never mixed with what is so now."""

import msgspec

from gpulse.errors import BadLine
from gpulse.fleet.model import Snapshot
from gpulse.fleet.updates import UPDATE, Arrival
from gpulse.fleet.weight import check_weight
from gpulse_probe.schema import SCHEMA

_decode_snapshot = msgspec.json.Decoder(Snapshot).decode
_decode_arrival = msgspec.json.Decoder(Arrival).decode


class Late:
    """One node's late lines, in their order: a full Snapshot, then updates of it."""

    def __init__(self, node: str):
        self._node = node
        # Of the last whole one: those that come after a pause build on it, too.
        self._seq: int | None = None
        self.told()

    def told(self) -> None:
        """What came so far has been told of; what comes next is counted anew."""
        self.lines = 0
        self.first, self.last = float("inf"), float("-inf")

    def take(self, data: bytes) -> None:
        """Count a line in; BadLine where it is none of this node's, or an update of a Snapshot that never came."""
        check_weight(data)
        try:
            time = self._update(data) if data.startswith(UPDATE) else self._whole(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise BadLine(str(error)) from None
        self.lines += 1
        self.first = min(self.first, time)
        self.last = max(self.last, time)

    def _update(self, data: bytes) -> float:
        update = _decode_arrival(data)
        if update.update != self._seq:
            raise BadLine("a late update of another snapshot than the last late one")
        return update.time

    def _whole(self, data: bytes) -> float:
        snapshot = _decode_snapshot(data)
        if snapshot.node != self._node or snapshot.seq is None or snapshot.time is None:
            raise BadLine("a late snapshot without seq or time, or of another node")
        if (snapshot.schema or 0) > SCHEMA:
            raise BadLine(f"a late snapshot of schema {snapshot.schema}, this hub knows {SCHEMA}")
        self._seq = snapshot.seq
        return snapshot.time
