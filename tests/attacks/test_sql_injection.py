"""SQL in sort names, metrics, filters, names and ids: it reaches the database as a value, never as a statement."""

import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import pytest
from sqlalchemy import event, select
from sqlalchemy.engine import Connection, Engine
from starlette.applications import Starlette

from gpulse.api.application import create_app
from gpulse.api.endpoint import Endpoint
from gpulse.api.openapi import document
from gpulse.api.routes import ENDPOINTS
from gpulse.config import Config
from gpulse.reservations.desk import Desk
from gpulse.reservations.table import Reservations
from gpulse.store.tables import METADATA
from tests.api.asking import ask
from tests.api.fleets import small
from tests.api.people import People, make_people

MARK = "zz9injected"
PAYLOADS = (
    "name; DROP TABLE accounts; -- zz9injected",
    "name' OR '1'='1' -- zz9injected",
    'name" UNION SELECT password_hash FROM accounts -- zz9injected',
    "(CASE WHEN (SELECT 1 FROM accounts) THEN name ELSE zz9injected END)",
    "-zz9injected) OR 1=1 /*",
    "\\'; DELETE FROM audit; -- zz9injected %s :x ? $1",
    "zz9injected\0'",
)
# What is over is read from the database, the rest from memory.
PAST = "from=1&to=1000000000"
DESCRIPTION = document(ENDPOINTS, "gpulse")["paths"]
OPERATIONS = [(path, method, one) for path, methods in DESCRIPTION.items() for method, one in methods.items()]


