"""Whoever wants the hub's memory, time or connections for themselves."""

import contextlib
import gzip
import resource
import socket
import sys
import time
from collections.abc import Iterator

import httpx
import pytest

from tests.api.fleets import snapshot
from tests.attacks.speaking import connected, resident_bytes, status_of
from tests.patience import PATIENCE_SECONDS
from tests.system.agents import Site

MIB = 1 << 20
GIB = 1 << 30
# What the hub hears out of a body that it has refused, and what the kernel keeps on the way.
MOST_TAKEN = 64 * MIB
IDLE = 10_000
# Measured: 6 kB each.
BYTES_EACH = 20_000
# Descriptors that both sides keep for everything else.
SPARE = 500


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Site(tmp_path_factory.mktemp("site")) as found:
        yield found


@pytest.fixture(scope="module")
def token(site: Site) -> str:
    made = site.token("greedy")
    # The hub looks for new ones once a second.
    site.until_state("greedy", "new")
    return made


def poured(site: Site, head: str, piece: bytes, most: int = GIB) -> tuple[bytes, int]:
    """What the hub says to somebody who sends a gigabyte, and how much of it they got rid of."""
    with connected(site.url) as connection:
        connection.sendall(head.encode())
        sent = 0
        answer = b""
        connection.setblocking(False)
        end = time.monotonic() + 12
        while sent < most and time.monotonic() < end:
            try:
                sent += connection.send(piece)
            except BlockingIOError:
                time.sleep(0.001)
            except OSError:
                # What it said before it hung up can still be read.
                with contextlib.suppress(OSError):
                    answer += connection.recv(65536)
                return answer, sent
            try:
                got = connection.recv(65536)
                answer += got
                if not got:
                    return answer, sent
            except BlockingIOError:
                continue
            except OSError:
                return answer, sent
        return answer, sent


LENGTH = f"Content-Length: {GIB}\r\n\r\n"
CHUNKED = "Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("told", [LENGTH, CHUNKED], ids=["its length told", "in pieces"])
@pytest.mark.parametrize(
    "target",
    ["/api/v1/ingest", "/api/v1/ingest/gpustat", "/api/v1/session", "/get-status", "/api/v1/accounts", "/nowhere", "/"],
)
def test_a_body_of_a_gigabyte(site: Site, token: str, target: str, told: str):
    bearer = f"Authorization: Bearer {token}\r\n" if "ingest" in target else ""
    own = f"Origin: http://localhost\r\nX-Gpulse: 1\r\nContent-Type: application/json\r\n{bearer}"
    piece = b"%x\r\n%s\r\n" % (MIB, b" " * MIB) if told is CHUNKED else b" " * MIB
    before = resident_bytes(site.hub.process.pid)
    answer, sent = poured(site, f"POST {target} HTTP/1.1\r\nHost: localhost\r\n{own}{told}", piece)
    assert resident_bytes(site.hub.process.pid) - before < 30 * MIB
    assert sent < MOST_TAKEN
    # The answer may be lost where the sender never stops.
    assert not answer or status_of(answer) in (401, 403, 404, 405, 413)


@pytest.mark.parametrize("target", ["/healthz", "/api/v1/nodes", "/"])
def test_a_body_of_a_gigabyte_where_there_is_none(site: Site, target: str):
    before = resident_bytes(site.hub.process.pid)
    answer, sent = poured(site, f"GET {target} HTTP/1.1\r\nHost: localhost\r\n{LENGTH}", b" " * MIB)
    assert status_of(answer) == 200
    assert resident_bytes(site.hub.process.pid) - before < 30 * MIB
    assert sent < MOST_TAKEN


@pytest.mark.parametrize("part", ["gpus", "processes"])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
def test_a_million_at_once(site: Site, token: str, part: str, packed: bool):
    """Packed they are a few kilobytes on the wire."""
    whole = snapshot("greedy", []).replace(b'"%s":[' % part.encode(), b'"%s":[' % part.encode() + b"{}," * 1_000_000)
    before = resident_bytes(site.hub.process.pid)
    headers = {"Content_Encoding": "gzip"} if packed else {}
    answer = site.post(token, gzip.compress(whole, 1) if packed else whole, **headers)
    assert answer.status_code == 413
    assert resident_bytes(site.hub.process.pid) - before < 30 * MIB
    assert site.state("greedy") == "new"


@pytest.mark.parametrize("part", ["gpus", "processes"])
def test_a_hundred_thousand_that_fit_into_a_line(site: Site, token: str, part: str):
    fit = snapshot("greedy", []).replace(b'"%s":[' % part.encode(), b'"%s":[' % part.encode() + b"{}," * 100_000)
    before = resident_bytes(site.hub.process.pid)
    for _ in range(3):
        assert site.post(token, fit).status_code in (400, 422, 429)
    assert resident_bytes(site.hub.process.pid) - before < 50 * MIB
    assert site.state("greedy") == "new"


def idle_connections(site: Site) -> list[socket.socket]:
    """As many as the limits let both sides have, up to IDLE."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    may = IDLE if hard == resource.RLIM_INFINITY else min(IDLE, hard - SPARE)
    found: list[socket.socket] = []
    try:
        for _ in range(may):
            found.append(connected(site.url, 10))
    finally:
        if len(found) < may:
            for one in found:
                one.close()
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return found


def test_idle_connections(site: Site, capsys: pytest.CaptureFixture[str]):
    """They say nothing; others are answered within a second, and a node's lines go on."""
    node = site.token("steady")
    before = resident_bytes(site.hub.process.pid)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    idle = idle_connections(site)
    try:
        took = []
        for seq in range(1, 6):
            assert site.post(node, snapshot("steady", [], seq=seq)).status_code == 200
            began = time.monotonic()
            assert httpx.get(f"{site.url}api/v1/nodes/steady", timeout=PATIENCE_SECONDS).status_code == 200
            took.append(time.monotonic() - began)
        # The best of some: the machine may be busy with other tests.
        assert min(took) < 1.0
        grown = resident_bytes(site.hub.process.pid) - before
        with capsys.disabled():
            # How many it could be is part of the result.
            sys.stdout.write(f"[{len(idle):,} idle connections, {grown // len(idle):,} bytes each] ")
        assert grown < BYTES_EACH * len(idle) + 10 * MIB
    finally:
        for one in idle:
            one.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert site.hub.get("healthz")
