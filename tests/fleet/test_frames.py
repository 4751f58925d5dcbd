"""Live frames: what a reader puts together from a full frame and deltas is what the fleet says."""

import json
import random
import struct
import zlib

import numpy as np
import pytest

from gpulse.fleet.fleet import Fleet
from gpulse.fleet.frames import DELTA, FULL, Frames
from gpulse.fleet.places import Place
from gpulse.fleet.views import GPU_STATES
from tests.fleet.lines import GIB, gpu, process, snapshot, update


class Reader:
    """What a browser does with frames."""

    def __init__(self):
        self.nodes = []
        self.people = []
        self.planes = None
        self.generation = None

    def take(self, frame):
        magic, version, kind, _zero, size = struct.unpack_from("<4sBBHL", frame)
        assert (magic, version) == (b"GPLS", 2)
        head = json.loads(frame[12 : 12 + size])
        body = frame[12 + size :]
        layout = head.get("layout_bytes", 0)
        planes = np.frombuffer(zlib.decompress(body[layout:]), np.uint8)
        if kind == FULL:
            described = json.loads(zlib.decompress(body[:layout]))
            self.models, self.nodes = described["models"], described["nodes"]
            self.people, self.planes = head["people"], planes
        else:
            assert kind == DELTA
            assert head["base"] == self.generation
            self.people += head["new_people"]
            self.planes = self.planes + planes
        self.generation = head["generation"]
        self.summary = head["summary"]
        return self

    def gpus(self):
        """(id, state, utilisation, memory, temperature, power, person) of each GPU."""
        ids = [one[0] for node in self.nodes for one in node["gpus"]]
        count = len(ids)
        state, util, memory, temperature = (self.planes[place * count : (place + 1) * count] for place in range(4))
        words = self.planes[4 * count : 8 * count].view("<u2")
        return [
            (
                ids[place],
                GPU_STATES[state[place]],
                None if util[place] == 255 else util[place] / 200,
                None if memory[place] == 255 else memory[place] / 200,
                None if temperature[place] == 255 else int(temperature[place]),
                None if words[place] == 65535 else int(words[place]),
                self.people[words[count + place]],
            )
            for place in range(count)
        ]

    def node_states(self):
        return list(self.planes[-len(self.nodes) :])


@pytest.fixture
def fleet():
    fleet = Fleet(wall=lambda: 1000.0)
    fleet.place(Place(name="n2", rack="r1"))
    fleet.place(Place(name="n10"))
    return fleet


def step(fleet, frames):
    fleet.tick()
    frames.step(1000.0)


def test_full_frame_has_layout_and_values(fleet):
    frames = Frames(fleet)
    fleet.line("n2", snapshot(gpu(0, uuid="A", utilization_ratio=0.5, memory_used_bytes=40 * GIB, power_watts=301.7)))
    fleet.line("n10", snapshot(gpu(0, uuid="B", utilization_ratio=None), processes=[process(1, "B", "bob")]))
    step(fleet, frames)
    reader = Reader().take(frames.full())
    assert [node["name"] for node in reader.nodes] == ["n2", "n10"]
    assert reader.nodes[0]["rack"] == "r1"
    assert reader.nodes[0]["gpus"] == [["A", 0, 0, 80 * GIB, None, None]]
    assert reader.models == ["H100 80G"]
    assert reader.gpus() == [("A", "busy", 0.5, 0.5, 40, 301, ""), ("B", "busy", None, 0.0, 40, 100, "bob")]
    assert reader.summary["states"]["busy"] == 2
    assert reader.node_states() == [1, 1]
    assert frames.delta() is None


def test_deltas_add_up_to_the_full_frame(fleet):
    frames = Frames(fleet)
    randomly = random.Random(7)
    for name in ("n2", "n10"):
        fleet.line(name, snapshot(*(gpu(place, uuid=f"{name}-{place}") for place in range(4))))
    step(fleet, frames)
    reader = Reader().take(frames.full())
    for seq in range(1, 30):
        values = {
            "utilization_ratio": [randomly.choice([None, 0.0, 0.31, 1.0]) for _ in range(4)],
            "power_watts": [randomly.uniform(0, 70_000) for _ in range(4)],
            "temperature_celsius": [randomly.randint(-5, 300) for _ in range(4)],
        }
        fleet.line(randomly.choice(["n2", "n10"]), update(0, seq, 1000.0 + seq, gpus=values))
        step(fleet, frames)
        reader.take(frames.delta())
        assert reader.gpus() == Reader().take(frames.full()).gpus()


def test_new_layout_has_no_delta(fleet):
    frames = Frames(fleet)
    fleet.line("n2", snapshot(gpu(0)))
    step(fleet, frames)
    step(fleet, frames)
    assert frames.delta() is not None
    fleet.line("n2", snapshot(gpu(0), gpu(1), seq=1))
    step(fleet, frames)
    assert frames.delta() is None
    assert len(Reader().take(frames.full()).gpus()) == 2


def test_new_people_come_with_a_delta(fleet):
    frames = Frames(fleet)
    fleet.line("n2", snapshot(gpu(0)))
    step(fleet, frames)
    reader = Reader().take(frames.full())
    fleet.line("n2", snapshot(gpu(0), processes=[process(1, "GPU-0", "carol")], seq=1))
    step(fleet, frames)
    assert reader.take(frames.delta()).gpus()[0][-1] == "carol"


def test_frames_are_encoded_once(fleet):
    frames = Frames(fleet)
    fleet.line("n2", snapshot(gpu(0)))
    step(fleet, frames)
    step(fleet, frames)
    assert frames.full() is frames.full()
    assert frames.delta() is frames.delta()


def test_empty_fleet_has_a_frame():
    frames = Frames(Fleet())
    frames.step(1.0)
    assert Reader().take(frames.full()).gpus() == []


def test_a_person_who_comes_between_two_ticks_has_one_number(fleet):
    """Whoever joins then gets a full frame of the tick that was, and the new name with the next delta."""
    frames = Frames(fleet)
    fleet.line("n2", snapshot(gpu(0), processes=[process(1, "GPU-0", "ann")]))
    step(fleet, frames)
    fleet.line("n2", snapshot(gpu(0), processes=[process(1, "GPU-0", "bob")], seq=1))
    reader = Reader().take(frames.full())
    step(fleet, frames)
    reader.take(frames.delta())
    assert reader.people == fleet.people_names.names
    assert reader.gpus()[0][-1] == "bob"


def test_a_new_power_limit_is_told(fleet):
    frames = Frames(fleet)
    fleet.line("n2", snapshot(gpu(0, power_limit_watts=700.0)))
    step(fleet, frames)
    fleet.line("n2", snapshot(gpu(0, power_limit_watts=500.0), seq=1))
    step(fleet, frames)
    assert frames.delta() is None
    assert Reader().take(frames.full()).nodes[0]["gpus"][0][4] == 500.0