class World(NamedTuple):
    people: People
    app: Starlette
    headers: dict[str, str]
    statements: list[str]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    statements: list[str] = []

    def noted(_connection: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        statements.append(statement)

    # Before the first connection: one that is open already tells nothing.
    event.listen(Engine, "before_cursor_execute", noted)
    people = make_people(tmp_path_factory.mktemp("hub"))
    fleet = small()
    desk = Desk(Reservations(people.records), fleet, Config().reservations)
    app = create_app(fleet, access=people.access(), desk=desk)
    try:
        yield World(people, app, {"Authorization": f"Bearer {people.key('admin')}"}, statements)
    finally:
        event.remove(Engine, "before_cursor_execute", noted)
        people.records.close()


def rows(world: World) -> dict[str, int]:
    """How many each table has."""

    def counted(connection: Connection) -> dict[str, int]:
        return {name: len(connection.execute(select(table)).all()) for name, table in METADATA.tables.items()}

    return world.people.records.read(counted).result()


def test_statements_are_heard(world: World) -> None:
    """Else no other test here could fail: a list of reservations is read by the name of a person."""
    world.statements.clear()
    assert ask(world.app, f"/api/v1/reservations?{PAST}&person=ann", headers=world.headers).status_code == 200
    assert [one for one in world.statements if "reservations.person = ?" in one]


def unharmed(world: World, path: str, method: str = "GET", body: Any = None) -> int:
    headers = world.headers | ({"Content-Type": "application/json"} if body is not None else {})
    answer = ask(world.app, path, method.upper(), headers, None if body is None else json.dumps(body).encode())
    assert answer.status_code < 500, (path, answer.text)
    assert "syntax error" not in answer.text and "sqlite3" not in answer.text and "psycopg" not in answer.text
    assert not [one for one in world.statements if MARK in one]
    return answer.status_code


def parameters(place: str) -> Iterator[tuple[str, str, str]]:
    for path, method, operation in OPERATIONS:
        for one in operation.get("parameters", ()):
            if one["in"] == place and (place == "path" or method == "get"):
                yield path, method, one["name"]


def test_the_description_has_what_is_attacked() -> None:
    found = {name for _path, _method, name in parameters("query")}
    assert {"sort", "q", "state", "group", "node", "nodes", "gpu", "only", "person", "before", "limit"} <= found


@pytest.mark.parametrize(("path", "method", "name"), list(parameters("query")))
def test_every_parameter(world: World, path: str, method: str, name: str) -> None:
    filled = path.replace("{", "").replace("}", "")
    before = rows(world)
    for payload in PAYLOADS:
        status = unharmed(world, f"{filled}?{urlencode({name: payload})}", method)
        if name in ("sort", "only", "limit", "offset", "before"):
            assert status in (400, 404, 422), (name, payload)
        if path == "/api/v1/reservations" and name not in ("from", "to"):
            unharmed(world, f"{filled}?{PAST}&{urlencode({name: payload})}")
    assert rows(world) == before


@pytest.mark.parametrize(("path", "method", "name"), list(parameters("path")))
def test_every_part_of_an_address(world: World, path: str, method: str, name: str) -> None:
    before = rows(world)
    for payload in PAYLOADS:
        filled = path.replace("{" + name + "}", quote(payload, safe="")).replace("{", "").replace("}", "")
        body = {} if method in ("post", "patch", "put") else None
        assert unharmed(world, filled, method, body) in (400, 403, 404, 405, 422), filled
    after = rows(world)
    # Attempts are in the audit log, and nothing else has changed.
    assert {name: count for name, count in after.items() if name != "audit"} == {
        name: count for name, count in before.items() if name != "audit"
    }


BODIES: list[tuple[str, dict[str, Any], str]] = [
    ("/api/v1/accounts", {"name": "x", "role": "viewer", "display": "x"}, "name display role"),
    ("/api/v1/me/keys", {"label": "x", "scopes": ["read"]}, "label scopes"),
    ("/api/v1/me/feeds", {"scope": "mine"}, "scope"),
    ("/api/v1/session", {"name": "x", "password": "x"}, "name password"),
    ("/api/v1/session/link", {"code": "x"}, "code"),
    ("/api/v1/reservations", {"gpus": [{"node": "n", "index": 0}], "comment": "x", "person": "x"}, "comment person"),
]


@pytest.mark.parametrize(("path", "body", "name"), [(path, body, one) for path, body, n in BODIES for one in n.split()])
def test_every_body(world: World, path: str, body: dict[str, Any], name: str) -> None:
    before = rows(world)
    now = time.time()
    times = {"start": now, "end": now + 3600} if path.endswith("reservations") else {}
    for payload, listed in itertools.product(PAYLOADS, (False, True)):
        unharmed(world, path, "POST", body | times | {name: [payload] if listed else payload})
    assert all(count >= before[table] for table, count in rows(world).items())


def test_a_name_that_is_sql_stays_one(world: World) -> None:
    """Where such a text may be kept, it comes back as it was."""
    label = PAYLOADS[1][:60]
    # Only a page makes keys.
    page = {"Origin": "http://hub", **world.people.page(world.people.session("admin"))}
    body = json.dumps({"label": label, "scopes": ["read"]}).encode()
    made = ask(world.app, "/api/v1/me/keys", "POST", page | {"Content-Type": "application/json"}, body)
    assert made.status_code in (200, 201), made.text
    listed = ask(world.app, "/api/v1/me/keys", headers=page).json()["items"]
    assert label in [one["label"] for one in listed]
    assert world.statements and not [one for one in world.statements if MARK in one]


def test_no_statement_is_put_together_from_texts() -> None:
    """The few with a braced part have a number or a table of ours in it."""
    source = Path(__file__).parents[2] / "src" / "gpulse"
    allowed = {"store/postgres.py", "store/restoring.py", "store/sqlite.py"}
    found = set()
    for path in source.rglob("*.py"):
        for line in path.read_text("utf-8").splitlines():
            words = ("SELECT ", "INSERT ", "UPDATE ", "DELETE ", "ORDER BY ", "PRAGMA ", "SET lock")
            if any(f'f"{word}' in line or f"f'{word}" in line for word in words):
                found.add(str(path.relative_to(source)))
    assert found <= allowed


def test_every_endpoint_is_in_the_description() -> None:
    assert {endpoint.path for endpoint in ENDPOINTS if isinstance(endpoint, Endpoint)} <= set(DESCRIPTION)
