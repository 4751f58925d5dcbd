"""Who may ask what: every address of the description, with everybody who could come."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Route, WebSocketRoute

from gpulse.api.application import create_app
from gpulse.api.endpoint import Endpoint
from gpulse.api.hub import Ingest
from gpulse.api.openapi import document
from gpulse.api.routes import ENDPOINTS
from gpulse.auth.roles import ROLES, at_least
from gpulse.auth.sessions import Begun
from gpulse.auth.tokens import Tokens
from gpulse.auth.upgrades import Upgrades
from gpulse.config import Config, Privacy
from gpulse.fleet.places import Place
from gpulse.fleet.sight import Sight
from gpulse.reservations.desk import Desk
from gpulse.reservations.table import Reservations
from gpulse.transport.push import Push
from tests.api.asking import ask
from tests.api.fleets import small
from tests.api.people import PASSWORD, People, make_people, open_access

OWN_PAGE = {"Origin": "http://hub", "X-Gpulse": "1"}
DESCRIPTION = document(ENDPOINTS, "gpulse")["paths"]
ADDRESSES = [
    (path, method.upper(), operation["x-may"])
    for path, methods in DESCRIPTION.items()
    for method, operation in methods.items()
]
# Files of the page and the viewer, which tell nothing of the cluster.
FILES = {"/", "/config.json", "/api/openapi.json"}
# What a key must not do, whatever its scopes and whatever is in the body.
NOT_BY_KEY = {
    ("POST", "/api/v1/me/keys"),
    ("POST", "/api/v1/me/password"),
    ("POST", "/api/v1/me/feeds"),
    ("POST", "/api/v1/accounts/{account}/link"),
}
NEEDS = {"read": "viewer", "self": "viewer", "member": "member", "admin": "admin"}


class World(NamedTuple):
    """A hub nobody may read without signing in, another that everybody may, and all kinds of people."""

    people: People
    closed: Starlette
    open: Starlette
    # By what they are called: what they send with each request.
    callers: dict[str, dict[str, str]]


class Clock:
    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder, clock = tmp_path_factory.mktemp("hub"), Clock()
    people = make_people(folder, clock=clock)
    access = people.access()

    def page(begun: Begun) -> dict[str, str]:
        sent = people.page(begun)
        return OWN_PAGE | sent | {"Cookie": f"other=1; {sent['Cookie']}"}

    def key(text: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {text}"}

    async def ended() -> tuple[Begun, str, str, str, Begun, Begun]:
        directory, member = people.directory, people.accounts["member"]
        gone = await directory.accounts.add("gone", "admin", PASSWORD)
        session_of_gone = await directory.sessions.begin(gone.id, "", "")
        key_of_gone = await directory.keys.create(gone.id, "x", ["read", "write", "admin"])
        await directory.accounts.disable(gone.id)
        revoked = await directory.keys.create(member, "x", ["read"])
        await directory.keys.revoke(revoked.split("_")[1])
        expired = await directory.keys.create(member, "x", ["read"], clock() + 60)
        signed_out = await directory.sessions.begin(people.accounts["admin"], "", "")
        await directory.sessions.end(signed_out.cookie.split("_")[1])
        old = await directory.sessions.begin(people.accounts["admin"], "", "")
        clock.ahead = 15 * 86400.0
        return session_of_gone, key_of_gone, revoked, expired, signed_out, old

    session_of_gone, key_of_gone, revoked, expired, signed_out, old = asyncio.run(ended())
    tokens = Tokens(people.records)
    callers = {
        "anonymous": {},
        "anonymous page": OWN_PAGE,
        **{f"session of {role}": page(people.session(role)) for role in ROLES},
        **{f"key of {role}": key(people.key(role)) for role in ROLES},
        "key of admin to read": key(people.key("admin", "read")),
        "key of admin to write": key(people.key("admin", "write")),
        "key of admin for metrics": key(people.key("admin", "metrics")),
        "session signed out": page(signed_out),
        "session idle for 15 days": page(old),
        "session of disabled": page(session_of_gone),
        "session forged": page(Begun(f"gps_{'0' * 12}_{'0' * 48}", f"gpp_{'0' * 12}_{'0' * 48}")),
        "cookie alone": OWN_PAGE | people.cookie(people.session("admin")),
        "cookie with the page key of another": OWN_PAGE
        | people.page(Begun(people.session("admin").cookie, people.session("viewer").page_key)),
        "page key alone": OWN_PAGE | {"X-Gpulse": people.session("admin").page_key},
        "key of disabled": key(key_of_gone),
        "key revoked": key(revoked),
        "key expired": key(expired),
        "key unknown": key(f"gpk_{'0' * 12}_{'0' * 48}"),
        "token of a node": key(tokens.create_node("gpu1")),
        "no key": key(""),
    }
    fleet = small()
    ingest = Ingest(tokens, Push(fleet, lambda name: Place(name=name)), Upgrades(folder))
    desk = Desk(Reservations(people.records), fleet, Config().reservations)
    closed = create_app(fleet, access=access, ingest=ingest, desk=desk)
    opened = create_app(fleet, access=people.access(anonymous=True), ingest=ingest, desk=desk)
    yield World(people, closed, opened, callers)
    people.records.close()


def asked(app: Starlette, path: str, method: str, headers: dict[str, str]) -> httpx.Response:
    filled = path.replace("{", "").replace("}", "")
    return ask(app, filled, method, headers, b"{}" if method in ("POST", "PATCH") else None)


def expected(may: str, caller: str, path: str, method: str, *, anonymous: bool) -> int:
    """401, 403, or 0 for whatever comes once somebody is let in."""
    if may == "node":
        # A key is no token, and a node's token is none to join with.
        return (403 if path.endswith("/join") else 0) if caller == "token of a node" else 401
    personal = path == "/api/v1/me" or path.startswith("/api/v1/session/sso")
    if may == "anyone" and method == "GET" and not personal:
        return 0
    if caller in ("key of disabled", "key revoked", "key expired", "key unknown", "no key", "token of a node"):
        return 401
    if method != "GET" and caller == "anonymous" and may != "read":
        # No page from here asks.
        return 403
    if may == "anyone":
        return 0
    kind, _, role = caller.partition(" of ")
    role, _, scope = role.replace(" for ", " to ").partition(" to ")
    if kind not in ("session", "key") or role not in ROLES:
        return 0 if anonymous and may == "read" else 401
    if not at_least(role, NEEDS[may]):
        return 403
    change = method != "GET" and may != "read"
    wanted = {"admin"} if may == "admin" else {"write"} if change else {"read"}
    wanted |= {"metrics"} if path == "/metrics" else set()
    if scope and scope not in wanted:
        return 403
    return 403 if kind == "key" and (method, path) in NOT_BY_KEY else 0


@pytest.mark.parametrize("anonymous", [False, True], ids=["closed", "open"])
@pytest.mark.parametrize(("path", "method", "may"), ADDRESSES, ids=str)
def test_every_address_and_everybody(world: World, path: str, method: str, may: str, anonymous: bool):
    app = world.open if anonymous else world.closed
    for caller, headers in world.callers.items():
        # Each of these ends sessions or keys of who asks.
        if method == "DELETE" and path == "/api/v1/session" and caller.startswith(("session of", "key of")):
            continue
        response = asked(app, path, method, headers)
        wanted = expected(may, caller, path, method, anonymous=anonymous)
        if wanted:
            assert response.status_code == wanted, (caller, response.text)
            assert may == "node" or "gpu1" not in response.text
        elif (method, path) != ("POST", "/api/v1/session"):
            assert response.status_code not in (401, 403), (caller, response.text)
        if may not in ("node", "anyone"):
            assert {"Authorization", "Cookie", "X-Gpulse"} <= set(response.headers["vary"].split(", "))


def test_the_words_of_refusals(world: World):
    def error(path: str, caller: str) -> dict[str, str]:
        return asked(world.closed, path, "GET", world.callers[caller]).json()["error"]

    assert error("/api/v1/nodes", "anonymous")["message"] == "sign in first"
    assert error("/api/v1/nodes", "anonymous")["code"] == "sign_in"
    told = error("/api/v1/accounts", "session of viewer")
    assert (told["code"], told["message"]) == ("forbidden", "needs the role admin; you are viewer")
    assert error("/api/v1/nodes", "key of admin for metrics")["code"] == "key_scope"
    assert error("/api/v1/nodes", "key revoked")["code"] == "key_revoked"
    assert error("/api/v1/nodes", "key expired")["code"] == "key_expired"


def test_no_address_without_a_rule(tmp_path: Path):
    app = create_app(small(), access=open_access(), built_page=tmp_path)
    routes = {route.path.replace(":path}", "}") for route in app.routes if isinstance(route, Route)}
    ruled = {path for path, _, _ in ADDRESSES}
    assert {path for path in routes - ruled if not path.startswith("/api/docs")} == FILES
    assert {route.path for route in app.routes if isinstance(route, WebSocketRoute)} <= ruled
    assert {may for _, _, may in ADDRESSES} >= {"anyone", "read", "self", "member", "admin", "node"}
    with pytest.raises(TypeError, match="may"):
        Endpoint(path="/x", name="x", summary="", answer=None, handle=ask)  # type: ignore[call-arg]


def test_sign_out_needs_somebody_who_is_signed_in(world: World):
    for caller in ("anonymous page", "session signed out", "session idle for 15 days", "session forged"):
        assert asked(world.open, "/api/v1/session", "DELETE", world.callers[caller]).status_code == 401


@pytest.mark.parametrize("role", ["viewer", "member", "admin"])
def test_keys_and_sessions_of_others_are_not_there(world: World, role: str):
    other = "member" if role != "member" else "viewer"
    key, begun = world.people.key(other), world.people.session(other)
    mine = world.callers[f"session of {role}"]
    for path in (f"/api/v1/me/keys/{key.split('_')[1]}", f"/api/v1/me/sessions/{begun.cookie.split('_')[1]}"):
        assert ask(world.closed, path, "DELETE", mine).status_code == 404
    assert world.people.directory.keys.check(key).name == other
    assert world.people.directory.sessions.check(*begun) is not None
    for path in ("/api/v1/me/keys", "/api/v1/me/sessions"):
        text = ask(world.closed, path, headers=mine).text
        assert key.split("_")[1] not in text
        assert begun.cookie.split("_")[1] not in text


def test_a_cookie_that_signs_nobody_in_is_cleared(world: World):
    name = world.people.access().cookies.name
    for caller in ("session signed out", "session of disabled", "session forged"):
        response = asked(world.open, "/api/v1/summary", "GET", world.callers[caller])
        assert response.status_code == 200
        assert response.headers["set-cookie"] == f"{name}=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax"
    assert "set-cookie" not in asked(world.open, "/api/v1/summary", "GET", world.callers["session of viewer"]).headers
    assert "set-cookie" not in asked(world.open, "/api/v1/summary", "GET", {}).headers


def test_a_cookie_that_lacks_its_page_key_stays(world: World):
    """A page of another port sends it, and so does who types an address: the hub's own page in the next tab has it."""
    for caller in ("cookie alone", "cookie with the page key of another"):
        for app in (world.open, world.closed):
            for path in ("/api/v1/me", "/api/v1/summary", "/api/v1/accounts"):
                assert "set-cookie" not in asked(app, path, "GET", world.callers[caller]).headers
        me = asked(world.open, "/api/v1/me", "GET", world.callers[caller]).json()
        assert (me["name"], me["way"], me["page_key"]) == (None, "anonymous", None)


