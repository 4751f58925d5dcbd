"""A second import changes nothing, whatever became of the reservations of the first."""

import asyncio
import json
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from gpulse.reservations.model import Changes, Place
from gpulse.reservations.rules import By
from gpulse.reservations.table import MEMORY_SECONDS, Reservations
from gpulse.store import Records
from tests.api.moving import NOW, Moving, imported, moving

ROOT = By("admin", admin=True)
SLOT = {"name": "ann", "date": "2027-11-01 18:00", "comment": "x"}
# Both are one reservation.
FILE = json.dumps({"gpu1": [SLOT, SLOT]})


class Clock:
    def __init__(self) -> None:
        self.now = NOW.timestamp()

    def __call__(self) -> float:
        return self.now


class Before(NamedTuple):
    """A hub after an import, and the reservation that was made."""

    hub: Moving
    clock: Clock
    made: str

    def change(self, **changes: object) -> None:
        asyncio.run(self.hub.table.change(self.made, Changes(**changes), ROOT))  # type: ignore[arg-type]

    def end(self) -> None:
        asyncio.run(self.hub.table.end(self.made, ROOT))

    def pass_by(self, seconds: float) -> None:
        self.clock.now += seconds
        asyncio.run(self.hub.table.refresh())


@pytest.fixture
def before(tmp_path) -> Iterator[Before]:
    clock = Clock()
    with moving(tmp_path, clock) as hub:
        first, second = imported(hub, FILE)["entries"]
        assert first["reservation"] == second["reservation"]
        yield Before(hub, clock, first["reservation"])


def moved(before: Before) -> None:
    before.change(places=(Place("gpu2", "0"),))


def one_of_two_left(before: Before) -> None:
    before.change(places=(Place("gpu1", "1"),))


def shortened_and_over(before: Before) -> None:
    before.change(end=before.clock.now + 3600)
    before.pass_by(7200)


def given_away_and_ended(before: Before) -> None:
    before.change(person="bob")
    before.end()


def moved_and_ended(before: Before) -> None:
    moved(before)
    before.end()


def ended_long_ago(before: Before) -> None:
    before.end()
    before.pass_by(MEMORY_SECONDS + 86400)
    assert before.hub.table.by_id(before.made) is None


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize(
    "since", [moved, one_of_two_left, shortened_and_over, given_away_and_ended, moved_and_ended, ended_long_ago]
)
def test_whatever_became_of_it(before, since, dry_run):
    since(before)
    revision, current = before.hub.table.revision, before.hub.table.current()
    again = imported(before.hub, FILE, dry_run=dry_run)
    assert again["counts"] == {"already": 2}
    assert {one["reservation"] for one in again["entries"]} == {before.made}
    assert (before.hub.table.revision, before.hub.table.current()) == (revision, current)


def test_it_is_told_what_became_of_it(before):
    moved(before)
    assert imported(before.hub, FILE)["entries"][0]["message"].startswith(
        "it was imported, and changed since: ann has gpu2:0 until Monday 1 November 2027, 18:00 CET"
    )
    before.end()
    assert imported(before.hub, FILE)["entries"][0]["message"].startswith("it was imported, and ended Wednesday 18")


def test_what_another_hub_imported_is_known(before, tmp_path):
    with Records(tmp_path) as records:
        asyncio.run(Reservations(records, before.clock).end(before.made, ROOT))
    assert imported(before.hub, FILE)["counts"] == {"already": 2}


@pytest.mark.parametrize("other", [{"name": "bob"}, {"date": "2027-11-02 18:00"}])
def test_an_entry_that_is_another_in_the_file_is_new(before, other):
    before.end()
    answer = imported(before.hub, json.dumps({"gpu1": [SLOT | other, SLOT]}))
    assert [one["outcome"] for one in answer["entries"]] == ["reserved", "already"]


def test_what_was_in_the_way_then_is_tried_again(before):
    text = json.dumps({"gpu1": [SLOT | {"name": "bob"}]})
    assert imported(before.hub, text)["counts"] == {"conflict": 1}
    before.end()
    assert imported(before.hub, text)["counts"] == {"reserved": 1}
