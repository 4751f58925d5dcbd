"""No request keeps the loop for long, whatever it asks for: one question must not stop the hub for everybody."""

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.types import ASGIApp

from gpulse.api.application import create_app
from gpulse.config.reservations import Reservations as Settings
from gpulse.fleet.fleet import Fleet
from gpulse.reservations.desk import Desk
from gpulse.reservations.table import Reservations
from gpulse.simulate.crowd import Crowd
from tests.api import asking
from tests.api.people import make_people
from tests.attacks.loop_time import Asked, Told, ask
from tests.attacks.questions import KNOWN, questions

NOW = 1_800_000_000.0
NODES = 4000
# CPU time of the loop's thread, so that a busy machine fails nothing.
LONGEST_SECONDS = 0.05
TRIES = 4


class Site:
    """A hub with many nodes and an admin."""

    def __init__(self, app: ASGIApp, fleet: Fleet, key: str):
        self.app = app
        self.headers = {"Authorization": f"Bearer {key}"}
        self._fleet = fleet
        self._sent = tuple((name.lower().encode(), value.encode()) for name, value in self.headers.items())

    def ask(self, asked: Asked) -> Told:
        """The least of some tries: caches that others have emptied are not its work."""
        best = None
        for _ in range(TRIES):
            # No answer is kept from the try before.
            self._fleet.generation += 1
            told = ask(self.app, asked._replace(headers=(*asked.headers, *self._sent)))
            best = told if best is None or told.longest < best.longest else best
            if best.longest <= LONGEST_SECONDS:
                break
        assert best is not None
        return best


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder: Path = tmp_path_factory.mktemp("hub")
    crowd = Crowd(NODES, 1, NOW, templates=20, seconds=4, every=2)
    fleet = Fleet(clock=lambda: 5000.0, wall=lambda: NOW)
    for place in crowd.places():
        fleet.place(place)
        crowd.new_stream(place.name)
        fleet.line(place.name, crowd.line(place.name))
    fleet.tick()
    people = make_people(folder)
    with people.records:
        table = Reservations(people.records, lambda: NOW)
        desk = Desk(table, fleet, Settings(zone="Europe/Berlin"), lambda: NOW)
        gc.collect()
        yield Site(create_app(fleet, access=people.access(), desk=desk), fleet, people.key("admin"))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("asked", KNOWN, ids=lambda asked: f"{asked.path} {asked.query[:40]}")
def test_what_people_found(site: Site, asked: Asked):
    told = site.ask(asked)
    assert told.status < 500
    assert told.longest <= LONGEST_SECONDS


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(4))
def test_no_question_keeps_the_loop(site: Site, seed: int):
    statuses: dict[int, int] = {}
    slow: dict[str, Any] = {}
    for asked in questions(seed, 40):
        told = site.ask(asked)
        statuses[told.status] = statuses.get(told.status, 0) + 1
        if told.longest > LONGEST_SECONDS or told.status >= 500:
            slow[str(asked)] = (told.status, round(told.longest, 3))
    assert not slow
    # Some are taken, and some are refused: neither alone would show anything.
    assert statuses.get(200, 0) > 5
    assert sum(count for status, count in statuses.items() if status in (400, 422)) > 5


def test_a_question_has_a_budget_of_time(site: Site, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("gpulse.api.selection.select.__defaults__", (0.0,))
    refused = asking.ask(site.app, "/api/v1/gpus?q=nowhere", headers=site.headers)
    assert refused.status_code == 422
    assert refused.json()["error"]["code"] == "slow_filter"
