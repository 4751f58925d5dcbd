"""Numbers of people in live frames: nobody is called by another's name, whatever a node says."""

import pytest

from gpulse.fleet import people
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.frames import Frames
from gpulse.fleet.places import Place
from tests.fleet.lines import gpu, process, snapshot
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
    fleet.place(Place(name="honest"))
    fleet.place(Place(name="liar"))
    return fleet


def held_by(node, names, seq=0):
    gpus = [gpu(place, uuid=f"{node}-{place}") for place in range(len(names))]
    processes = [process(place, f"{node}-{place}", name) for place, name in enumerate(names)]
    return snapshot(*gpus, processes=processes, seq=seq)


def shown(frames):
    frames.step(1000.0)
    return [one[-1] for one in Reader().take(frames.full()).gpus()]


def ticks(fleet, count=60):
    for _ in range(count):
        fleet.tick()


def test_a_liar_spoils_nobodys_name(fleet):
    for seq in range(130):
        fleet.line("liar", held_by("liar", [f"evil{seq}_{place}".ljust(100, "x") for place in range(512)], seq))
    fleet.line("honest", held_by("honest", ["alice", "bob"]))
    fleet.tick()
    frames = Frames(fleet)
    assert shown(frames)[:2] == ["alice", "bob"]
    assert set(shown(frames)[2:]) == {people.OTHERS}
    assert len(fleet.people_names.names) <= people.MOST_NEWCOMERS + 5
    fleet.remove("liar")
    fleet.tick()
    frames.step(1000.0)
    assert len(frames.full()) < 10_000


def test_a_full_house_is_others(fleet, monkeypatch):
    monkeypatch.setattr(people, "MOST", 3)
    fleet.line("liar", held_by("liar", ["a", "b", "c", "d", "e"]))
    fleet.line("honest", held_by("honest", ["a", "f"]))
    fleet.tick()
    assert shown(Frames(fleet)) == ["a", people.OTHERS, "a", "b", "c", people.OTHERS, people.OTHERS]


def test_new_people_of_one_node_have_time(fleet, clock):
    names = [f"student{number}" for number in range(people.MOST_NEWCOMERS + 2)]
    fleet.line("honest", held_by("honest", names))
    frames = Frames(fleet)
    assert shown(frames) == [*names[:-2], people.OTHERS, people.OTHERS]
    clock.now += 2 * people.NEWCOMER_SECONDS + 10
    fleet.line("honest", held_by("honest", names, 1))
    assert shown(frames) == names


def test_numbers_are_given_back_and_a_full_frame_follows(fleet, clock, monkeypatch):
    monkeypatch.setattr(people, "MOST_GONE", 10)
    frames = Frames(fleet)
    for seq in range(20):
        clock.now += people.NEWCOMER_SECONDS
        fleet.line("liar", held_by("liar", [f"passer-by {seq}"], seq))
    fleet.line("honest", held_by("honest", ["alice"]))
    ticks(fleet, 59)
    frames.step(1000.0)
    reader = Reader().take(frames.full())
    assert len(reader.people) == 22
    ticks(fleet, 1)
    frames.step(1000.0)
    assert frames.delta() is None
    reader.take(frames.full())
    assert sorted(reader.people) == ["", "alice", "passer-by 19"]
    assert [one[-1] for one in reader.gpus()] == ["alice", "passer-by 19"]
    fleet.line("honest", held_by("honest", ["bob"], 1))
    fleet.tick()
    frames.step(1000.0)
    assert [one[-1] for one in reader.take(frames.delta()).gpus()] == ["bob", "passer-by 19"]


def test_who_comes_back_has_the_same_number(fleet):
    fleet.line("honest", held_by("honest", ["alice", "bob"]))
    number = fleet.people_names.names.index("alice")
    fleet.line("honest", held_by("honest", ["bob", "bob"], 1))
    ticks(fleet)
    fleet.line("honest", held_by("honest", ["alice", "bob"], 2))
    assert fleet.people_names.names.index("alice") == number
    assert fleet.people_names.numbering == 0
