"""Signing in and out, what the cookie is like, what is written down of it, and how guessing ends."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from gpulse.api.application import create_app
from gpulse.config import Access as AccessSettings
from gpulse.config import Config, Proxy, Web
from tests.api.asking import ask
from tests.api.fleets import small
from tests.api.people import HOSTS, PASSWORD, People, make_people
from tests.api.serving import served

OWN_PAGE = {"Origin": "http://hub", "X-Gpulse": "1", "User-Agent": "Browser/1"}
SESSION = "/api/v1/session"


@pytest.fixture
def people(tmp_path: Path) -> Iterator[People]:
    people = make_people(tmp_path)
    yield people
    people.records.close()


@pytest.fixture
def app(people: People) -> Starlette:
    return create_app(small(), access=people.access())


def send(app: Starlette, path: str, content: Any = None, method: str = "POST", **headers: str) -> httpx.Response:
    body = None if content is None else json.dumps(content).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return ask(app, path, method, OWN_PAGE | named, body)


def sign_in(app: Starlette, name: str = "member", password: str = PASSWORD, **headers: str) -> httpx.Response:
    return send(app, SESSION, {"name": name, "password": password}, **headers)


def cookie_of(response: httpx.Response) -> str:
    return response.headers["set-cookie"].partition(";")[0]


def me(app: Starlette, cookie: str) -> Any:
    return ask(app, "/api/v1/me", headers={"Cookie": cookie}).json()


def audit(people: People) -> list[tuple[str, str, str]]:
    entries = asyncio.run(people.directory.audit.entries())
    return [(entry.action, entry.who, entry.target) for entry in reversed(entries)]


def test_by_password(app: Starlette, people: People):
    assert me(app, "")["may_read"] is False
    response = sign_in(app)
    assert response.status_code == 200
    told = {"name": "member", "role": "member", "way": "session", "may_read": True, "sight": "names", "sso": None}
    assert told.items() <= response.json().items()
    assert response.headers["cache-control"] == "no-store"
    name = f"gpulse_{people.directory.hub_id[:8]}"
    cookie, *words = response.headers["set-cookie"].split("; ")
    assert cookie.startswith(f"{name}=gps_")
    assert words == ["Path=/", f"Max-Age={90 * 86400}", "HttpOnly", "SameSite=Lax"]
    assert me(app, cookie) == response.json()
    assert ask(app, "/api/v1/nodes", headers={"Cookie": cookie}).status_code == 200
    assert audit(people) == [("session.begin", "member", "member")]
    (session,) = ask(app, "/api/v1/me/sessions", headers={"Cookie": cookie}).json()["items"]
    assert (session["browser"], session["address"]) == ("Browser/1", "127.0.0.1")


def test_every_sign_in_is_a_new_session_and_what_was_there_before_ends(app: Starlette):
    """Also where somebody else has put the cookie there before."""
    planted = cookie_of(sign_in(app, "viewer"))
    own = cookie_of(sign_in(app, "admin", Cookie=planted))
    assert own != planted
    assert me(app, planted)["name"] is None
    assert me(app, own)["name"] == "admin"
    assert cookie_of(sign_in(app, "admin")) != own


def test_what_is_wrong_is_not_told_apart(app: Starlette, people: People):
    answers = [sign_in(app, name, "not the password") for name in ("member", "nobody", "Passw0rd typed here")]
    assert {(one.status_code, one.text) for one in answers} == {(401, answers[0].text)}
    assert answers[0].json()["error"]["code"] == "wrong_password"
    assert "set-cookie" not in answers[0].headers
    assert audit(people) == [("session.refuse", "anonymous", target) for target in ("member", "", "")]


def test_guessing_has_to_wait_and_the_right_password_too(app: Starlette):
    for _ in range(5):
        assert sign_in(app, "member", "a wrong password").status_code == 401
    refused = sign_in(app, "member", PASSWORD)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_many_attempts")
    assert 0 < int(refused.headers["retry-after"]) <= 5
    assert refused.headers["retry-after"] in refused.json()["error"]["message"]
    assert sign_in(app, "MEMBER", PASSWORD).status_code == 429, "the same account"
    assert sign_in(app, "admin").status_code == 200, "another account"


def test_by_a_link_once(app: Starlette, people: People):
    code = asyncio.run(people.directory.links.make(people.accounts["viewer"]))
    first = send(app, f"{SESSION}/link", {"code": code})
    assert (first.status_code, first.json()["name"]) == (200, "viewer")
    again = send(app, f"{SESSION}/link", {"code": code})
    assert (again.status_code, again.json()["error"]["code"]) == (401, "link_bad")
    assert code not in again.text
    expired = asyncio.run(people.directory.links.make(people.accounts["viewer"], seconds=0))
    assert send(app, f"{SESSION}/link", {"code": expired}).status_code == 401


def test_codes_of_links_are_not_guessed_for_long(app: Starlette):
    answers = [send(app, f"{SESSION}/link", {"code": "x"}).status_code for _ in range(22)]
    assert answers[:20] == [401] * 20
    assert answers[-1] == 429


def test_sign_out_here_and_everywhere(app: Starlette, people: People):
    one, other, third = (cookie_of(sign_in(app)) for _ in range(3))
    response = send(app, SESSION, method="DELETE", Cookie=one)
    assert response.json()["name"] is None
    assert response.headers["set-cookie"].startswith(f"{one.partition('=')[0]}=; Path=/; Max-Age=0")
    assert [me(app, cookie)["name"] for cookie in (one, other, third)] == [None, "member", "member"]
    assert send(app, f"{SESSION}?everywhere=true", method="DELETE", Cookie=other).status_code == 200
    assert [me(app, cookie)["name"] for cookie in (other, third)] == [None, None]
    assert audit(people)[-1] == ("session.end_all", "member", "member")


def test_one_of_my_other_browsers(app: Starlette):
    one, other = (cookie_of(sign_in(app)) for _ in range(2))
    listed = ask(app, "/api/v1/me/sessions", headers={"Cookie": one}).json()
    assert listed["this"] == one.split("_")[2]
    path = f"/api/v1/me/sessions/{other.split('_')[2]}"
    assert send(app, path, method="DELETE", Cookie=one).json() == {"done": True}
    assert (me(app, one)["name"], me(app, other)["name"]) == ("member", None)
    assert send(app, path, method="DELETE", Cookie=one).status_code == 404


def test_my_password(app: Starlette, people: People):
    one, other = (cookie_of(sign_in(app)) for _ in range(2))
    new = "quite another password"

    def change(old: str, wanted: str) -> httpx.Response:
        return send(app, "/api/v1/me/password", {"old": old, "new": wanted}, Cookie=one)

    assert change("not mine", new).status_code == 401
    assert change(PASSWORD, "short").json()["error"]["code"] == "bad_password"
    assert change(PASSWORD, new).status_code == 200
    assert (me(app, one)["name"], me(app, other)["name"]) == ("member", None)
    assert (sign_in(app).status_code, sign_in(app, password=new).status_code) == (401, 200)
    assert ("account.password", "member", "member") in audit(people)


def test_the_first_password_of_who_came_by_a_link(app: Starlette, people: People):
    account = asyncio.run(people.directory.accounts.operator("ann"))
    code = asyncio.run(people.directory.links.make(account.id))
    cookie = cookie_of(send(app, f"{SESSION}/link", {"code": code}))
    assert me(app, cookie)["has_password"] is False
    wanted = {"old": "", "new": PASSWORD}
    assert send(app, "/api/v1/me/password", wanted, Cookie=cookie).status_code == 200
    assert sign_in(app, "ann").status_code == 200


def test_my_keys(app: Starlette, people: People):
    cookie = cookie_of(sign_in(app))
    wanted = {"label": "nightly", "scopes": ["read"], "expires_at": 4e9}
    made = send(app, "/api/v1/me/keys", wanted, Cookie=cookie)
    assert made.status_code == 201
    key = made.json()["key"]
    bearer = {"Authorization": f"Bearer {key}"}
    assert ask(app, "/api/v1/nodes", headers=bearer).status_code == 200
    listed = ask(app, "/api/v1/me/keys", headers={"Cookie": cookie})
    (shown,) = listed.json()["items"]
    assert (shown["label"], shown["scopes"], shown["state"]) == ("nightly", ["read"], "live")
    assert shown["used_at"] > 0
    assert key.split("_")[2] not in listed.text
    path = f"/api/v1/me/keys/{key.split('_')[1]}"
    assert send(app, path, method="DELETE", Cookie=cookie).status_code == 200
    assert ask(app, "/api/v1/nodes", headers=bearer).json()["error"]["code"] == "key_revoked"
    assert [action for action, _, _ in audit(people)] == ["session.begin", "key.make", "key.revoke"]
    assert key.split("_")[2] not in str(asyncio.run(people.directory.audit.entries()))


def test_accounts_by_an_admin(app: Starlette, people: People):
    cookie = cookie_of(sign_in(app, "admin"))
    made = send(app, "/api/v1/accounts", {"name": "ann", "role": "viewer", "password": PASSWORD}, Cookie=cookie)
    assert made.status_code == 201
    path = f"/api/v1/accounts/{made.json()['id']}"
    taken = send(app, "/api/v1/accounts", {"name": "ANN", "role": "viewer"}, Cookie=cookie)
    assert (taken.status_code, taken.json()["error"]["code"]) == (409, "name_taken")
    hers = cookie_of(sign_in(app, "ann"))
    assert send(app, path, {"role": "member"}, "PATCH", Cookie=cookie).json()["role"] == "member"
    assert me(app, hers)["role"] == "member", "at once"
    assert send(app, f"{path}/sessions", None, "DELETE", Cookie=cookie).json() == {"ended": 1}
    assert me(app, hers)["name"] is None
    code = send(app, f"{path}/link", {}, Cookie=cookie).json()["code"]
    hers = cookie_of(send(app, f"{SESSION}/link", {"code": code}))
    assert send(app, path, {"disabled": True}, "PATCH", Cookie=cookie).json()["disabled"] is True
    assert me(app, hers)["name"] is None
    assert sign_in(app, "ann").json()["error"]["code"] == "account_disabled"
    own = f"/api/v1/accounts/{people.accounts['admin']}"
    assert send(app, own, {"role": "viewer"}, "PATCH", Cookie=cookie).json()["error"]["code"] == "last_admin"
    lines = ask(app, "/api/v1/audit", headers={"Cookie": cookie, "Accept": "application/x-ndjson"})
    assert lines.headers["content-type"] == "application/x-ndjson"
    entries = [json.loads(line) for line in lines.text.splitlines()]
    done = [(one["action"], one["target"]) for one in reversed(entries) if one["who"] == "admin"]
    assert done == [
        ("session.begin", "admin"),
        ("account.add", "ann"),
        ("account.role", "ann"),
        ("session.end_all", "ann"),
        ("link.make", "ann"),
        ("account.disable", "ann"),
    ]
    page = ask(app, "/api/v1/audit?limit=2", headers={"Cookie": cookie}).json()
    assert [one["id"] for one in page["items"]] == [entries[0]["id"], entries[1]["id"]]
    rest = ask(app, f"/api/v1/audit?before={page['next']}", headers={"Cookie": cookie}).json()
    assert (len(rest["items"]), rest["next"]) == (len(entries) - 2, None)
    assert PASSWORD not in lines.text
    assert code not in lines.text


@pytest.mark.parametrize("size", [4097, 2_000_000])
def test_large_bodies_are_not_read(app: Starlette, size: int):
    response = send(app, SESSION, {"name": "x", "password": "y" * size})
    assert response.status_code == 413
    assert "4,096" in response.json()["error"]["message"]


def test_secure_where_the_way_is(people: People):
    secure = create_app(small(), access=people.access())
    over_tls = sign_in(secure, Origin="https://hub")
    assert over_tls.headers["set-cookie"].endswith("; SameSite=Lax; Secure"), "a proxy before us speaks https"
    config = Config(
        access=AccessSettings(hosts=HOSTS, proxy=Proxy(header="X-User", addresses=("127.0.0.0/8",))),
        web=Web(base_path="/gpulse"),
    )
    app = create_app(small(), access=people.access(config=config), base_path="/gpulse")
    body = json.dumps({"name": "member", "password": PASSWORD}).encode()
    behind = ask(app, "/gpulse" + SESSION, "POST", OWN_PAGE | {"X-Forwarded-Proto": "https"}, body)
    assert "; Path=/gpulse/; " in behind.headers["set-cookie"]
    assert behind.headers["set-cookie"].endswith("; Secure")


def test_there_is_no_single_sign_on_unless_it_is_set_up(app: Starlette):
    for path in (f"{SESSION}/sso", f"{SESSION}/sso/callback?code=x&state=y&extra=z"):
        response = ask(app, path)
        assert response.status_code == 404
        assert "no single sign-on" in response.text


def test_nobody_becomes_the_proxy_by_a_header(people: People):
    """uvicorn would believe X-Forwarded-For of everybody on this machine."""
    config = Config(access=AccessSettings(hosts=HOSTS, proxy=Proxy(header="X-User", addresses=("192.0.2.7",))))
    with served(create_app(small(), access=people.access(config=config))) as port:
        spoofed = {"X-User": "ann", "X-Forwarded-For": "192.0.2.7", "X-Forwarded-Proto": "https"}
        address = f"http://127.0.0.1:{port}/api/v1"
        assert httpx.get(f"{address}/me", headers=spoofed).json()["name"] is None
        own = {"Origin": f"http://127.0.0.1:{port}", "X-Gpulse": "1"}
        wanted = {"name": "member", "password": PASSWORD}
        signed_in = httpx.post(f"{address}/session", json=wanted, headers=spoofed | own)
        assert "Secure" not in signed_in.headers["set-cookie"]
    (session,) = people.directory.sessions.list(people.accounts["member"])
    assert session.address == "127.0.0.1"
