"""One UUID twice, on one node or on two: counts, lists and free GPUs stay sane, and nothing is handed out twice."""

import pytest

from gpulse.errors import ReservationError
from gpulse.fleet.finder import Wish, find
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.places import Place
from gpulse.reservations.picking import pick
from tests.fleet.lines import gpu, process, snapshot


def fleet_of(**lines: bytes) -> Fleet:
    fleet = Fleet()
    for name, line in lines.items():
        fleet.place(Place(name=name, interval_seconds=1.0))
        fleet.line(name, line)
    fleet.tick()
    return fleet


def test_one_node_that_sends_a_uuid_twice():
    twice = [gpu(0), gpu(1, uuid="GPU-0")]
    fleet = fleet_of(x=snapshot(*twice, processes=[process(100, "GPU-0")]))
    assert fleet.node("x").state == "up"
    listed = list(fleet.gpus())
    assert fleet.gpu_count("x") == len(listed)
    assert len({(one.node, one.index) for one in listed}) == len(listed)
    # A process that holds memory on one of them may be on either: neither is free.
    assert {one.state for one in listed} == {"idle"}


def test_two_nodes_that_send_the_same_uuid():
    own = snapshot(gpu(0), processes=[process(100, "GPU-0")], node="a")
    fleet = fleet_of(a=own, b=snapshot(gpu(0), node="b"))
    states = {one.node: one.state for one in fleet.gpus()}
    assert states == {"a": "idle", "b": "free"}


@pytest.mark.parametrize("count", [2, 50])
def test_updates_of_a_node_with_one_uuid_many_times(count: int):
    cards = [gpu(number, uuid="GPU-0") for number in range(count)]
    fleet = fleet_of(x=snapshot(*cards))
    for seq in range(1, 4):
        fleet.line("x", snapshot(*cards, seq=seq, time=1000.0 + seq))
        fleet.tick()
    assert fleet.node("x").state == "up"
    assert fleet.gpu_count("x") == len(list(fleet.gpus()))


def test_cards_with_one_uuid_are_not_named_by_it():
    """CUDA takes one of them, or none."""
    mixed = [gpu(0), gpu(1, uuid="GPU-0", name="NVIDIA A100-SXM4-80GB")]
    fleet = fleet_of(x=snapshot(*mixed))
    assert find(fleet.gpus(), Wish(n=2)).export is None
    assert find(fleet.gpus(), Wish(n=1)).export == "CUDA_VISIBLE_DEVICES=GPU-0"


def test_cards_with_one_number():
    """A reservation of x:0, or CUDA, would mean either: the first has the number, and the other its UUID alone."""
    cards = [gpu(0), gpu(0, uuid="GPU-1"), gpu(2)]
    fleet = fleet_of(x=snapshot(*cards))
    assert [one.index for one in fleet.gpus()] == [0, None, 2]
    assert find(fleet.gpus(), Wish(n=3)).export == "CUDA_VISIBLE_DEVICES=GPU-0,GPU-1,GPU-2"
    node = fleet.node("x", detail=True)
    assert node is not None
    assert "GPU 0: another GPU has this number already" in str(node.reports)
    picked = pick(fleet.gpus(), Wish(n=2), 0.0, 60.0, [], 0.0)
    assert [place.index for place in picked] == ["0", "2"]
    with pytest.raises(ReservationError, match="there are 2 such GPUs, and 3 are wanted"):
        pick(fleet.gpus(), Wish(n=3), 0.0, 60.0, [], 0.0)


def test_mig_instances_keep_the_number_of_their_card():
    card = gpu(0, mig_enabled=True)
    instances = [gpu(0, uuid=f"MIG-{number}", parent_uuid="GPU-0", mig_index=number) for number in range(2)]
    unnumbered = gpu(0, uuid="MIG-7", parent_uuid="GPU-0")
    fleet = fleet_of(x=snapshot(card, *instances, unnumbered))
    assert {one.index for one in fleet.gpus()} == {0}
