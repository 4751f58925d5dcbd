"""Holds GPUs that were found free: a short reservation, so that nobody snaps them away before a program starts."""

from collections.abc import Sequence

from gpulse.cli import booked
from gpulse.cli.booked import Reservation
from gpulse.cli.client import Hub
from gpulse.cli.figures import gpu_index
from gpulse.errors import HubRefused
from gpulse.fleet.views import GpuView


class Hold:
    """`made` is the reservation as the hub told of it, once GPUs are held."""

    def __init__(self, hub: Hub, length: str):
        self._hub = hub
        self._length = length
        self._cut_short = False
        self.made: bytes | None = None

    def check(self) -> None:
        """HubRefused where it may not be, whichever GPUs it will be: before somebody waits for them all night."""
        try:
            self._send({"wish": {"n": 1}, "for": self._length, "dry_run": True})
        except HubRefused as refusal:
            if refusal.code not in ("conflict", "no_gpus"):
                raise

    def take(self, gpus: Sequence[GpuView]) -> bool:
        """False where somebody else was faster."""
        # What is found and reserved is reserved for who asks already.
        wanted = [gpu for gpu in gpus if gpu.reservation is None]
        if not wanted:
            return True
        places = [{"node": gpu.node, "index": gpu_index(gpu)} for gpu in wanted]
        try:
            self.made = self._send({"gpus": places, "for": self._length})
        except HubRefused as refusal:
            if refusal.code != "conflict":
                raise
            return self._until_own(places, refusal)
        return True

    def told(self) -> str:
        if self.made is None:
            return "they are reserved for you already"
        one = self._hub.decode(self.made, Reservation)
        why = ", when your own reservation begins" if self._cut_short else ""
        return f"held until {booked.moment(one.last)}{why}; gpulse cancel {one.id} lets go of them"

    def _until_own(self, places: list[dict[str, str]], refusal: HubRefused) -> bool:
        """Where only reservations of who asks are in the way, it is held until the first of them."""
        ahead = [self._hub.decode(raw, Reservation) for raw in refusal.conflicts]
        if not ahead or not all(one.mine for one in ahead):
            return False
        try:
            self.made = self._send({"gpus": places, "end": min(one.start for one in ahead)})
        except HubRefused as again:
            # It has begun this moment: the hub will say so when it is asked anew.
            if again.code not in ("conflict", "ends_before_start", "in_the_past"):
                raise
            return False
        self._cut_short = True
        return True

    def _send(self, wanted: dict[str, object]) -> bytes:
        return self._hub.send("POST", "/reservations", wanted | {"hold": True, "comment": "gpulse free"})
