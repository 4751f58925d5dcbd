"""Peers that send and never read, or ping without end: they are cut off, and the hub keeps nothing for them."""

import base64
import os
import re
import signal
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.attacks.speaking import connected, resident_bytes
from tests.hub.running import RunningHub
from tests.patience import PATIENCE_SECONDS

MIB = 1 << 20


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningHub]:
    with RunningHub("demo", "--nodes", "200", directory=tmp_path_factory.mktemp("hub")) as found:
        found.until(lambda: found.get("api/v1/summary")["nodes_up"] >= 100)
        found.baseline = open_descriptors(found)
        yield found


def open_descriptors(hub: RunningHub) -> int:
    return len(list(Path(f"/proc/{hub.process.pid}/fd").iterdir()))


def frame(opcode: int, payload: bytes = b"") -> bytes:
    """A frame of a client, masked by nothing."""
    return bytes((0x80 | opcode, 0x80 | len(payload))) + bytes(4) + payload


PING = frame(0x9, b"p" * 125)


def watching(hub: RunningHub, query: str = "?format=binary") -> socket.socket:
    """A viewer whose handshake is done, with a receive buffer as small as can be."""
    parts = urlsplit(hub.url)
    viewer = socket.socket()
    viewer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    viewer.settimeout(PATIENCE_SECONDS)
    viewer.connect((parts.hostname, parts.port))
    key = base64.b64encode(os.urandom(16)).decode()
    viewer.sendall(
        f"GET /api/v1/live{query} HTTP/1.1\r\nHost: {parts.netloc}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    head = b""
    while b"\r\n\r\n" not in head:
        head += viewer.recv(1)
    assert head.startswith(b"HTTP/1.1 101"), head
    return viewer


def sent_until_refused(viewer: socket.socket, data: bytes, most: int) -> int:
    """How much the hub took before it ended the connection."""
    sent = 0
    try:
        while sent < most:
            viewer.sendall(data)
            sent += len(data)
    except OSError:
        return sent
    return sent


def last_close(received: bytes) -> tuple[int, str] | None:
    """The code and the words of a close frame at the end."""
    for found in reversed(list(re.finditer(rb"\x88", received))):
        size = received[found.end()] if found.end() < len(received) else -1
        body = received[found.end() + 1 :]
        if size >= 2 and len(body) == size:
            return struct.unpack_from("!H", body)[0], body[2:].decode()
    return None


@pytest.mark.parametrize("what", ["pings", "pongs", "messages", "pings in single bytes"])
def test_a_viewer_that_sends_without_end_and_never_reads(hub: RunningHub, what: str):
    data = {"pings": PING, "pongs": frame(0xA), "messages": frame(0x1, b"hello"), "pings in single bytes": frame(0x9)}
    before = resident_bytes(hub.process.pid)
    with watching(hub) as viewer:
        sent = sent_until_refused(viewer, data[what] * 500, 200 * MIB)
    assert sent < 20 * MIB, "it was heard out"
    assert resident_bytes(hub.process.pid) - before < 20 * MIB


def test_a_viewer_that_pings_without_end_is_told_why(hub: RunningHub):
    with watching(hub, "?limit=1") as viewer:
        viewer.sendall(PING * 200)
        received = b""
        try:
            while piece := viewer.recv(65536):
                received += piece
        except ConnectionResetError:
            pass
    assert last_close(received) == (1008, "more than 100 frames a second")


def test_a_few_pings_are_answered(hub: RunningHub):
    with watching(hub, "?limit=1") as viewer:
        received = b""
        for number in range(5):
            viewer.sendall(frame(0x9, b"number %d" % number))
            while b"\x8a\x08number %d" % number not in received:
                received += viewer.recv(65536)
            time.sleep(0.05)


@pytest.mark.parametrize("way", ["live", "http"])
def test_peers_that_never_read_are_let_go(hub: RunningHub, way: str):
    """Their buffers are full, so nothing that is said to them arrives: they would be kept for ever."""
    hub.until(lambda: open_descriptors(hub) <= hub.baseline + 4, PATIENCE_SECONDS)
    peers = []
    try:
        for _ in range(10):
            if way == "live":
                peers.append(watching(hub, "?format=json"))
            else:
                peer = connected(hub.url, PATIENCE_SECONDS)
                peer.sendall(b"GET /api/v1/nodes?limit=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n" * 90)
                peers.append(peer)
        hub.until(lambda: open_descriptors(hub) >= hub.baseline + 8, PATIENCE_SECONDS)
        hub.until(lambda: open_descriptors(hub) <= hub.baseline + 4, PATIENCE_SECONDS)
        assert "have not read their answers" in hub.said()
    finally:
        for peer in peers:
            peer.close()
    assert httpx.get(f"{hub.url}healthz", timeout=PATIENCE_SECONDS).status_code == 200
    assert "Traceback" not in hub.said()


def test_a_viewer_that_pauses_goes_on(hub: RunningHub):
    """Somebody on a slow line, or a laptop that slept for some seconds."""
    with watching(hub) as viewer:
        time.sleep(8)
        got = 0
        while got < 30_000 and (piece := viewer.recv(4096)):
            got += len(piece)
        assert got >= 30_000


def test_the_hub_ends_in_time_although_nobody_reads(tmp_path):
    with RunningHub("demo", "--nodes", "50", directory=tmp_path) as own:
        own.until(lambda: own.get("api/v1/summary")["nodes_up"] >= 10)
        with watching(own):
            assert own.end(signal.SIGTERM, PATIENCE_SECONDS) == 0
