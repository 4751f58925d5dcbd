"""A real nginx in front of everything, and what strangers send through it: paths, headers, bodies, smuggling."""

import asyncio
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import websockets

from tests.api.fleets import card, snapshot
from tests.attacks.speaking import asked, exchange, status_of
from tests.hub.running import GPULSE, RunningHub
from tests.system.agents import CALM
from tests.system.test_nginx import documented_location, nginx

PASSWORD = "correct horse battery staple"  # noqa: S105 - of an account that tests make


class Site:
    def __init__(self, front: str, hub: RunningHub, data: Path):
        self.front = front
        self.page = f"{front}/gpulse/"
        self.hub = hub
        self.data = data

    def run(self, *words: str, told: str = "") -> str:
        command = [GPULSE, *words, "--data", str(self.data)]
        return subprocess.run(
            command, input=told, capture_output=True, text=True, check=True, timeout=60
        ).stdout.strip()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """As documented; people sign in at the hub, and nobody reads without."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "gpulse.toml").write_text('[hub]\nlocal = false\n[access]\nanonymous = "none"\nhosts = ["127.0.0.1"]\n')
    with RunningHub("up", "--data", str(folder / "data"), directory=folder) as hub:
        location = documented_location().replace("http://127.0.0.1:7070/", hub.url)
        assert hub.url in location
        with nginx(folder, location) as front:
            yield Site(front, hub, folder / "data")


@pytest.fixture(scope="module")
def ann(site: Site) -> Iterator[httpx.Client]:
    """Signed in through nginx, as the page does it."""
    site.run("user", "add", "ann", "--role", "admin", "--password-stdin", told=PASSWORD + "\n")
    with httpx.Client(base_url=site.page, timeout=30) as client:
        client.headers.update({"Origin": site.front, "X-Gpulse": "1"})
        answer = client.post("api/v1/session", json={"name": "ann", "password": PASSWORD})
        assert answer.status_code == 200, answer.text
        client.headers["X-Gpulse"] = answer.json()["page_key"]
        yield client


def test_all_of_it_works_through_nginx(site: Site, ann: httpx.Client, tmp_path: Path):
    """Login, ingest, lists, the live stream and an export: else all refusals below would say nothing."""
    token = site.run("token", "create", "gpu1").split()[-1]
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    body = snapshot("gpu1", [card("GPU-1", 0)], probe=CALM)
    site.hub.until(lambda: httpx.post(f"{site.page}api/v1/ingest", headers=headers, content=body).status_code == 200)
    assert [node["name"] for node in ann.get("api/v1/nodes").json()["items"]] == ["gpu1"]
    key = ann.post("api/v1/me/keys", json={"label": "x", "scopes": ["read"]}).json()

    async def first() -> Any:
        address = site.page.replace("http", "ws", 1) + "api/v1/live?format=json"
        sent = {"Authorization": f"Bearer {key['key']}"}
        async with websockets.connect(address, additional_headers=sent, open_timeout=30) as live:
            return json.loads(await asyncio.wait_for(live.recv(), 30))

    assert asyncio.run(first())["type"] == "full"
    ran = subprocess.run(
        [GPULSE, "export", str(tmp_path / "made"), "--hub", site.page],
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "GPULSE_KEY": key["key"]},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    (data,) = (tmp_path / "made").rglob("data.js")
    assert b"GPU-1" in data.read_bytes()


READ = ("api/v1/nodes", "api/v1/accounts", "api/v1/audit", "metrics", "free")
TWISTED = (
    "//{}",
    "/./{}",
    "/x/../{}",
    "/..;/{}",
    "/;/{}",
    "/%2e/{}",
    "/x/%2e%2e/{}",
    "/%2f{}",
    "/x%2f..%2f{}",
    "/{}/",
    "/{}//",
    "/{}/.",
    "/{}%2f",
    "/{};x",
    "/{}%00",
    "/{}%20",
    "/{}?",
    "/{}#",
    "/{}/..%2f{}",
    "/healthz/../{}",
    "/healthz/..%2f{}",
    "/assets/..%2f{}",
    "/api/docs/..;/{}",
    "/..%5c{}",
    "/%252e%252e/{}",
)


@pytest.mark.parametrize("twist", TWISTED)
def test_no_spelling_of_an_address_opens_it(site: Site, twist: str):
    """nginx tidies some up and passes others on: the hub decides by what it then serves."""
    for address in READ:
        for target in (f"/gpulse{twist.format(address, address)}", twist.format(f"gpulse/{address}", address)):
            answer = asked(site.front, target)
            # 200 is the page's own front, which tells nothing of the cluster.
            assert status_of(answer) in (200, 301, 308, 400, 401, 403, 404), target
            head, _, body = answer.partition(b"\r\n\r\n")
            if status_of(answer) == 200:
                assert b"text/html" in head.lower(), (target, answer[:300])
            assert b'"items"' not in body and b"gpu1" not in body and b"gpulse_" not in body, target


FORGED = (
    ("X-Forwarded-For: 127.0.0.1",),
    ("X-Forwarded-For: 127.0.0.1, 127.0.0.1", "X-Real-IP: 127.0.0.1"),
    ("Forwarded: for=127.0.0.1;proto=https;host=hub",),
    ("X-Forwarded-Proto: https", "X-Forwarded-Host: evil.example.org"),
    ("X-Original-URL: /healthz", "X-Rewrite-URL: /healthz"),
    ("X-HTTP-Method-Override: DELETE",),
    ("X-Remote-User: ann", "X-Remote-Groups: gpu-admins", "X-Gpulse-Proxy-Secret: "),
    ("Remote-User: ann", "X-Forwarded-User: ann", "X-Auth-Request-User: ann"),
    ("Connection: close, X-Forwarded-For, Authorization",),
)


@pytest.mark.parametrize("headers", FORGED, ids=str)
def test_no_header_makes_anybody_anybody(site: Site, headers: tuple[str, ...]):
    for address in READ:
        answer = asked(site.front, f"/gpulse/{address}", *headers)
        assert status_of(answer) == 401, (address, answer[:300])
        assert b"evil.example.org" not in answer
    me = json.loads(asked(site.front, "/gpulse/api/v1/me", *headers).partition(b"\r\n\r\n")[2])
    assert me["name"] is None


SECOND = b"GET /gpulse/api/v1/accounts HTTP/1.1\r\nHost: localhost\r\n\r\n"
SMUGGLED = {
    "two lengths": b"Content-Length: 5\r\nContent-Length: 60\r\n\r\nhello" + SECOND,
    "length and chunks": b"Content-Length: 60\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SECOND,
    "a strange coding": b"Transfer-Encoding: xchunked\r\nContent-Length: 0\r\n\r\n" + SECOND,
    "chunks twice": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + SECOND,
    "a blank before the colon": b"Transfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + SECOND,
    "a folded header": b"Transfer-Encoding:\r\n chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + SECOND,
    "a signed length": b"Content-Length: +5\r\n\r\nhello" + SECOND,
    "a chunk that is larger": b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n" + SECOND,
    "a bare line feed": b"Content-Length: 5\n\r\nhello" + SECOND,
}


@pytest.mark.parametrize("smuggled", SMUGGLED)
def test_smuggled_requests(site: Site, smuggled: str):
    """Whether nginx or the hub refuses: no second answer is anybody's but a stranger's, and the hub stays up."""
    head = b"POST /gpulse/api/v1/session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    request = head + SMUGGLED[smuggled]
    try:
        answer = exchange(site.front, request + b"GET /gpulse/healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
    except (TimeoutError, ConnectionResetError):
        # A request that is still being waited for has been answered by nobody.
        answer = b""
    statuses = [int(one) for one in re.findall(rb"HTTP/1\.[01] (\d{3})", answer)]
    assert b'"items"' not in answer
    assert all(status not in (500, 502) for status in statuses), answer[:500]
    assert httpx.get(f"{site.page}healthz", timeout=30).status_code == 200


def test_a_session_is_never_anothers(site: Site, ann: httpx.Client):
    """nginx uses its connections to the hub for many people: none gets what another was answered."""
    with httpx.Client(base_url=site.page, timeout=30) as stranger:
        for _ in range(20):
            assert ann.get("api/v1/me").json()["name"] == "ann"
            assert stranger.get("api/v1/me").json()["name"] is None
            assert stranger.get("api/v1/accounts").status_code == 401
    for address in ("api/v1/me", "api/v1/accounts", "api/v1/nodes"):
        stored = ann.get(address).headers["cache-control"]
        assert "no-store" in stored or "private" in stored or "no-cache" in stored, (address, stored)


@pytest.mark.parametrize("size", [900_000, 3 << 20, 40 << 20])
def test_large_bodies(site: Site, size: int):
    """Refused by nginx or by the hub, before they fill anything."""
    for address in ("api/v1/session", "api/v1/ingest", "api/v1/reservations/import"):
        try:
            answer = httpx.post(site.page + address, content=b"x" * size, timeout=60)
        except httpx.TransportError:
            # It had said no before all was sent.
            continue
        assert answer.status_code in (400, 401, 403, 411, 413, 415, 422), (address, answer.text[:300])
    assert httpx.get(f"{site.page}healthz", timeout=30).status_code == 200