def test_of_another_site_what_the_browser_sends_by_itself_does_not_count(world: World):
    headers = world.callers["session of admin"] | {"Origin": "https://evil.example.org"}
    assert ask(world.closed, "/api/v1/nodes", headers=headers).status_code == 401
    assert ask(world.open, "/api/v1/me", headers=headers).json()["name"] is None


def test_authorization_of_other_kinds_is_the_affair_of_a_proxy(world: World):
    basic = {"Authorization": "Basic YW5uOnNlY3JldA=="}
    assert ask(world.open, "/api/v1/nodes", headers=basic).status_code == 200
    assert ask(world.closed, "/api/v1/nodes", headers=basic).json()["error"]["code"] == "sign_in"
    # A browser sends it by itself, also for another site.
    spoofed = world.callers["session of admin"] | basic | {"Origin": "https://evil.example.org"}
    refused = ask(world.closed, "/api/v1/accounts", "POST", spoofed, b"{}")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "cross_site")


def test_what_is_seen_of_others(world: World):
    def sight(role: str | None, others: Any) -> Sight:
        access = world.people.access(anonymous=True, config=Config(privacy=Privacy(others=others)))
        who = access.anonymous if role is None else world.people.directory.keys.check(world.people.key(role))
        return access.sight(who)

    assert sight("admin", "anonymous") == sight("viewer", "full") == sight(None, "full") == Sight("full")
    assert sight("viewer", "names") == Sight("names", frozenset({"viewer"}))
    assert sight(None, "anonymous") == Sight("anonymous")
    assert Sight("names").lowered("anonymous") == Sight("anonymous")
    assert Sight("names").lowered("full") == Sight("names")


