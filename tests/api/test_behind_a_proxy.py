"""What came through a proxy: nobody reads by default, and whom it vouches for in vain is told why."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpulse.api.application import create_app
from gpulse.config import Access as AccessSettings
from gpulse.config import Config, Proxy, Roles
from tests.api.asking import ask
from tests.api.fleets import small
from tests.api.people import HOSTS, PASSWORD, People, make_people

FORWARDED = ["X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Forwarded", "X-Real-IP", "Via"]


@pytest.fixture
def people(tmp_path: Path) -> Iterator[People]:
    people = make_people(tmp_path)
    yield people
    people.records.close()


@pytest.mark.parametrize("header", FORWARDED)
def test_nobody_reads_by_default(people: People, header: str):
    """Though everybody on this machine does."""
    app = create_app(small(), access=people.access(anonymous=True))
    assert ask(app, "/api/v1/nodes").status_code == 200
    for name in (header, header.lower(), header.upper()):
        for value in ("192.0.2.7", ""):
            sent = {name: value}
            assert ask(app, "/api/v1/nodes", headers=sent).status_code == 401
            assert ask(app, "/api/v1/me", headers=sent).json()["may_read"] is False
    assert ask(app, "/metrics", headers={header: "192.0.2.7"}).status_code == 401
    elsewhere = {header: "192.0.2.7", "Origin": "https://portal.example.org"}
    assert ask(app, "/api/v1/nodes", headers=elsewhere).status_code == 401
    key = {header: "192.0.2.7", "Authorization": f"Bearer {people.key('viewer')}"}
    assert ask(app, "/api/v1/nodes", headers=key).status_code == 200


@pytest.mark.parametrize("header", FORWARDED)
def test_everybody_reads_where_that_was_set(people: People, header: str):
    config = Config(access=AccessSettings(hosts=HOSTS, anonymous="read"))
    app = create_app(small(), access=people.access(anonymous=True, config=config))
    assert ask(app, "/api/v1/nodes", headers={header: "192.0.2.7"}).status_code == 200


def signing_in(people: People, anonymous: bool = False):
    """A hub whose proxy says who asks."""
    proxy = Proxy(
        header="X-User",
        addresses=("127.0.0.0/8",),
        groups_header="X-Groups",
        roles=Roles(member=("staff",)),
        default_role="none",
    )
    config = Config(access=AccessSettings(hosts=HOSTS, proxy=proxy))
    return create_app(small(), access=people.access(config=config, anonymous=anonymous))


def test_a_name_that_is_taken_is_told_in_words(people: People):
    app = signing_in(people)
    sent = {"X-User": "admin", "X-Groups": "staff"}
    me = ask(app, "/api/v1/me", headers=sent)
    assert (me.status_code, me.json()["name"], me.json()["may_read"]) == (200, None, False)
    assert "gpulse user connect admin --proxy" in me.json()["refused"]
    refused = ask(app, "/api/v1/nodes", headers=sent)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "name_taken")
    assert "gpulse user connect admin --proxy" in refused.json()["error"]["detail"]
    # And so it is for others who are not let in.
    assert "no role here" in ask(app, "/api/v1/me", headers={"X-User": "eve"}).json()["refused"]
    assert ask(app, "/api/v1/me", headers={"X-User": "eve", "X-Groups": "staff"}).json().get("refused") is None
    assert ask(app, "/api/v1/me").json().get("refused") is None


def test_who_is_refused_may_sign_in_another_way(people: People):
    app = signing_in(people)
    sent = {"X-User": "admin", "X-Groups": "staff", "Origin": "http://hub", "X-Gpulse": "1"}
    wanted = json.dumps({"name": "admin", "password": PASSWORD}).encode()
    answer = ask(app, "/api/v1/session", "POST", sent, wanted)
    assert answer.status_code == 200, answer.text
    page = sent | {"Cookie": answer.headers["set-cookie"].partition(";")[0], "X-Gpulse": answer.json()["page_key"]}
    me = ask(app, "/api/v1/me", headers=page).json()
    assert (me["name"], me["role"], me["way"], me.get("refused")) == ("admin", "admin", "session", None)
    assert ask(app, "/api/v1/accounts", headers=page).status_code == 200


def test_an_account_that_is_connected(people: People):
    app = signing_in(people)
    sent = {"X-User": "admin", "X-Groups": "staff"}
    asyncio.run(people.directory.accounts.connect(people.accounts["admin"], "proxy", "admin"))
    me = ask(app, "/api/v1/me", headers=sent).json()
    assert (me["name"], me["role"], me["way"], me["may_have_password"]) == ("admin", "member", "proxy", False)
