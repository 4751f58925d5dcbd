"""What nodes send, on a real server: a token counts until the very end, and whoever is refused is counted."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from gpulse.api import endpoint
from gpulse.api.application import create_app
from gpulse.api.hub import Ingest
from gpulse.auth.tokens import Tokens
from gpulse.auth.upgrades import Upgrades
from gpulse.fleet import gpustat
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.places import Place
from gpulse.store import Records
from gpulse.transport.push import MOST_REFUSALS_A_SECOND, Push
from tests.api.fleets import card, snapshot
from tests.api.people import open_access
from tests.api.serving import served
from tests.patience import PATIENCE_SECONDS

UNKNOWN = "gpn_0123456789ab_" + "0" * 48


class Hub:
    """A hub that takes what nodes send."""

    def __init__(self, folder: Path, records: Records):
        self.fleet = Fleet()
        self.tokens = Tokens(records)
        self.stopped_at = 0.0
        self.push = Push(
            self.fleet, lambda name: Place(name, address="push"), clock=lambda: self.stopped_at or time.monotonic()
        )
        self.app = create_app(self.fleet, access=open_access(), ingest=Ingest(self.tokens, self.push, Upgrades(folder)))
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/api/v1/ingest"

    def post(self, token: str, body: bytes, path: str = "") -> httpx.Response:
        return httpx.post(
            self.url + path, content=body, headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE_SECONDS
        )

    def connect(self, token: str):
        url = f"ws://127.0.0.1:{self.port}/api/v1/ingest?instance={'0' * 16}"
        return connect(
            url,
            additional_headers={"Authorization": f"Bearer {token}"},
            compression=None,
            open_timeout=PATIENCE_SECONDS,
        )

    def stop_clock(self) -> None:
        """All that follows happens within one second, however slow this machine is."""
        self.stopped_at = time.monotonic()

    def revoke(self, node: str) -> None:
        """As somebody else does it; the hub has looked at its tokens since."""
        self.tokens.revoke([node])
        if node in self.push.names():
            self.push.forget(node, 4401, "revoked")


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with Records(tmp_path) as records:
        hub = Hub(tmp_path, records)
        with served(hub.app) as hub.port:
            yield hub


def in_two_pieces(hub: Hub, token: str, path: str, body: bytes, between) -> tuple[int, dict]:
    """The status and answer of a POST whose body comes in two pieces."""
    head = f"POST /api/v1/ingest{path} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n"
    with socket.create_connection(("127.0.0.1", hub.port), 10) as connection:
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[:5])
        between()
        connection.sendall(body[5:])
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    return int(answer.split()[1]), json.loads(answer.partition(b"\r\n\r\n")[2])


BODIES = {"": snapshot("gpu1", [card("GPU-1", 0)]), "/gpustat": b'{"gpus":[{"index":0,"processes":[]}]}'}


@pytest.mark.parametrize("path", BODIES)
def test_a_token_is_revoked_while_its_post_is_under_way(hub, path, monkeypatch):
    token = hub.tokens.create_node("gpu1")
    assert hub.post(token, BODIES[path], path).status_code == 200
    admitted = threading.Event()
    read = endpoint.read_body

    async def telling(request, *limits):
        admitted.set()
        return await read(request, *limits)

    monkeypatch.setattr(endpoint, "read_body", telling)

    def between():
        assert admitted.wait(PATIENCE_SECONDS)
        hub.revoke("gpu1")

    status, answer = in_two_pieces(hub, token, path, BODIES[path], between)
    assert (status, answer["error"]["code"]) == (401, "token_revoked")
    assert hub.fleet.names() == []
    assert hub.push.names() == frozenset()


def test_a_token_is_revoked_while_its_gpustat_is_read(hub, monkeypatch):
    token = hub.tokens.create_node("gpu1")
    to_line = gpustat.to_line

    def slow(body, node):
        hub.revoke("gpu1")
        return to_line(body, node)

    monkeypatch.setattr(gpustat, "to_line", slow)
    answer = hub.post(token, BODIES["/gpustat"], "/gpustat")
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "token_revoked")
    assert hub.fleet.names() == []


def test_a_token_is_revoked_while_its_agent_connects(hub, monkeypatch):
    token = hub.tokens.create_node("gpu1")
    admit = hub.push.admit

    def then_revoked(name, instance):
        admit(name, instance)
        hub.revoke(name)

    monkeypatch.setattr(hub.push, "admit", then_revoked)
    with hub.connect(token) as connection, pytest.raises(ConnectionClosed) as closed:
        connection.recv(30)
    assert closed.value.rcvd.code == 4401
    assert "revoked" in closed.value.rcvd.reason
    assert hub.fleet.names() == []
    assert hub.push.connected == 0


def test_posts_have_a_limit(hub):
    token = hub.tokens.create_node("gpu1")
    body = snapshot("gpu1", [card("GPU-1", 0)], padding="x" * 500_000)
    hub.stop_clock()
    answers = [hub.post(token, body) for _ in range(20)]
    assert answers[0].status_code == 200
    refused = [answer for answer in answers if answer.status_code != 200]
    assert {(answer.status_code, answer.json()["error"]["code"]) for answer in refused} == {(429, "too_much")}
    assert refused[0].headers["retry-after"] == "1"
    # What is refused as too much is not even read as gpustat's.
    assert hub.post(token, body, "/gpustat").status_code == 429
    hub.stopped_at += 1
    assert hub.post(token, body).status_code == 200


def test_all_refusals_are_counted(hub):
    node, join = hub.tokens.create_node("gpu1"), hub.tokens.create_join("gpu[2-3]", 4e9)
    assert hub.post(UNKNOWN, b"{}").status_code == 401
    assert hub.post(join, b"{}", "/gpustat").status_code == 403
    assert hub.post(node, b"{}").status_code == 422
    assert hub.post(node, bytes(2 << 20)).status_code == 413
    assert hub.post(join, b'{"node":"gpu9"}', "/join").status_code == 403
    assert hub.post(node, b'{"node":"gpu1"}', "/join").status_code == 403
    assert httpx.get(f"{hub.url}/agent", timeout=PATIENCE_SECONDS).status_code == 401
    with pytest.raises(InvalidStatus):
        hub.connect(UNKNOWN)
    assert hub.fleet.counters.refused == {
        "token_unknown": 2,
        "join_token": 1,
        "bad_snapshot": 1,
        "too_large": 1,
        "not_in_set": 1,
        "node_token": 1,
        "token_missing": 1,
    }


def test_a_flood_of_bad_tokens(hub, monkeypatch):
    """Past a number of them the database is not asked; whoever has a good one gets in all the same."""
    looked = []
    look = hub.tokens._look

    async def counting():
        looked.append(1)
        await look()

    monkeypatch.setattr(hub.tokens, "_look", counting)
    hub.stop_clock()
    token = hub.tokens.create_node("gpu1")
    with httpx.Client(headers={"Authorization": f"Bearer {UNKNOWN}"}, timeout=PATIENCE_SECONDS) as client:
        statuses = [client.post(hub.url, content=b"{}").status_code for _ in range(MOST_REFUSALS_A_SECOND + 20)]
        assert statuses == [401] * MOST_REFUSALS_A_SECOND + [503] * 20
        assert len(looked) == MOST_REFUSALS_A_SECOND
        answer = client.post(hub.url, content=b"{}")
        assert (answer.json()["error"]["code"], answer.headers["retry-after"]) == ("busy", "5")
        assert hub.post(token, BODIES[""]).status_code == 200
        with pytest.raises(InvalidStatus) as refused:
            hub.connect(UNKNOWN)
        assert refused.value.response.status_code == 503
        hub.stopped_at += 1
        assert client.post(hub.url, content=b"{}").status_code == 401
