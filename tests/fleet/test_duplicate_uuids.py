"""One UUID twice, on one node or on two: counts, lists and free GPUs stay sane, and nothing is handed out twice."""

import pytest

from gpulse.fleet.fleet import Fleet
from gpulse.fleet.places import Place
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
