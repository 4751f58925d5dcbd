"""By which names the hub may be asked: a name that somebody has bound to our address is none of them."""

import asyncio
import socket
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from gpulse.api.application import create_app
from gpulse.api.hosts_allowed import HostsAllowed, name_of, own_names
from gpulse.errors import RequestError
from tests.api.asking import ask
from tests.api.fleets import small
from tests.api.people import open_access
from tests.api.serving import exchange, served

HERE = socket.gethostname()
ALLOWED = HostsAllowed(["gpus.example.org"], ["node7", "node7.lab.example"])


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:7070",
        "10.1.2.3",
        "[::1]:7070",
        "[2001:db8::7]",
        "localhost:7070",
        "LOCALHOST",
        "gpulse.localhost:80",
        "gpus.example.org",
        "GPUS.example.org.:443",
        "node7",
        "node7.lab.example:7070",
    ],
)
def test_names_of_ours(host: str):
    ALLOWED.check(host)


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "evil.example.org",
        "evil.example.org:7070",
        "gpus.example.org.evil.example",
        "127.0.0.1.evil.example",
        "127.0.0.1@evil.example",
        "evil.example/127.0.0.1",
        "localhost.evil.example",
        "notlocalhost",
        "[::1].evil.example",
        "[::1",
        "0x7f000001.evil.example",
        "127.0.0.1:7070:7070",
        "127.0.0.1:x",
        "node8",
    ],
)
def test_names_of_others(host: str | None):
    with pytest.raises(RequestError) as caught:
        ALLOWED.check(host)
    assert (caught.value.status, caught.value.code) == (421, "unknown_host")
    assert "access.hosts" in caught.value.detail


def test_names_without_ports():
    assert name_of("A.b:1") == "a.b"
    assert name_of("[::1]:1") == "::1"
    assert name_of(":80") is None


def test_the_machine_knows_its_names_without_asking_anybody(tmp_path: Path):
    resolver = tmp_path / "resolv.conf"
    resolver.write_text("# search no.example\nnameserver 192.0.2.1\nsearch lab.example. example\n")
    assert own_names("node7", resolver) == ["node7", "node7", "node7.lab.example", "node7.example"]
    assert own_names("node7.x.example", tmp_path / "none") == ["node7.x.example", "node7"]


@pytest.mark.parametrize("path", ["/", "/api/v1/nodes", "/healthz", "/api/docs", "/config.json", "/nothing"])
def test_everything_is_asked_by_a_name_of_ours(path: str):
    app = create_app(small(), access=open_access())
    refused = ask(app, path, headers={"Host": "evil.example.org"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (421, "unknown_host")
    assert refused.headers["x-content-type-options"] == "nosniff"
    assert ask(app, path, headers={"Host": f"{HERE}:7070"}).status_code != 421
    assert ask(app, path, headers={"Host": "evil.example.org", "Authorization": "Basic eDp5"}).status_code == 421
    # Nodes may know the hub by any name; and it is no browser that sends this.
    assert ask(app, path, headers={"Host": "hub.cluster", "Authorization": "Bearer x"}).status_code != 421


def test_changes_and_the_live_stream_too():
    with served(create_app(small(), access=open_access())) as port:
        head = b"POST /api/v1/session HTTP/1.1\r\nHost: evil.example.org\r\nContent-Length: 100\r\n\r\n{"
        assert exchange(port, head).startswith(b"HTTP/1.1 421 ")
        assert exchange(port, b"GET / HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 421 "), "without a host"

        async def watch(host: str) -> None:
            address = f"ws://{host}:{port}/api/v1/live"
            async with connect(address, host="127.0.0.1", port=port):
                pass

        with pytest.raises(InvalidStatus) as refused:
            asyncio.run(watch("evil.example.org"))
        assert refused.value.response.status_code == 421
        asyncio.run(watch("gpulse.localhost"))
