"""POST /api/v1/reservations/import: what becomes of each entry of a comments.json."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from gpulse.auth.noting import THE_HUB
from gpulse.reservations import comments
from gpulse.reservations.model import Place, Wanted
from gpulse.reservations.rules import By
from tests.api.fleets import card, snapshot
from tests.api.moving import FILE, NOW, OUTCOMES, Moving, imported, moving, post

ROOT = By("admin", admin=True)


@pytest.fixture
def hub(tmp_path) -> Iterator[Moving]:
    with moving(tmp_path) as made:
        yield made


def outcomes(answer: Any) -> list[tuple[int, str, str, str]]:
    return [(one["line"], one["node"], one["index"], one["outcome"]) for one in answer["entries"]]


def kept(hub: Moving) -> list[tuple[str, list[str], str, bool]]:
    now = hub.table.current()
    return sorted((one.person, [str(place) for place in one.places], one.comment, one.imported) for one in now)


RESERVED = [
    ("Père Noël", ["gpu1:1"], "booked", True),
    ("ann", ["gpu1:0"], "see http://lab.example // plan", True),
    ("dan", ["gpu10:1"], "", True),
]


def test_every_entry_is_told(hub):
    answer = imported(hub, FILE)
    assert outcomes(answer) == OUTCOMES
    assert answer["counts"] == {"reserved": 3, "no_such_gpu": 2, "over": 1, "not_understood": 1, "empty": 1}
    assert kept(hub) == RESERVED
    ann = answer["entries"][0]
    assert ann["message"] == (
        "until Tuesday 1 December 2026, 18:00 CET; nobody is known here as 'ann': there is no account of that name,"
        " and no process"
    )
    made = hub.table.by_id(ann["reservation"])
    assert (made.person, made.maker, made.start, made.end) == ("ann", "admin", NOW.timestamp(), ann["end"])
    assert [change.action for change in asyncio.run(hub.table.history(made.id))] == ["imported"]


def noted(hub):
    """What was not noted when the hub and its people were made."""
    return [one for one in asyncio.run(hub.people.directory.audit.entries()) if one.who != THE_HUB.name]


def test_a_dry_run_tells_the_same_and_changes_nothing(hub):
    revision = hub.table.revision
    answer = imported(hub, FILE, dry_run=True)
    assert (answer["dry_run"], outcomes(answer)) == (True, OUTCOMES)
    assert [one["reservation"] for one in answer["entries"]] == [None] * len(OUTCOMES)
    assert (kept(hub), hub.table.revision) == ([], revision)
    assert noted(hub) == []


def test_a_second_import_changes_nothing(hub):
    first = imported(hub, FILE)
    revision = hub.table.revision
    again = imported(hub, FILE)
    assert again["counts"] == {"already": 3, "no_such_gpu": 2, "over": 1, "not_understood": 1, "empty": 1}
    assert hub.table.revision == revision
    ids = [[one["reservation"] for one in answer["entries"]] for answer in (first, again)]
    assert ids[0] == ids[1]
    asyncio.run(hub.table.end(ids[0][0], ROOT))
    assert imported(hub, FILE)["counts"]["already"] == 3
    assert len(kept(hub)) == 2


def test_what_is_reserved_by_others_stays_theirs(hub):
    wanted = Wanted(person="zoe", places=(Place("gpu1", "0"),), start=NOW.timestamp(), end=NOW.timestamp() + 3600)
    theirs = asyncio.run(hub.table.make(wanted, ROOT))
    entry = imported(hub, FILE)["entries"][0]
    assert (entry["outcome"], entry["reservation"]) == ("conflict", theirs.id)
    assert entry["message"] == (
        "it is reserved by zoe from Wednesday 18 November 2026, 10:30 CET until Wednesday 18 November 2026, 11:30 CET"
    )
    assert hub.table.by_id(theirs.id) == theirs


def test_what_one_person_has_of_a_node_is_one_reservation(hub):
    """But not what another has meanwhile, or what has another comment."""
    wanted = Wanted(person="zoe", places=(Place("gpu10", "1"),), start=NOW.timestamp(), end=NOW.timestamp() + 3600)
    theirs = asyncio.run(hub.table.make(wanted, ROOT))
    slot = {"name": "ann", "date": "2026-12-01 18:00", "comment": "x"}
    text = json.dumps({"gpu1": [slot, slot], "gpu2": [slot, slot | {"comment": "y"}], "gpu10": [slot, slot]})
    answer = imported(hub, text)
    assert [one["outcome"] for one in answer["entries"]] == [*["reserved"] * 5, "conflict"]
    assert [(places, comment) for person, places, comment, _ in kept(hub) if person == "ann"] == [
        (["gpu10:0"], "x"),
        (["gpu1:0", "gpu1:1"], "x"),
        (["gpu2:0"], "x"),
        (["gpu2:1"], "y"),
    ]
    first, second, *others, last = [one["reservation"] for one in answer["entries"]]
    assert (first == second, len({first, *others}), last) == (True, 4, theirs.id)


@pytest.mark.parametrize("dry_run", [False, True])
def test_of_two_entries_for_a_gpu_the_first_has_it(hub, dry_run):
    slots = [f'"{index}": {{"name": "{name}", "date": "2026-12-01"}}' for index, name in (("1", "ann"), ("01", "bob"))]
    answer = imported(hub, f'{{"gpu1": {{{", ".join(slots)}}}}}', dry_run=dry_run)
    assert [one["outcome"] for one in answer["entries"]] == ["reserved", "conflict"]
    assert "reserved by ann" in answer["entries"][1]["message"]


def test_an_index_of_thousands_of_digits_is_no_such_gpu(hub):
    slot = {"name": "ann", "date": "2026-12-01 18:00"}
    answer = imported(hub, json.dumps({"gpu1": {"9" * 5000: slot, "0": slot}}))
    assert [one["outcome"] for one in answer["entries"]] == ["no_such_gpu", "reserved"]


def of_names(hub: Moving, *names: str, **more: Any) -> Any:
    """What becomes of entries of these, each of another GPU, until one time."""
    slots = [{"name": name, "date": "2026-12-01 18:00"} for name in names]
    return imported(hub, json.dumps({"gpu1": slots[:2], "gpu2": slots[2:4], "gpu10": slots[4:]}), **more)


def call(hub: Moving, **people: str) -> None:
    hub.fleet.settings = msgspec.structs.replace(hub.fleet.settings, people=people)


@pytest.mark.parametrize("dry_run", [False, True])
def test_whose_is_a_login_however_it_is_written(hub, dry_run):
    """As where somebody reserves for them: of an account, of a process, or of what people are called."""
    call(hub, carol="Carol Smith")
    names = ("alice", "ALICE", "Member", "Carol Smith", "carol smith", "Carol")
    told = [entry["message"].partition("; ")[2] for entry in of_names(hub, *names, dry_run=dry_run)["entries"]]
    logins = ["alice", "alice", "member", "carol", "carol", "carol"]
    assert told[0] == ""
    said = [f"'{name}' is known here as {login}" for name, login in zip(names, logins, strict=True)]
    assert told[1:] == said[1:]
    whose = {place: person for person, places, _, _ in kept(hub) for place in places}
    places = [f"{node}:{index}" for node in ("gpu1", "gpu2", "gpu10") for index in (0, 1)]
    assert whose == ({} if dry_run else dict(zip(places, logins, strict=True)))


def test_what_is_theirs_is_there_already_however_it_is_written(hub):
    call(hub, carol="Carol Smith")
    names = ("Alice", "Member", "Carol Smith", "Nobody Else")
    assert of_names(hub, *names)["counts"] == {"reserved": 4}
    again = of_names(hub, "ALICE", "member", "carol", "Nobody Else")
    assert again["counts"] == {"already": 4}
    assert again["entries"][0]["message"] == "it is reserved already; 'ALICE' is known here as alice"
    written = comments.write(hub.table.current(), NOW.timestamp(), NOW.tzinfo)
    assert '"name": "alice"' in written
    assert imported(hub, written)["counts"] == {"already": 4}
    # Whoever is known later, or no longer, had it before.
    call(hub, nobody="Nobody Else")
    for node in ("gpu1", "gpu2", "gpu10"):
        hub.fleet.line(node, snapshot(node, [card(f"GPU-{node}-{index}", index) for index in range(2)]))
    hub.fleet.tick()
    assert "alice" not in hub.fleet.logins
    again = of_names(hub, "Alice", "member", "carol", "Nobody Else")
    assert again["counts"] == {"already": 4}
    assert again["entries"][3]["message"] == "it is reserved already"


def test_a_file_that_cannot_be_read_changes_nothing(hub):
    response = post(hub, FILE + "}")
    assert response.status_code == 422
    error = response.json()["error"]
    assert (error["code"], error["message"]) == ("bad_comments", "line 14 of the file: nothing should follow here")
    assert kept(hub) == []


def test_dates_are_of_the_zone_that_is_told(hub):
    text = '{"gpu1": [{"name": "ann", "date": "2026-12-01 18:00"}]}'
    end = imported(hub, text, zone="America/New_York", dry_run=True)["entries"][0]["end"]
    assert end - imported(hub, text, dry_run=True)["entries"][0]["end"] == 6 * 3600
    assert post(hub, text, zone="Nowhere/Land").json()["error"]["code"] == "when_unclear"


@pytest.mark.parametrize("role", ["viewer", "member"])
def test_admins_alone(hub, role):
    assert post(hub, FILE, role=role).status_code == 403
    assert kept(hub) == []


def test_it_is_in_the_audit_log(hub):
    imported(hub, FILE)
    (entry,) = noted(hub)
    assert (entry.who, entry.action, entry.target) == ("admin", "reservation.import", "comments.json")
    assert entry.detail["gpus"] == ["gpu1:0-1", "gpu10:1"]
    assert entry.detail["reserved"] == 3


def test_what_is_written_can_be_imported(hub):
    imported(hub, FILE)
    text = comments.write(hub.table.current(), NOW.timestamp(), NOW.tzinfo)
    assert imported(hub, text)["counts"] == {"already": 3}