def test_mine_is_what_who_is_signed_in_holds(world: World):
    asyncio.run(world.people.directory.accounts.add("alice", "viewer"))
    alice = world.people.directory.accounts.by_name("alice")
    assert alice is not None
    key = asyncio.run(world.people.directory.keys.create(alice.id, "x", ["read"]))
    mine = ask(world.open, "/api/v1/gpus?q=mine", headers={"Authorization": f"Bearer {key}"}).json()
    assert [gpu["node"] for gpu in mine["items"]] == ["gpu1", "gpu2", "gpu10"]
    other = ask(world.open, "/api/v1/gpus?q=mine", headers=world.callers["key of viewer"]).json()
    assert other["total"] == 0, "not what was kept for alice"
    assert ask(world.open, "/api/v1/gpus?q=mine").status_code == 422


def test_who_may_read_is_asked_before_what_is_kept(world: World):
    tag = ask(world.closed, "/api/v1/summary", headers=world.callers["session of viewer"]).headers["etag"]
    assert ask(world.closed, "/api/v1/summary", headers={"If-None-Match": tag}).status_code == 401


def test_the_password_of_older_monitors_is_a_key(world: World):
    def status(passwd: str) -> int:
        return ask(world.closed, "/get-status", "POST", content=b'{"passwd": "%s"}' % passwd.encode()).status_code

    assert status(world.people.key("viewer", "read")) == 200
    assert status(world.people.key("viewer", "metrics")) == 403
    assert status("") == status("1234") == status(f"gpk_{'0' * 12}_{'0' * 48}") == 401
    assert ask(world.open, "/get-status", "POST", content=b'{"passwd": "1234"}').status_code == 200


def test_prometheus_needs_no_more_than_its_scope(world: World):
    assert ask(world.closed, "/metrics", headers=world.callers["key of admin for metrics"]).status_code == 200
    assert ask(world.closed, "/metrics").status_code == 401
    assert ask(world.closed, "/healthz").status_code == ask(world.closed, "/config.json").status_code == 200
