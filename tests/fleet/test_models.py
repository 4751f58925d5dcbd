"""Models in live frames: those that are there, by names of bounded length."""

from gpulse.fleet.fleet import Fleet
from gpulse.fleet.frames import Frames
from gpulse.fleet.node import LONGEST_NAME
from gpulse.fleet.places import Place
from tests.fleet.lines import gpu, snapshot, update
from tests.fleet.test_frames import Reader


def layout(fleet, frames):
    fleet.tick()
    frames.step(1000.0)
    reader = Reader().take(frames.full())
    named = [None if one[2] is None else reader.models[one[2]] for node in reader.nodes for one in node["gpus"]]
    return reader.models, named


def fleet_of(*names):
    fleet = Fleet(wall=lambda: 1000.0)
    for name in names:
        fleet.place(Place(name=name))
    return fleet


def test_only_models_that_are_there_are_told():
    fleet = fleet_of("a", "b")
    frames = Frames(fleet)
    fleet.line("a", snapshot(gpu(uuid="A", name="one"), gpu(1, uuid="B", name="two")))
    fleet.line("b", snapshot(gpu(uuid="C", name="three")))
    assert layout(fleet, frames) == (["one", "two", "three"], ["one", "two", "three"])
    for seq in range(1, 200):
        fleet.line("a", snapshot(gpu(uuid="A", name=f"new {seq}"), gpu(1, uuid="B", name="two"), seq=seq))
        models, named = layout(fleet, frames)
        assert named == [f"new {seq}", "two", "three"]
        assert len(models) <= 5
    fleet.remove("b")
    assert set(layout(fleet, frames)[0]) == {"new 199", "two", ""}
    fleet.remove("a")
    assert layout(fleet, frames) == ([], [])


def test_long_names_are_cut():
    fleet = fleet_of("a")
    frames = Frames(fleet)
    fleet.line("a", snapshot(gpu(name="n" * 900_000)))
    assert fleet.gpus()[0].name == "n" * LONGEST_NAME
    assert layout(fleet, frames)[1] == ["n" * LONGEST_NAME]
    fleet.line("a", update(0, 1, 1001.0, gpus={"name": ["m" * 900_000], "uuid": ["other"]}))
    (view,) = fleet.gpus()
    assert (view.name, view.uuid) == ("n" * LONGEST_NAME, "GPU-0"), "facts do not change with an update"


def test_one_node_names_few_models():
    fleet = fleet_of("a")
    fleet.line("a", snapshot(*(gpu(place, uuid=str(place), name=f"model {place}") for place in range(512))))
    models, named = layout(fleet, Frames(fleet))
    assert len(models) == 64
    assert named[:64] == models
    assert set(named[64:]) == {None}
