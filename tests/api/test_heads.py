"""Requests whose head does not end: refused in words, and nothing of them is kept."""

import contextlib
import json
import socket
import time

import pytest

from gpulse.api import heads
from gpulse.api.application import SERVER_OPTIONS, create_app
from gpulse.fleet.fleet import Fleet
from tests.api.people import open_access
from tests.api.serving import exchange, served


@pytest.fixture(scope="module")
def port():
    with served(create_app(Fleet(), access=open_access())) as port:
        yield port


def refused(answer: bytes) -> tuple[int, str]:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"connection: close" in head
    return int(head.split()[1]), json.loads(body)["error"]["code"]


def kept_sending(port: int, start: bytes, piece: bytes, most: int) -> tuple[bytes, int]:
    """What the server says to somebody who goes on until it ends the connection, and how much it took."""
    with socket.create_connection(("127.0.0.1", port), 5) as connection:
        connection.sendall(start)
        connection.settimeout(0.01)
        sent = 0
        while sent < most:
            try:
                connection.sendall(piece)
                sent += len(piece)
                return connection.recv(65536), sent
            except TimeoutError:
                continue
            except OSError:
                # What it said before it hung up can still be read.
                with contextlib.suppress(OSError):
                    return connection.recv(65536), sent
                return b"", sent
        raise AssertionError(f"it has taken {sent} bytes")


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (b"GET /", b"x" * 8192),
        (b"GET / HTTP/1.1\r\nX: ", b"x" * 8192),
        (b"GET / HTTP/1.1\r\n", b"X: " + b"y" * 8000 + b"\r\n"),
        (b"GET / HTTP/1.1\r\n", b"a:b\r\n" * 1000),
    ],
    ids=["address", "one header", "headers", "many headers"],
)
def test_endless_heads(port, start, piece):
    answer, sent = kept_sending(port, start, piece, 16 * heads.MOST_HEAD_BYTES)
    assert refused(answer) == (431, "head_too_large")
    assert sent <= 2 * heads.MOST_HEAD_BYTES


def test_large_heads_are_taken(port):
    request = b"GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\nX: " + b"y" * 50_000 + b"\r\n\r\n"
    assert exchange(port, request).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost:", b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\nGET /h"])
def test_slow_heads(port, sent, monkeypatch):
    """From the first moment on, and of a second request on the same connection."""
    monkeypatch.setattr(heads, "HEAD_SECONDS", 0.5)
    began = time.monotonic()
    answer = exchange(port, sent)
    assert refused(b"HTTP/1.1 4" + answer.rpartition(b"HTTP/1.1 4")[2]) == (408, "too_slow")
    assert 0.4 < time.monotonic() - began < 4


def test_time_for_the_head_is_not_that_for_the_answer(port, monkeypatch):
    """A slow body, or a connection that is kept, has its own."""
    monkeypatch.setattr(heads, "HEAD_SECONDS", 0.3)
    with socket.create_connection(("127.0.0.1", port), 5) as connection:
        for _ in range(3):
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
            assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
            time.sleep(0.5)


def test_a_kept_connection_is_not_ended_under_a_proxy(port):
    """A request that comes in the moment of the end is lost, and a POST cannot be sent again."""
    proxies_seconds = 60
    assert SERVER_OPTIONS["timeout_keep_alive"] > proxies_seconds
    with socket.create_connection(("127.0.0.1", port), 5) as connection:
        for pause in (5.5, 0):
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
            assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
            # The server's own would be 5 s.
            time.sleep(pause)


def test_others_are_served_meanwhile(port):
    drips = [socket.create_connection(("127.0.0.1", port), 5) for _ in range(200)]
    for one in drips:
        one.sendall(b"GET / HTTP/1.1\r\nX: ")
    try:
        request = b"GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
        # Before the time of the others is over.
        assert exchange(port, request, heads.HEAD_SECONDS - 10).startswith(b"HTTP/1.1 200 ")
    finally:
        for one in drips:
            one.close()
