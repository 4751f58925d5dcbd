"""Live frames as bytes: of the whole fleet, with the names of people or, for those who see none, without."""

import time

import msgspec

from gpulse.api.hub import Hub
from gpulse.fleet.frames import Frames


class OwnGpus(msgspec.Struct, kw_only=True, tag_field="type", tag="own"):
    """Which GPUs of a frame without names are those of who watches: a message for them alone."""

    person: str
    # Their places in the order of the layout.
    gpus: list[int]


class BinarySource:
    """Columnar frames."""

    def __init__(self, hub: Hub, nameless: bool = False):
        self._people = hub.fleet.people_names
        self._frames = Frames(hub.fleet, nameless)

    async def step(self) -> None:
        self._frames.step(time.time())

    def full(self) -> bytes:
        return self._frames.full()

    def delta(self) -> bytes | None:
        return self._frames.delta()

    def own(self, user: str) -> str:
        """OwnGpus of this login, as of the last step."""
        told = OwnGpus(person=self._people.called(user) or user, gpus=self._frames.held_by(user))
        return msgspec.json.encode(told).decode()
