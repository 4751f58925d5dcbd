"""Ids of GPUs: each is one GPU's, and no node speaks for another's."""

import pytest

from gpulse.fleet.booked import Booked
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.frames import Frames
from gpulse.fleet.places import Place
from gpulse.fleet.taking import ABSENCE_SECONDS
from tests.fleet.lines import gpu, snapshot
from tests.fleet.test_frames import Reader


class Clock:
    now = 5000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def fleet(clock):
    fleet = Fleet(clock=clock, wall=lambda: 1000.0)
    for name in ("liar", "honest"):
        fleet.place(Place(name=name))
    fleet.line("honest", snapshot(gpu(uuid="GPU-h", utilization_ratio=1.0)))
    return fleet


def ids(fleet, name):
    return [view.id for view in fleet.gpus_of(name)]


def test_a_uuid_belongs_to_who_had_it_first(fleet):
    for seq in range(3):
        fleet.line("liar", snapshot(gpu(uuid="GPU-h"), gpu(1, uuid="GPU-l"), seq=seq))
    assert fleet.node_of_gpu("GPU-h") == "honest"
    assert fleet.node_of_gpu("liar/0") == fleet.node_of_gpu("GPU-l") == "liar"
    assert (ids(fleet, "honest"), ids(fleet, "liar")) == (["GPU-h"], ["liar/0", "GPU-l"])
    frames = Frames(fleet)
    fleet.tick()
    frames.step(1000.0)
    assert [one[0] for one in Reader().take(frames.full()).gpus()] == ["GPU-h", "liar/0", "GPU-l"]
    told = {name: [entry.message for entry in fleet.log_of(name)] for name in ("honest", "liar")}
    assert sum("GPU-h is told by liar too, and stays with honest" in words for words in told["honest"]) == 1
    assert sum("GPU-h is told by honest too, which had it first" in words for words in told["liar"]) == 1


def test_a_booking_is_of_the_place_whatever_its_card_says(fleet):
    fleet.line("honest", snapshot(gpu(uuid="GPU-h"), seq=1))
    fleet.line("liar", snapshot(gpu(uuid="GPU-h")))
    fleet.book({("honest", "0"): Booked("a", "ann", 0.0, 2000.0)}, {})
    fleet.tick()
    assert {view.node: view.state for view in fleet.gpus()} == {"honest": "reserved", "liar": "free"}


def test_a_restart_loses_no_id(fleet, clock):
    fleet.down("honest", "restarts")
    clock.now += ABSENCE_SECONDS - 1
    fleet.line("liar", snapshot(gpu(uuid="GPU-h")))
    assert ids(fleet, "liar") == ["liar/0"]
    fleet.line("honest", snapshot(gpu(uuid="GPU-h"), seq=1))
    assert ids(fleet, "honest") == ["GPU-h"]


def test_a_card_moves_to_another_machine(fleet, clock):
    fleet.down("honest", "is taken apart")
    clock.now += ABSENCE_SECONDS + 1
    layout = fleet.layout
    fleet.line("liar", snapshot(gpu(uuid="GPU-h")))
    assert (ids(fleet, "liar"), ids(fleet, "honest")) == (["GPU-h"], ["honest/0"])
    assert fleet.node_of_gpu("GPU-h") == "liar"
    assert fleet.layout > layout
    fleet.line("honest", snapshot(gpu(uuid="GPU-h"), seq=1))
    assert ids(fleet, "honest") == ["honest/0"]


@pytest.mark.parametrize("leave", ["removed", "other card"])
def test_who_waits_gets_the_id_when_it_is_free(fleet, leave):
    fleet.line("liar", snapshot(gpu(uuid="GPU-h")))
    if leave == "removed":
        fleet.remove("honest")
    else:
        fleet.line("honest", snapshot(gpu(uuid="GPU-new"), seq=1))
    for _ in range(60):
        # Without a new snapshot: an agent sends one every few minutes.
        fleet.tick()
    assert ids(fleet, "liar") == ["GPU-h"]


def test_ids_are_unique_on_one_node(fleet):
    lies = [gpu(0, uuid="a"), gpu(1, uuid="a"), gpu(1, uuid="a"), gpu(1, uuid=None), gpu(0, uuid="honest/0")]
    old_mig = gpu(5, uuid="MIG-GPU-h/1/0")
    fleet.line("liar", snapshot(*lies, old_mig))
    found = ids(fleet, "liar")
    assert len(set(found)) == 6
    assert (found[0], found[1], found[5]) == ("a", "liar/1", "MIG-GPU-h/1/0")
    # The first GPU has its number already.
    assert found[4].startswith("liar/")
    fleet.line("honest", snapshot(gpu(uuid=None), seq=1))
    assert ids(fleet, "honest") == ["honest/0"]


def test_a_uuid_without_end_is_left_out(fleet):
    for field in ("uuid", "parent_uuid"):
        fleet.line("liar", snapshot(gpu(**{field: "x" * 10_000})))
        assert max(len(identity) for identity in ids(fleet, "liar")) < 20
        assert [report.collector for report in fleet.known("liar").reports] == ["identities"]
