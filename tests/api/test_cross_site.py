"""Pages of other sites: nothing is changed in a visitor's name, and nothing is read but by a key."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpulse.api.application import create_app
from gpulse.api.cross_site import check_own_site, is_own_site
from gpulse.api.openapi import document
from gpulse.api.routes import ENDPOINTS
from gpulse.errors import RequestError
from tests.api.asking import ask
from tests.api.fleets import small
from tests.api.people import People, make_people

EVIL = "https://evil.example.org"
PORTAL = "https://portal.example.org"
CHANGES = [
    (path, method.upper())
    for path, methods in document(ENDPOINTS, "gpulse")["paths"].items()
    for method, operation in methods.items()
    if method != "get" and operation["x-may"] not in ("node", "read")
]


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    people = make_people(tmp_path_factory.mktemp("hub"))
    yield people
    people.records.close()


@pytest.mark.parametrize(("path", "method"), CHANGES)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Gpulse": "1"},
        {"Origin": "http://hub"},
        {"Origin": "http://hub", "X-Gpulse": "2"},
        {"Origin": EVIL, "X-Gpulse": "1"},
        # Even by who knows both.
        {"Origin": EVIL, "X-Gpulse": "KEY"},
        {"X-Gpulse": "KEY"},
        {"Origin": "null", "X-Gpulse": "1"},
        {"Origin": "http://hub:8080", "X-Gpulse": "1"},
        {"Origin": "http://hub.evil.example.org", "X-Gpulse": "1"},
        {"Origin": "file://hub", "X-Gpulse": "1"},
        {"Origin": "http://[", "X-Gpulse": "1"},
        {"Origin": EVIL, "X-Gpulse": "1", "Content-Type": "text/plain", "Sec-Fetch-Site": "same-origin"},
    ],
    ids=lambda headers: " ".join(headers.values()) or "nothing",
)
def test_no_change_by_a_session_from_elsewhere(people: People, path: str, method: str, headers: dict[str, str]):
    access = people.access(anonymous=True)
    begun = people.session("admin")
    if headers.get("X-Gpulse") == "KEY":
        headers = headers | {"X-Gpulse": begun.page_key}
    cookie = people.cookie(begun)
    app = create_app(small(), access=access)
    filled = path.replace("{", "").replace("}", "")
    refused = ask(app, filled, method, cookie | headers, b"{}" if method != "DELETE" else None)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "cross_site"), refused.text
    assert "set-cookie" not in refused.headers


def test_there_are_changes_to_be_tested():
    assert ("/api/v1/session", "POST") in CHANGES
    assert ("/api/v1/accounts/{account}", "PATCH") in CHANGES
    assert len(CHANGES) >= 10


@pytest.mark.parametrize(
    ("origin", "host", "same"),
    [
        ("http://hub:7070", "hub:7070", True),
        ("https://Hub", "hub", True),
        ("https://hub", "hub:443", True),
        ("http://hub", "hub:443", False),
        ("http://[::1]:7070", "[::1]:7070", True),
        ("https://user@hub", "hub", False),
        ("http://hub/", "hub", False),
    ],
)
def test_a_site_is_its_host_and_port(origin: str, host: str, same: bool):
    headers = {"origin": origin, "host": host, "x-gpulse": "1"}
    assert is_own_site(headers) is same
    if same:
        check_own_site(headers, frozenset())
    else:
        with pytest.raises(RequestError):
            check_own_site(headers, frozenset())


def test_a_key_is_sent_by_no_browser_by_itself(people: People):
    app = create_app(small(), access=people.access())
    headers = {"Authorization": f"Bearer {people.key('admin')}", "Origin": EVIL}
    body = json.dumps({"name": "ann", "role": "viewer"}).encode()
    assert ask(app, "/api/v1/accounts", "POST", headers, body).status_code == 201
    assert asyncio.run(people.directory.audit.entries())[0].way == "key"


def test_sites_of_the_list_read_with_a_key_and_never_with_a_cookie(tmp_path: Path):
    people = make_people(tmp_path)
    access = people.access(origins=frozenset({PORTAL}))
    app = create_app(small(), access=access, origins=[PORTAL])
    first = {
        "Origin": PORTAL,
        "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": "authorization",
    }
    allowed = ask(app, "/api/v1/nodes", "OPTIONS", first)
    assert allowed.status_code == 204
    assert allowed.headers["access-control-allow-origin"] == PORTAL
    assert allowed.headers["access-control-allow-headers"] == "authorization"
    assert allowed.headers["access-control-allow-methods"] == "GET"
    assert "access-control-allow-credentials" not in allowed.headers
    read = ask(app, "/api/v1/nodes", headers={"Origin": PORTAL, "Authorization": f"Bearer {people.key('viewer')}"})
    assert read.status_code == 200
    assert read.headers["access-control-allow-origin"] == PORTAL
    assert "access-control-allow-credentials" not in read.headers
    page = {"Origin": PORTAL, **people.page(people.session("admin"))}
    assert ask(app, "/api/v1/nodes", headers=page).status_code == 401
    for method in ("POST", "DELETE", "PATCH"):
        assert (
            ask(app, "/api/v1/nodes", "OPTIONS", first | {"Access-Control-Request-Method": method}).status_code == 405
        )
    assert ask(app, "/api/v1/nodes", "OPTIONS", first | {"Origin": EVIL}).status_code == 405
    people.records.close()
