"""Live frames: the hot figures of all GPUs as bytes, encoded once a tick for all who watch.

A frame is: 4 bytes "GPLS", 1 byte version, 1 byte kind (0 full, 1 delta), 2 bytes zero, the length of the head in
4 bytes, the head as JSON; in a full frame the layout, JSON compressed with zlib, head.layout_bytes long; then the
planes, compressed together with zlib. A plane has one number for each GPU, in the order of the layout: state (u8),
utilisation (u8), memory used (u8), temperature (u8), power (u16), person (u16), then for each node its state (u8).
Little-endian. In a delta each byte is the difference to the frame before, modulo 256. Shares are half percents (200
is 100 %); 255 is unknown, for u16 65535. A state of 8 is a GPU that is not counted: a card
split into MIG instances, which are counted instead, or one of a machine that is listed under another name already.

The layout has models (short names) and nodes; a node has name, display_name, group, rack and gpus, each of which is
[id, index, number of its model or null, memory in bytes, power limit in watts, UUID of the card it is a part of].
The head has generation, time, summary, reservations (a number that grows when they change) and, in a full frame, people
(names by number), in a delta base (the generation it builds on) and new_people.

For those who see no names of others there is a second kind, in which everybody is somebody, number 1.
"""

import struct
import zlib
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpulse.fleet.fleet import Fleet
from gpulse.fleet.node import Node
from gpulse.fleet.people import NOBODY
from gpulse.fleet.planes import WHOLE, as_bytes, as_words
from gpulse.fleet.sight import SOMEBODY

MAGIC = b"GPLS"
VERSION = 2
FULL, DELTA = 0, 1
_HEAD = struct.Struct("<4sBBHL")
_encode = msgspec.json.Encoder().encode
# More on one node are not named.
_MOST_MODELS = 64


class Frames:
    """Makes the frames of one fleet; call step() once after each tick."""

    def __init__(self, fleet: Fleet, nameless: bool = False):
        self._fleet = fleet
        self._nameless = nameless
        # By GPU, the number of the person, whatever is told of it.
        self._person: NDArray[np.uint16] = np.zeros(0, np.uint16)
        self._person_numbering = 0
        self._layout = -1
        self._order: NDArray[np.int64] = np.zeros(0, np.int64)
        self._node_order: NDArray[np.int64] = np.zeros(0, np.int64)
        self._planes: NDArray[np.uint8] = np.zeros(0, np.uint8)
        self._layout_bytes = b""
        self._described = b""
        self._people: list[str] = []
        self._people_told = 1
        self._numbering = 0
        self._generation = -1
        self._full: bytes | None = None
        self._delta: bytes | None = None

    def step(self, wall_time: float) -> None:
        """Take the figures of the tick that was. Frames are encoded when first asked for."""
        fleet = self._fleet
        base, before = self._generation, self._planes
        new_layout = fleet.layout != self._layout
        if new_layout:
            self._arrange()
            self._describe_nodes()
        self._planes = self._pack()
        self._generation = fleet.generation
        self._full = self._delta = None
        self._head = {
            "generation": fleet.generation,
            "time": round(wall_time, 3),
            "summary": fleet.summary(),
            "reservations": fleet.reservations,
        }
        numbering = 0 if self._nameless else fleet.people_names.numbering
        self._difference = None if new_layout or numbering != self._numbering else self._planes - before
        self._numbering = numbering
        self._base = base
        # As of this step, as the planes are: names that come before the next one belong to that.
        self._people = ["", SOMEBODY] if self._nameless else list(fleet.people_names.names)
        self._new_people = self._people[self._people_told :]
        self._people_told = len(self._people)

    def full(self) -> bytes:
        """A frame that stands for itself."""
        if self._full is None:
            if not self._layout_bytes:
                self._layout_bytes = zlib.compress(self._described, 1)
            head = {**self._head, "people": self._people, "layout_bytes": len(self._layout_bytes)}
            self._full = _frame(FULL, head, self._layout_bytes, self._planes)
        return self._full

    def delta(self) -> bytes | None:
        """A frame for those who have the one before; None where there is none, as the layout has changed."""
        if self._delta is None and self._difference is not None:
            head = {**self._head, "base": self._base, "new_people": self._new_people}
            self._delta = _frame(DELTA, head, b"", self._difference)
        return self._delta

    def held_by(self, user: str) -> list[int]:
        """The places of the GPUs that are this login's, as of the last step."""
        people = self._fleet.people_names
        # Between a tick and its step a number may stand for another already.
        number = people.number_of(user) if people.numbering == self._person_numbering else NOBODY
        return [] if number == NOBODY else np.flatnonzero(self._person == number).tolist()

    def _arrange(self) -> None:
        fleet = self._fleet
        order: list[int] = []
        node_order: list[int] = []
        for name in fleet.names():
            node = fleet.known(name)
            node_order.append(node.slot)
            order.extend(range(node.start, node.start + node.count))
        self._order = np.array(order, np.int64)
        self._node_order = np.array(node_order, np.int64)
        self._layout = fleet.layout
        self._layout_bytes = b""

    def _describe_nodes(self) -> None:
        """The layout as JSON. Each node keeps its piece until it changes: thousands of nodes come one by one."""
        fleet = self._fleet
        pieces = []
        for name in fleet.names():
            node = fleet.known(name)
            if node.described is None:
                node.described = self._describe_node(node)
            pieces.append(node.described)
        fleet.models.keep(set().union(*(fleet.known(name).models for name in fleet.names())))
        self._described = b'{"models":%b,"nodes":[%b]}' % (_encode(fleet.models.names), b",".join(pieces))

    def _describe_node(self, node: Node) -> bytes:
        place = node.place
        models = self._fleet.models
        numbers: dict[str, int] = {}
        gpus = []
        for identity, gpu in zip(node.ids, node.gpus, strict=True):
            model = models.short(gpu.name)
            if model and model not in numbers and len(numbers) < _MOST_MODELS:
                numbers[model] = models.number(model)
            number = numbers.get(model) if model else None
            gpus.append((identity, gpu.index, number, gpu.memory_total_bytes, gpu.power_limit_watts, gpu.parent_uuid))
        node.models = tuple(numbers)
        display_name = place.display_name or place.name
        described = {"name": place.name, "display_name": display_name, "group": place.group, "rack": place.rack}
        return _encode({**described, "gpus": gpus})

    def _pack(self) -> NDArray[np.uint8]:
        gpus = self._fleet.gpu_columns
        order = self._order
        with np.errstate(divide="ignore", invalid="ignore"):
            # A node may say that a card has no memory at all.
            memory = gpus.hot["memory_used_bytes"][order] / gpus.memory_total[order]
        self._person = gpus.person[order]
        self._person_numbering = self._fleet.people_names.numbering
        told = np.minimum(self._person, 1) if self._nameless else self._person
        planes = [
            gpus.state[order],
            as_bytes(gpus.hot["utilization_ratio"][order] * WHOLE),
            as_bytes(memory * WHOLE),
            as_bytes(gpus.hot["temperature_celsius"][order]),
            as_words(gpus.hot["power_watts"][order]).view(np.uint8),
            told.astype("<u2").view(np.uint8),
            self._fleet.node_columns.state[self._node_order],
        ]
        return np.concatenate(planes)


def _frame(kind: int, head: dict[str, Any], layout: bytes, planes: NDArray[np.uint8]) -> bytes:
    text = _encode(head)
    return _HEAD.pack(MAGIC, VERSION, kind, 0, len(text)) + text + layout + zlib.compress(planes.tobytes(), 1)
