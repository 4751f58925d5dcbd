"""Signing in and out, what the cookie is like, what is written down of it, and how guessing ends."""

import asyncio
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from gpulse.api.application import create_app
from gpulse.auth.noting import THE_HUB
from gpulse.config import Access as AccessSettings
from gpulse.config import Config, Proxy, Web
from tests.api.asking import ask
from tests.api.fleets import small
from tests.api.people import HOSTS, PASSWORD, People, make_people
from tests.api.serving import served
from tests.patience import PATIENCE_SECONDS

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


def page_of(response: httpx.Response) -> dict[str, str]:
    """What the page that has just signed in sends from now on."""
    return {"Cookie": response.headers["set-cookie"].partition(";")[0], "X-Gpulse": response.json()["page_key"]}


def me(app: Starlette, page: dict[str, str]) -> Any:
    return ask(app, "/api/v1/me", headers=page).json()


def audit(people: People) -> list[tuple[str, str, str]]:
    """What was done since the test made its accounts, without asking anybody."""
    entries = asyncio.run(people.directory.audit.entries())
    return [(entry.action, entry.who, entry.target) for entry in reversed(entries) if entry.who != THE_HUB.name]


def test_by_password(app: Starlette, people: People):
    assert me(app, {})["may_read"] is False
    response = sign_in(app)
    assert response.status_code == 200
    told = {"name": "member", "role": "member", "way": "session", "may_read": True, "sight": "names", "sso": None}
    assert told.items() <= response.json().items()
    assert response.headers["cache-control"] == "no-store"
    name = f"gpulse_{people.directory.hub_id[:8]}"
    cookie, *words = response.headers["set-cookie"].split("; ")
    assert cookie.startswith(f"{name}=gps_")
    assert words == ["Path=/", f"Max-Age={90 * 86400}", "HttpOnly", "SameSite=Lax"]
    page, key = page_of(response), response.json()["page_key"]
    assert re.fullmatch(r"gpp_[0-9a-f]{12}_[0-9a-f]{48}", key)
    # It is told once: an answer that anybody kept or read along tells nothing of it.
    assert me(app, page) == response.json() | {"page_key": None}
    assert ask(app, "/api/v1/nodes", headers=page).status_code == 200
    assert audit(people) == [("session.begin", "member", "member")]
    assert key.split("_")[2] not in str(asyncio.run(people.directory.audit.entries()))
    (session,) = ask(app, "/api/v1/me/sessions", headers=page).json()["items"]
    assert (session["browser"], session["address"]) == ("Browser/1", "127.0.0.1")


def test_every_sign_in_is_a_new_session_and_what_was_there_before_ends(app: Starlette):
    """Also where somebody else has put the cookie there before, who then has what they had, and no more."""
    planted = page_of(sign_in(app, "viewer"))
    own = page_of(sign_in(app, "admin", **planted))
    assert own != planted
    assert me(app, planted)["name"] is None
    assert me(app, own)["name"] == "admin"
    assert page_of(sign_in(app, "admin")) != own
    theirs = page_of(sign_in(app, "viewer"))
    fresh = page_of(sign_in(app, "admin", Cookie=theirs["Cookie"]))
    assert (me(app, theirs)["name"], me(app, fresh)["name"]) == ("viewer", "admin")
    assert me(app, theirs | {"X-Gpulse": fresh["X-Gpulse"]})["name"] is None


def test_a_stolen_cookie_is_nobody(people: People):
    """Whatever listens on another port of the hub's machine is sent it by the browsers of people who look there."""
    app = create_app(small(), access=people.access(anonymous=True))
    page = page_of(sign_in(app, "admin"))
    stolen, origin = {"Cookie": page["Cookie"]}, {"Origin": "http://hub"}
    nobody = ask(app, "/api/v1/me").json()
    for sent in (stolen, stolen | origin, stolen | OWN_PAGE, stolen | {"X-Gpulse": page["Cookie"].partition("=")[2]}):
        answer = ask(app, "/api/v1/me", headers=sent)
        assert answer.json() == nobody
        assert "set-cookie" not in answer.headers, "that would sign out who it was stolen from"
        seen = ask(app, "/api/v1/nodes/gpu1", headers=sent).json()
        assert seen["processes"] == ask(app, "/api/v1/nodes/gpu1").json()["processes"]
        assert ask(app, "/api/v1/accounts", headers=sent).status_code == 401
    before = asyncio.run(people.directory.audit.entries())
    for path, method, content in (
        (SESSION, "DELETE", None),
        (f"{SESSION}?everywhere=true", "DELETE", None),
        ("/api/v1/me/keys", "POST", {"label": "x", "scopes": ["admin"]}),
        ("/api/v1/accounts", "POST", {"name": "mallory", "role": "admin"}),
    ):
        assert send(app, path, content, method, **stolen).status_code == 401
    assert asyncio.run(people.directory.audit.entries()) == before
    assert me(app, page)["name"] == "admin"


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


