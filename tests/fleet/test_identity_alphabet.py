"""Identities have an alphabet: what is outside it is dropped and reported, and the rest of the snapshot stays."""

import shlex
import subprocess
from pathlib import Path

import pytest

from gpulse.fleet import gpustat
from gpulse.fleet.finder import Wish, export_of, find
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.identity_alphabet import is_identity
from gpulse.fleet.places import Place
from tests.fleet.lines import GIB, gpu, process, snapshot, update

BAD = "GPU-2;id>/tmp/x;true "
REAL = [
    "GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77",
    "MIG-GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77/1/0",
    "MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f",
    "0x9f2c8a31d5e7b604",
    "60ff74a1-0000-1000-80b7-6d1c1d7c1a11",
    "GPU-60ff74a1d5e7b604",
    "00000000-0000-0017-0000-0bd580860000",
    "Ascend910B_0-17",
    "0000:17:00.0",
    "00000000:3B:00.0",
    "1g.5gb+me.all",
    "1c.3g.40gb",
    "PCB052022-0079",
    "1324620012345",
]


@pytest.fixture
def fleet() -> Fleet:
    made = Fleet()
    made.place(Place(name="n"))
    return made


@pytest.mark.parametrize("text", REAL)
def test_identities_of_all_vendors_are_some(text):
    assert is_identity(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", BAD, "-rf", "--help", "a b", "$(id)", "`id`", "a\nb", "a'b", 'a"b', "a\\b", "a;b", "a|b", "a&b"),
        *(
            "a>b",
            "<b>",
            "a\x1b[2J",
            "a\x9b2J",
            "\u202eGPU",
            "GPU-é",
            "a*",
            "a?",
            "~root",
            "=1+1",
            "#a",
            "a\0",
            "x" * 257,
        ),
    ],
)
def test_what_a_shell_would_read_is_none(text):
    assert not is_identity(text)


def test_a_uuid_for_a_shell_is_dropped_and_the_rest_stays(fleet):
    cards = [gpu(0), gpu(2, uuid=BAD, memory_used_bytes=3 * GIB, serial="$(id)", pci_bus_id="0000:17:00.0")]
    fleet.line("n", snapshot(*cards, processes=[process(7, BAD), process(8, "GPU-0")]))
    fleet.tick()
    first, second = fleet.gpus()
    assert (first.uuid, second.uuid, second.id) == ("GPU-0", "n/2", "n/2")
    assert (second.memory_used_bytes, second.pci_bus_id, second.serial) == (3 * GIB, "0000:17:00.0", None)
    # Its process is still on it, and nobody is offered the card.
    assert [[use.person for use in one.people] for one in (first, second)] == [["alice"], ["alice"]]
    view = fleet.node("n", detail=True)
    assert view is not None
    told = [report.message for report in view.reports]
    assert [report.collector for report in view.reports] == ["identities", "identities"]
    assert told[0].startswith('GPU 2: uuid "GPU-2;id>/tmp/x;true " is left out: ')
    assert told[1].startswith('GPU 2: serial "$(id)" is left out: ')
    assert [entry.message for entry in fleet.log_of("n")][:2] == told


def test_the_report_stays_with_updates_and_is_logged_once(fleet):
    for seq in range(3):
        fleet.line("n", snapshot(gpu(0, uuid=BAD), processes=[process(7, BAD)], seq=10 * seq, time=1000.0 + seq))
        fleet.line("n", update(10 * seq, 10 * seq + 1, 1000.5 + seq, uses={"memory_bytes": [5 * GIB]}))
    view = fleet.node("n", detail=True)
    assert view is not None
    assert [report.collector for report in view.reports] == ["identities"]
    assert sum("is left out" in entry.message for entry in fleet.log_of("n")) == 1
    assert fleet.known("n").current_processes()[0].gpus[0].memory_bytes == 5 * GIB
    fleet.line("n", snapshot(gpu(0), seq=90, time=1009.0))
    view = fleet.node("n", detail=True)
    assert view is not None
    assert not view.reports


def test_instances_still_find_their_card_and_processes_their_instance(fleet):
    card = gpu(0, uuid=BAD, mig_enabled=True)
    instance = gpu(0, uuid="MIG `id`", parent_uuid=BAD, mig_index=1, mig_profile="1g.10gb;id")
    stray = gpu(1, uuid="MIG-1", parent_uuid="$(card)", mig_index=0, mig_profile="1g.10gb")
    whole = gpu(1, uuid="GPU-1", mig_enabled=True)
    fleet.line("n", snapshot(card, instance, whole, stray, processes=[process(7, "MIG `id`"), process(8, "nowhere;")]))
    fleet.tick()
    gpus = fleet.gpus()
    assert [one.uuid for one in gpus] == ["n/0", "n/0.1", "GPU-1", "MIG-1"]
    assert [one.parent_uuid for one in gpus] == [None, "n/0", None, "GPU-1"]
    assert [bool(one.people) for one in gpus] == [False, True, False, False]
    assert [one.counted for one in gpus] == [False, True, False, True]
    assert gpus[1].mig_profile is None


def test_cards_with_one_bad_uuid_are_two_cards(fleet):
    fleet.line("n", snapshot(gpu(0, uuid=BAD), gpu(1, uuid=BAD), gpu(None, uuid="also bad")))
    assert [one.id for one in fleet.gpus()] == ["n/0", "n/1", "n/2"]


def test_many_bad_identities_are_few_reports(fleet):
    fleet.line("n", snapshot(*(gpu(index, uuid=f"$({index})", serial=";") for index in range(100))))
    assert len(fleet.known("n").refused) == 9
    assert fleet.known("n").refused[-1].message == "192 more identities are left out"


def test_what_gpustat_prints_is_checked_too():
    fleet = Fleet()
    fleet.place(Place(name="gpü-1"))
    cards = (
        f'{{"index":0,"uuid":"{BAD}","processes":[{{"pid":7,"username":"ann","gpu_memory_usage":5}}]}}'
        ',{"index":1,"processes":[{"pid":8,"username":"bob","gpu_memory_usage":5}]}'
    )
    fleet.line("gpü-1", gpustat.to_line(f'{{"gpus":[{cards}]}}'.encode(), "gpü-1", now=1000.0))
    assert [one.uuid for one in fleet.gpus()] == ["gpü-1/0", "gpü-1/1"]
    assert [[use.person for use in one.people] for one in fleet.gpus()] == [["ann"], ["bob"]]
    assert len(fleet.known("gpü-1").refused) == 1


def test_a_line_for_eval_runs_nothing(fleet, tmp_path: Path):
    """Whatever a UUID is: also where one should get past the alphabet."""
    mark = tmp_path / "mark"
    fleet.line("n", snapshot(gpu(0, name="A"), gpu(1, name="B")))
    fleet.tick()
    gpus = fleet.gpus()
    for bad in (f"GPU-2;touch {mark};true ", f"$(touch {mark})", f"'`touch {mark}`'", f"a\ntouch {mark}\n", "a'b\"c"):
        gpus[0].uuid = bad
        line = export_of(gpus[:1], gpus)
        assert line is not None
        done = subprocess.run(
            ["sh", "-c", f'export {line}; printf %s "$CUDA_VISIBLE_DEVICES"'],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == bad
        assert shlex.split(line) == [f"CUDA_VISIBLE_DEVICES={bad}"]
    assert not mark.exists()
    assert find(fleet.gpus(), Wish(n=2)).export == "CUDA_VISIBLE_DEVICES=GPU-0,GPU-1"
