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
        self.made: bytes | None = None

    def take(self, gpus: Sequence[GpuView]) -> bool:
        """False where somebody else was faster."""
        # What is found and reserved is reserved for who asks already.
        wanted = [gpu for gpu in gpus if gpu.reservation is None]
        if not wanted:
            return True
        places = [{"node": gpu.node, "index": gpu_index(gpu)} for gpu in wanted]
        try:
            self.made = self._hub.send(
                "POST", "/reservations", {"gpus": places, "for": self._length, "hold": True, "comment": "gpulse free"}
            )
        except HubRefused as refusal:
            if refusal.code != "conflict":
                raise
            return False
        return True

    def told(self) -> str:
        if self.made is None:
            return "they are reserved for you already"
        one = self._hub.decode(self.made, Reservation)
        return f"held until {booked.moment(one.last)}; gpulse cancel {one.id} lets go of them"