def test_a_link_waits_for_nobody(app: Starlette, people: People):
    """Neither for codes that were none, nor for passwords that were wrong: else anybody could lock out everybody."""
    made_up = "gpl_" + "0" * 12 + "_" + "0" * 48
    for code in ("x", made_up) * 15:
        refused = send(app, f"{SESSION}/link", {"code": code})
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "link_bad")
    for number in range(20):
        assert sign_in(app, f"user{number}", "a wrong password").status_code == 401
    assert sign_in(app).status_code == 429, "of passwords the address has had its share"
    code = asyncio.run(people.directory.links.make(people.accounts["viewer"]))
    assert send(app, f"{SESSION}/link", {"code": code}).json()["name"] == "viewer"


def test_sign_out_here_and_everywhere(app: Starlette, people: People):
    one, other, third = (page_of(sign_in(app)) for _ in range(3))
    response = send(app, SESSION, method="DELETE", **one)
    assert response.json()["name"] is None
    assert response.headers["set-cookie"].startswith(f"{one['Cookie'].partition('=')[0]}=; Path=/; Max-Age=0")
    assert [me(app, page)["name"] for page in (one, other, third)] == [None, "member", "member"]
    assert send(app, f"{SESSION}?everywhere=true", method="DELETE", **other).status_code == 200
    assert [me(app, page)["name"] for page in (other, third)] == [None, None]
    assert audit(people)[-1] == ("session.end_all", "member", "member")


def test_one_of_my_other_browsers(app: Starlette):
    one, other = (page_of(sign_in(app)) for _ in range(2))
    listed = ask(app, "/api/v1/me/sessions", headers=one).json()
    assert listed["this"] == one["X-Gpulse"].split("_")[1]
    path = f"/api/v1/me/sessions/{other['X-Gpulse'].split('_')[1]}"
    assert send(app, path, method="DELETE", **one).json() == {"done": True}
    assert (me(app, one)["name"], me(app, other)["name"]) == ("member", None)
    assert send(app, path, method="DELETE", **one).status_code == 404


def test_my_password(app: Starlette, people: People):
    one, other = (page_of(sign_in(app)) for _ in range(2))
    new = "quite another password"

    def change(old: str, wanted: str) -> httpx.Response:
        return send(app, "/api/v1/me/password", {"old": old, "new": wanted}, **one)

    assert change("not mine", new).status_code == 401
    assert change(PASSWORD, "short").json()["error"]["code"] == "bad_password"
    assert change(PASSWORD, new).status_code == 200
    assert (me(app, one)["name"], me(app, other)["name"]) == ("member", None)
    assert (sign_in(app).status_code, sign_in(app, password=new).status_code) == (401, 200)
    assert ("account.password", "member", "member") in audit(people)


def test_the_first_password_of_who_came_by_a_link(app: Starlette, people: People):
    account = asyncio.run(people.directory.accounts.operator("ann"))
    code = asyncio.run(people.directory.links.make(account.id))
    page = page_of(send(app, f"{SESSION}/link", {"code": code}))
    assert me(app, page)["has_password"] is False
    wanted = {"old": "", "new": PASSWORD}
    assert send(app, "/api/v1/me/password", wanted, **page).status_code == 200
    assert sign_in(app, "ann").status_code == 200


def test_my_keys(app: Starlette, people: People):
    page = page_of(sign_in(app))
    wanted = {"label": "nightly", "scopes": ["read"], "expires_at": time.time() + 300 * 86400}
    made = send(app, "/api/v1/me/keys", wanted, **page)
    assert made.status_code == 201
    key = made.json()["key"]
    bearer = {"Authorization": f"Bearer {key}"}
    assert ask(app, "/api/v1/nodes", headers=bearer).status_code == 200
    listed = ask(app, "/api/v1/me/keys", headers=page)
    (shown,) = listed.json()["items"]
    assert (shown["label"], shown["scopes"], shown["state"]) == ("nightly", ["read"], "live")
    assert shown["used_at"] > 0
    assert key.split("_")[2] not in listed.text
    path = f"/api/v1/me/keys/{key.split('_')[1]}"
    assert send(app, path, method="DELETE", **page).status_code == 200
    assert ask(app, "/api/v1/nodes", headers=bearer).json()["error"]["code"] == "key_revoked"
    assert [action for action, _, _ in audit(people)] == ["session.begin", "key.make", "key.revoke"]
    assert key.split("_")[2] not in str(asyncio.run(people.directory.audit.entries()))


def test_every_key_ends(app: Starlette):
    page = page_of(sign_in(app))

    def make(**more: Any) -> httpx.Response:
        return send(app, "/api/v1/me/keys", {"label": "x", "scopes": ["read"], **more}, **page)

    usual = make().json()["expires_at"]
    assert abs(usual - time.time() - 90 * 86400) < 60
    for far in (time.time() + 500 * 86400, 4e9, 0):
        assert (make(expires_at=far).status_code, make(expires_at=far).json()["error"]["code"]) == (400, "bad_expiry")
    assert make(expires_at=None).status_code == 400, "for ever is no answer"


