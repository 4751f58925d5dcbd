"""A hub with a small fleet, people of every role and reservations, whose clock stands still unless a test moves it."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from starlette.applications import Starlette

from gpulse.api.application import create_app
from gpulse.config.reservations import Reservations as Settings
from gpulse.fleet.fleet import Fleet
from gpulse.reservations.desk import Desk
from gpulse.reservations.table import Reservations
from tests.api.asking import ask
from tests.api.fleets import small
from tests.api.people import People, make_people

PATH = "/api/v1/reservations/import"
ZONE = "Europe/Berlin"
NOW = datetime(2026, 11, 18, 10, 30, tzinfo=ZoneInfo(ZONE))

# Of the fleet of tests.api.fleets.small.
FILE = """{
  "gpu1": [  // both
    {"name": "ann", "date": "2026-12-01 18:00", "comment": "see http://lab.example // plan"},
    {"name": "Père Noël", "date": "2026-12-24 18:00", "comment": "booked"},
    {"name": "eve", "date": "2026-12-01 18:00", "comment": "there is no third"}
  ],
  "gpu2": {
    "0": {"name": "bob", "date": "2018-07-01 00:00", "comment": "long ago"},
    "1": {"name": "cyd", "date": "when done", "comment": ""}
  },
  "gpu10": [{}, {"name": "dan", "date": "2026-11-20", "comment": ""}],
  "gpu99": {"23": {"name": "ann", "date": "2026-12-01 18:00", "comment": ""}}
}
"""
OUTCOMES = [
    (3, "gpu1", "0", "reserved"),
    (4, "gpu1", "1", "reserved"),
    (5, "gpu1", "2", "no_such_gpu"),
    (8, "gpu2", "0", "over"),
    (9, "gpu2", "1", "not_understood"),
    (11, "gpu10", "0", "empty"),
    (11, "gpu10", "1", "reserved"),
    (12, "gpu99", "23", "no_such_gpu"),
]


class Moving(NamedTuple):
    app: Starlette
    people: People
    table: Reservations
    fleet: Fleet


@contextmanager
def moving(folder: Path, clock: Callable[[], float] = NOW.timestamp) -> Iterator[Moving]:
    people = make_people(folder)
    with people.records:
        table = Reservations(people.records, clock)
        fleet = small()
        desk = Desk(table, fleet, Settings(zone=ZONE), clock)
        yield Moving(create_app(fleet, access=people.access(), desk=desk), people, table, fleet)


def post(hub: Moving, text: str, role: str = "admin", **more: Any) -> Any:
    headers = {"Authorization": f"Bearer {hub.people.key(role)}"}
    return ask(hub.app, PATH, "POST", headers, json.dumps({"text": text, **more}).encode())


def imported(hub: Moving, text: str, **more: Any) -> Any:
    response = post(hub, text, **more)
    assert response.status_code == 200, response.text
    return response.json()
