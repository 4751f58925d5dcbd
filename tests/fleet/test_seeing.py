"""What is taken away of processes of others, field by field, and whom a login stands for."""

import pytest

from gpulse.fleet import people
from gpulse.fleet.filter import parse
from gpulse.fleet.fleet import Fleet, FleetSettings
from gpulse.fleet.frames import Frames
from gpulse.fleet.model import GpuUse, Process, Report
from gpulse.fleet.places import Place
from gpulse.fleet.search import Search
from gpulse.fleet.seeing import seen, seen_one, seen_reports
from gpulse.fleet.sight import FULL, Sight
from tests.fleet.lines import gpu, process, snapshot, update

WHOLE = Process(
    pid=1,
    parent_pid=2,
    user="bob",
    uid=3,
    name="python",
    command="/opt/python train.py --token x",
    start_time=4.0,
    nice=5,
    state="R",
    cpu_seconds_total=6.0,
    memory_bytes=7,
    cgroup="/docker/secret",
    vanished=True,
    children=[8],
    gpus=[GpuUse(uuid="A", kinds=["compute"], memory_bytes=9, sm_ratio=0.5)],
)


def fields(before: Process, after: Process) -> set[str]:
    """Those that are not as before."""
    return {name for name in Process.__struct_fields__ if getattr(before, name) != getattr(after, name)}


def test_every_field():
    """A new field of the probe fails here, until somebody has said who may see it."""
    assert {name for name in Process.__struct_fields__ if getattr(WHOLE, name) is None} == set()
    assert fields(WHOLE, seen_one(WHOLE, FULL)) == set()
    assert fields(WHOLE, seen_one(WHOLE, Sight("names"))) == {"command", "cgroup"}
    kept = {"memory_bytes", "vanished", "gpus"}
    assert set(Process.__struct_fields__) - fields(WHOLE, seen_one(WHOLE, Sight("anonymous"))) == kept
    for level in ("names", "anonymous"):
        assert seen([WHOLE], Sight(level, frozenset({"bob"}))) == [WHOLE]
        assert seen([WHOLE], Sight(level, frozenset({"Bob", "bo"}))) != [WHOLE], "logins are compared as they are"


class Later(Process):
    """As a later probe tells it."""

    note: str | None = None


def test_a_new_field_is_hidden_until_somebody_has_thought_about_it():
    later = Later(**{name: getattr(WHOLE, name) for name in Process.__struct_fields__}, note="of bob's")
    for level in ("names", "anonymous"):
        assert getattr(seen_one(later, Sight(level)), "note", None) is None
        assert getattr(seen_one(later, Sight(level, frozenset({"bob"}))), "note", None) == "of bob's"


def test_what_could_not_be_read_names_nobody_where_nobody_has_a_name():
    told = [Report(collector="disks", message="/home/bob hangs"), Report(collector=None, message="bob's python")]
    for level in ("full", "names"):
        assert seen_reports(told, Sight(level)) == told
    assert seen_reports(told, Sight("anonymous", frozenset({"bob"}))) == [
        Report(collector="disks", message="failed"),
        Report(collector=None, message="failed"),
    ]


@pytest.mark.parametrize(
    ("name", "command", "shown"),
    [
        ("python", "/home/bob/python x", "python"),
        (None, "/home/bob/python x", "python"),
        ("/home/bob/python", None, "python"),
        ("python train.py -x", None, "python"),
        ("", "", None),
        (None, None, None),
        ("  ", None, None),
        ("dir/", None, None),
    ],
)
def test_a_program_without_folder_and_arguments(name: str | None, command: str | None, shown: str | None):
    told = seen_one(Process(user="bob", name=name, command=command), Sight("names"))
    assert (told.name, told.command) == (shown, shown)


def test_a_job_keeps_its_number_only():
    job = Process(user="bob", cgroup="/slurm/uid_1001/job_77/step_0/secret")
    assert seen_one(job, Sight("names")).cgroup == "/slurm/job_77"
    assert seen_one(job, Sight("anonymous")).cgroup is None


def test_a_name_that_came_with_an_update_is_looked_for_as_it_is_seen():
    fleet = Fleet()
    fleet.place(Place(name="n"))
    fleet.line("n", snapshot(gpu(0), processes=[process(1, "GPU-0", "bob", name="sh")]))
    fleet.line("n", update(0, 1, 1001.0, processes={"name": ["python secret.py"]}))

    def found(text: str, sight: Sight) -> int:
        return len(Search(fleet, parse(text, None, sight)).all())

    assert [found("secret", sight) for sight in (FULL, Sight("names"), Sight("anonymous"))] == [1, 0, 0]
    assert [found("python", sight) for sight in (FULL, Sight("names"), Sight("anonymous"))] == [1, 1, 0]
    assert found("secret", Sight("anonymous", frozenset({"bob"}))) == 1


def held(people_by_login: dict[str, str], *users: str) -> tuple[Fleet, Frames]:
    fleet = Fleet(FleetSettings(people=people_by_login))
    fleet.place(Place(name="n"))
    cards = [gpu(place) for place in range(len(users))]
    fleet.line("n", snapshot(*cards, processes=[process(at, f"GPU-{at}", user) for at, user in enumerate(users)]))
    fleet.tick()
    frames = Frames(fleet, nameless=True)
    frames.step(1000.0)
    return fleet, frames


def test_ones_own_gpus_of_a_frame():
    _, frames = held({"ann": "Ann"}, "ann", "bob", "ann")
    assert (frames.held_by("ann"), frames.held_by("bob"), frames.held_by("eve")) == ([0, 2], [1], [])


def test_two_people_of_one_shown_name_are_not_each_other():
    _, frames = held({"ann1": "Ann", "ann2": "Ann"}, "ann1", "ann2")
    assert frames.held_by("ann1") == []


def test_nobody_is_all_the_others(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(people, "MOST", 1)
    _, frames = held({}, "ann", "bob", "eve")
    assert frames.held_by("ann") == [0]
    assert frames.held_by(people.OTHERS) == []


def test_people_numbered_anew_do_not_become_each_other(monkeypatch: pytest.MonkeyPatch):
    fleet, frames = held({}, "ann", "bob")
    fleet.line("n", snapshot(gpu(0), gpu(1), processes=[process(1, "GPU-1", "bob")], seq=1))
    monkeypatch.setattr(people, "MOST_GONE", 0)
    while fleet.people_names.numbering == 0:
        fleet.tick()
    # The frame is still that of before, in which bob's number now was ann's.
    assert frames.held_by("bob") == []
    frames.step(1001.0)
    assert frames.held_by("bob") == [1]
    assert frames.delta() is not None, "numbers are not told, so nothing has to be told anew"
