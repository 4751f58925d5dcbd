"""A new password: who needs the old one, and who came by a link because they have forgotten it."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette

from gpulse.api.application import create_app
from gpulse.auth.directory import Directory
from gpulse.store import Records
from tests.api.asking import ask
from tests.api.fleets import small
from tests.api.people import PASSWORD, People, make_people
from tests.auth.conftest import Clock

OWN_PAGE = {"Origin": "http://hub", "X-Gpulse": "1"}
NEW = "quite another password"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def people(tmp_path: Path, clock: Clock) -> Iterator[People]:
    people = make_people(tmp_path, clock=clock)
    yield people
    people.records.close()


@pytest.fixture
def app(people: People) -> Starlette:
    return create_app(small(), access=people.access())


def signed_in(app: Starlette, path: str, content: dict[str, str]) -> dict[str, str]:
    """What the page sends from then on."""
    answer = ask(app, path, "POST", OWN_PAGE, json.dumps(content).encode())
    assert answer.status_code == 200, answer.text
    cookie = answer.headers["set-cookie"].partition(";")[0]
    return {**OWN_PAGE, "Cookie": cookie, "X-Gpulse": answer.json()["page_key"]}


def by_link(app: Starlette, people: People) -> dict[str, str]:
    code = asyncio.run(people.directory.links.make(people.accounts["member"]))
    return signed_in(app, "/api/v1/session/link", {"code": code})


def change(app: Starlette, page: dict[str, str], old: str = "") -> httpx.Response:
    return ask(app, "/api/v1/me/password", "POST", page, json.dumps({"old": old, "new": NEW}).encode())


def needs_old(app: Starlette, page: dict[str, str]) -> bool:
    return ask(app, "/api/v1/me", headers=page).json()["needs_old_password"]


def test_who_came_by_a_link_need_not_know_the_old_one(app: Starlette, people: People):
    page = by_link(app, people)
    assert needs_old(app, page) is False
    assert change(app, page).status_code == 200
    signed_in(app, "/api/v1/session", {"name": "member", "password": NEW})


def test_but_not_for_long(app: Starlette, people: People, clock: Clock):
    page = by_link(app, people)
    clock.now += 899
    assert needs_old(app, page) is False
    clock.now += 1
    assert needs_old(app, page) is True
    refused = change(app, page)
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "wrong_password")
    assert change(app, page, PASSWORD).status_code == 200


def test_also_after_a_restart(app: Starlette, people: People, clock: Clock, tmp_path: Path):
    """The hub that is asked need not be the one that let in."""
    page = by_link(app, people)
    people.records.close()
    with Records(tmp_path) as records:
        restarted = people._replace(records=records, directory=Directory(records, clock))
        assert needs_old(create_app(small(), access=restarted.access()), page) is False


def test_who_came_by_password_is_told_that_the_old_one_is_wrong(app: Starlette):
    page = signed_in(app, "/api/v1/session", {"name": "member", "password": PASSWORD})
    assert needs_old(app, page) is True
    refused = change(app, page, "not the old one")
    assert refused.status_code == 401
    assert refused.json()["error"]["message"] == "the old password is wrong"
    assert "gpulse user link member" in refused.json()["error"]["detail"]
    assert change(app, page).status_code == 401, "and without one"