def test_keys_go_with_the_password_or_by_an_admin(app: Starlette, people: People):
    page, admins = page_of(sign_in(app)), page_of(sign_in(app, "admin"))
    key, other = ({"Authorization": f"Bearer {people.key(role, 'read')}"} for role in ("member", "viewer"))

    def status(headers: dict[str, str]) -> int:
        return ask(app, "/api/v1/nodes", headers=headers).status_code

    wanted = {"old": PASSWORD, "new": PASSWORD}
    assert send(app, "/api/v1/me/password", wanted, **page).status_code == 200
    assert status(key) == 200
    assert send(app, "/api/v1/me/password", wanted | {"revoke_keys": True}, **page).status_code == 200
    assert (status(key), status(other)) == (401, 200)
    path = f"/api/v1/accounts/{people.accounts['viewer']}/keys"
    assert send(app, path, None, "DELETE", **page).status_code == 403
    assert send(app, path, None, "DELETE", **admins).json() == {"ended": 1}
    assert status(other) == 401
    assert audit(people)[-1] == ("key.revoke_all", "admin", "viewer")
    assert send(app, "/api/v1/accounts/000000000000/keys", None, "DELETE", **admins).status_code == 404


def test_another_role_is_noted_with_the_one_before(app: Starlette, people: People):
    page = page_of(sign_in(app, "admin"))
    send(app, f"/api/v1/accounts/{people.accounts['viewer']}", {"role": "member"}, "PATCH", **page)
    entry = asyncio.run(people.directory.audit.entries())[0]
    assert (entry.action, entry.detail) == ("account.role", {"role_before": "viewer", "role": "member"})


def test_a_change_that_cannot_be_made_changes_nothing(app: Starlette, people: People):
    """Not even the part of it that could."""
    page, own = page_of(sign_in(app, "admin")), f"/api/v1/accounts/{people.accounts['admin']}"
    noted = audit(people)
    for wanted in ({"display": "Root", "role": "viewer"}, {"display": "Root", "disabled": True}):
        refused = send(app, own, wanted, "PATCH", **page)
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "last_admin")
        assert me(app, page)["display"] == ""
    assert audit(people) == noted
    other = f"/api/v1/accounts/{people.accounts['viewer']}"
    assert send(app, other, {"display": "Vi", "role": "member"}, "PATCH", **page).json()["display"] == "Vi"
    assert len(audit(people)) == len(noted) + 2


def test_codes_that_are_none_are_noted_once_a_minute(app: Starlette, people: People):
    for _ in range(5):
        assert send(app, f"{SESSION}/link", {"code": "gpl_x"}).status_code == 401
    assert audit(people) == [("session.refuse", "anonymous", "")]


def test_accounts_by_an_admin(app: Starlette, people: People):
    page = page_of(sign_in(app, "admin"))
    made = send(app, "/api/v1/accounts", {"name": "ann", "role": "viewer", "password": PASSWORD}, **page)
    assert made.status_code == 201
    path = f"/api/v1/accounts/{made.json()['id']}"
    taken = send(app, "/api/v1/accounts", {"name": "ANN", "role": "viewer"}, **page)
    assert (taken.status_code, taken.json()["error"]["code"]) == (409, "name_taken")
    hers = page_of(sign_in(app, "ann"))
    assert send(app, path, {"role": "member"}, "PATCH", **page).json()["role"] == "member"
    assert me(app, hers)["role"] == "member", "at once"
    assert send(app, f"{path}/sessions", None, "DELETE", **page).json() == {"ended": 1}
    assert me(app, hers)["name"] is None
    code = send(app, f"{path}/link", {}, **page).json()["code"]
    hers = page_of(send(app, f"{SESSION}/link", {"code": code}))
    assert send(app, path, {"disabled": True}, "PATCH", **page).json()["disabled"] is True
    assert me(app, hers)["name"] is None
    assert sign_in(app, "ann").json()["error"]["code"] == "account_disabled"
    own = f"/api/v1/accounts/{people.accounts['admin']}"
    assert send(app, own, {"role": "viewer"}, "PATCH", **page).json()["error"]["code"] == "last_admin"
    lines = ask(app, "/api/v1/audit", headers={**page, "Accept": "application/x-ndjson"})
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
    first = ask(app, "/api/v1/audit?limit=2", headers=page).json()
    assert [one["id"] for one in first["items"]] == [entries[0]["id"], entries[1]["id"]]
    rest = ask(app, f"/api/v1/audit?before={first['next']}", headers=page).json()
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
        assert httpx.get(f"{address}/me", headers=spoofed, timeout=PATIENCE_SECONDS).json()["name"] is None
        own = {"Origin": f"http://127.0.0.1:{port}", "X-Gpulse": "1"}
        wanted = {"name": "member", "password": PASSWORD}
        signed_in = httpx.post(f"{address}/session", json=wanted, headers=spoofed | own, timeout=PATIENCE_SECONDS)
        assert "Secure" not in signed_in.headers["set-cookie"]
    (session,) = people.directory.sessions.list(people.accounts["member"])
    assert session.address == "127.0.0.1"
