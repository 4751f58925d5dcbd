"""One machine under two names is noticed, said, and counted once."""

import pytest

from gpulse.fleet.finder import Wish, find
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.places import Place
from gpulse.fleet.taking import ABSENCE_SECONDS
from tests.fleet.lines import gpu, process, snapshot, update


class Clock:
    now = 5000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def fleet(clock: Clock) -> Fleet:
    made = Fleet(clock=clock, wall=clock)
    for name in ("gpu1", "gpu1.example.org"):
        made.place(Place(name=name))
    return made


def send(
    fleet: Fleet, name: str, *cards: dict[str, object], boot: str = "b1", host: str = "gpu1", seq: int = 0
) -> None:
    users = [process(7, str(card["uuid"])) for card in cards[:1]]
    fleet.line(name, snapshot(*cards, processes=users, boot_id=boot, host={"hostname": host}, seq=seq))
    fleet.tick()


def same_as(fleet: Fleet) -> list[str | None]:
    return [node.same_machine_as for node in fleet.nodes()]


def test_the_second_name_is_not_counted(fleet: Fleet):
    send(fleet, "gpu1.example.org", gpu(0), gpu(1))
    send(fleet, "gpu1", gpu(0), gpu(1))
    assert same_as(fleet) == ["gpu1.example.org", None]
    summary = fleet.summary()
    assert (summary.gpus, sum(summary.states.values()), summary.power_known_gpus) == (2, 2, 2)
    assert (summary.memory_total_known_gpus, summary.same_machine_nodes) == (2, 1)
    assert [(one.counted, one.state) for one in fleet.gpus_of("gpu1")] == [(False, None)] * 2
    assert {one.node for one in find(fleet.gpus(), Wish(n=1)).gpus} == {"gpu1.example.org"}
    assert not find(fleet.gpus(), Wish(n=2)).found
    assert [(person.gpus, person.processes) for person in fleet.people()] == [(1, 1)]
    for name, other in (("gpu1", "gpu1.example.org"), ("gpu1.example.org", "gpu1")):
        assert any(f"same machine as {other}" in entry.message for entry in fleet.log_of(name))


def test_restarts_of_either_change_nothing(fleet: Fleet, clock: Clock):
    send(fleet, "gpu1", gpu(0))
    send(fleet, "gpu1.example.org", gpu(0))
    for name in ("gpu1", "gpu1.example.org"):
        fleet.down(name, "restarting")
        clock.now += 30
        other = next(one for one in fleet.names() if one != name)
        send(fleet, other, gpu(0), seq=int(clock.now))
        send(fleet, name, gpu(0), seq=int(clock.now))
        assert same_as(fleet) == [None, "gpu1"]
    messages = [entry.message for entry in fleet.log_of("gpu1.example.org")]
    assert sum("same machine" in message for message in messages) == 1


def test_the_second_takes_over_when_the_first_is_gone(fleet: Fleet, clock: Clock):
    send(fleet, "gpu1", gpu(0))
    send(fleet, "gpu1.example.org", gpu(0))
    fleet.down("gpu1", "gone")
    clock.now += ABSENCE_SECONDS + 1
    send(fleet, "gpu1.example.org", gpu(0), seq=1)
    assert same_as(fleet) == ["gpu1.example.org", None]
    assert fleet.summary().gpus == 1
    send(fleet, "gpu1", gpu(0), seq=1)
    assert same_as(fleet) == ["gpu1.example.org", None]


@pytest.mark.parametrize("cards", [0, 2])
def test_when_the_first_is_removed_the_second_counts_at_once(fleet: Fleet, cards: int):
    for name in ("gpu1", "gpu1.example.org"):
        send(fleet, name, *(gpu(index) for index in range(cards)))
    assert same_as(fleet) == [None, "gpu1"]
    fleet.remove("gpu1")
    fleet.tick()
    assert same_as(fleet) == [None]
    assert (fleet.summary().gpus, fleet.summary().same_machine_nodes) == (cards, 0)


def test_containers_with_different_gpus_are_two(fleet: Fleet):
    send(fleet, "gpu1", gpu(0))
    send(fleet, "gpu1.example.org", gpu(1), host="container")
    assert same_as(fleet) == [None, None]
    assert fleet.summary().gpus == 2


def test_a_gpu_that_both_have_is_counted_once(fleet: Fleet):
    send(fleet, "gpu1", gpu(0), gpu(1))
    send(fleet, "gpu1.example.org", gpu(1), gpu(2), host="container")
    assert fleet.summary().gpus == 3


def test_other_machines_are_others(fleet: Fleet):
    send(fleet, "gpu1", gpu(0), boot="b1")
    send(fleet, "gpu1.example.org", gpu(0), boot="b2")
    assert same_as(fleet) == [None, None]
    assert fleet.summary().gpus == 2


def test_without_gpus_the_hostname_decides(fleet: Fleet):
    send(fleet, "gpu1", host="login")
    send(fleet, "gpu1.example.org", host="other")
    assert same_as(fleet) == [None, None]
    send(fleet, "gpu1.example.org", host="login", seq=1)
    assert same_as(fleet) == [None, "gpu1"]
    send(fleet, "gpu1.example.org", host="other", seq=2)
    assert same_as(fleet) == [None, None]


def test_a_reboot_of_both_is_no_trouble(fleet: Fleet):
    for boot, seq in (("b1", 0), ("b2", 1)):
        for name in ("gpu1", "gpu1.example.org"):
            send(fleet, name, gpu(0), boot=boot, seq=seq)
    assert same_as(fleet) == [None, "gpu1"]
    fleet.line("gpu1.example.org", update(1, 2, 1001.0))
    fleet.tick()
    assert fleet.summary().gpus == 1


def test_a_reboot_counts_it_once_whichever_name_reports_first(fleet: Fleet):
    send(fleet, "gpu1", gpu(0), gpu(1))
    send(fleet, "gpu1.example.org", gpu(0), gpu(1))
    for name in ("gpu1", "gpu1.example.org"):
        fleet.down(name, "rebooting")
    send(fleet, "gpu1.example.org", gpu(0), gpu(1), boot="b2", seq=1)
    assert (same_as(fleet), fleet.summary().gpus) == ([None, "gpu1"], 2)
    send(fleet, "gpu1", gpu(0), gpu(1), boot="b2", seq=1)
    assert (same_as(fleet), fleet.summary().gpus) == ([None, "gpu1"], 2)


def test_two_machines_that_only_share_a_uuid_are_told_apart_again(fleet: Fleet):
    send(fleet, "gpu1", gpu(0))
    send(fleet, "gpu1.example.org", gpu(0))
    send(fleet, "gpu1.example.org", gpu(0), boot="b2", seq=1)
    assert (same_as(fleet), fleet.summary().gpus) == ([None, None], 2)
