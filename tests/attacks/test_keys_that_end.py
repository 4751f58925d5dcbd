"""An admin's key that ends, in the wrong hands: it must not become something that stays."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import msgspec
import pytest
from starlette.applications import Starlette

from gpulse.api.application import create_app
from tests.api.asking import ask
from tests.api.fleets import small
from tests.api.people import PASSWORD, People, make_people

ANOTHER = "another battery horse"


@pytest.fixture
def people(tmp_path: Path) -> Iterator[People]:
    people = make_people(tmp_path)
    yield people
    people.records.close()


@pytest.fixture
def hub(people: People) -> Starlette:
    return create_app(small(), access=people.access())


def by_key(hub: Starlette, people: People, method: str, path: str, body: object = None) -> httpx.Response:
    headers = {"Authorization": f"Bearer {people.key('admin')}", "Content-Type": "application/json"}
    return ask(hub, path, method, headers, msgspec.json.encode(body))


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PATCH", "/api/v1/accounts/{admin}", {"password": ANOTHER}),
        ("PATCH", "/api/v1/accounts/{member}", {"password": ANOTHER}),
        ("PATCH", "/api/v1/accounts/{member}", {"role": "admin"}),
        ("POST", "/api/v1/accounts/{admin}/link", {}),
        ("POST", "/api/v1/accounts/{member}/link", {}),
        ("POST", "/api/v1/accounts", {"name": "eve", "role": "admin"}),
        ("POST", "/api/v1/accounts", {"name": "eve", "role": "viewer", "password": ANOTHER}),
        ("POST", "/api/v1/me/keys", {"label": "for ever", "scopes": ["admin"]}),
        ("POST", "/api/v1/me/password", {"old": PASSWORD, "new": ANOTHER}),
    ],
)
def test_a_key_makes_nothing_that_outlives_it(hub: Starlette, people: People, method: str, path: str, body: object):
    answer = by_key(hub, people, method, path.format_map(people.accounts), body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "not_by_key"), answer.text
    accounts = people.directory.accounts
    assert [one.role for one in accounts.list()] == ["admin", "member", "viewer"]
    assert accounts.by_name("eve") is None


def test_what_a_key_of_an_admin_is_for(hub: Starlette, people: People):
    assert by_key(hub, people, "POST", "/api/v1/accounts", {"name": "eve", "role": "member"}).status_code == 201
    changed = by_key(hub, people, "PATCH", f"/api/v1/accounts/{people.accounts['member']}", {"role": "viewer"})
    assert (changed.status_code, changed.json()["role"]) == (200, "viewer")
