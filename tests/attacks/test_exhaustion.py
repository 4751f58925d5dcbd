"""Whoever wants the hub's memory, time or connections for themselves."""

import asyncio
import contextlib
import gzip
import re
import resource
import socket
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.api.fleets import card, snapshot
from tests.attacks.speaking import connected, resident_bytes, status_of
from tests.patience import PATIENCE_SECONDS
from tests.system.agents import Site

MIB = 1 << 20
GIB = 1 << 30
# What the hub hears out of a body that it has refused, and what the kernel keeps on the way.
MOST_TAKEN = 64 * MIB
IDLE = 10_000
BUSY = 2_000
# What each of those asks, one request after the other.
ROUNDS = 5
# Measured: 6 kB each.
BYTES_EACH = 20_000
# Measured: 20 kB each, with their answers.
BUSY_BYTES_EACH = 60_000
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


async def _busy(port: int, path: str, statuses: Counter[int]) -> None:
    """Ask ROUNDS times on one connection, each time as soon as the answer is there."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for _ in range(ROUNDS):
            writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: (\d+)", head)
            await reader.readexactly(int(length[1]) if length else 0)
            statuses[status_of(head)] += 1
    finally:
        writer.close()


async def _health(port: int, until: "asyncio.Future[Any]") -> list[float]:
    """Return how long /healthz took, each time on a new connection, for as long as others ask."""
    took = []
    while not until.done():
        began = time.monotonic()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert status_of(await reader.read()) == 200
        writer.close()
        took.append(time.monotonic() - began)
    return took


def test_busy_connections(site: Site, capsys: pytest.CaptureFixture[str]):
    """Each asks and asks again: all are answered in turn, and nobody waits for all the others' requests."""
    node = site.token("crowded")
    cards = [card(f"GPU-{index}", index) for index in range(8)]
    assert site.post(node, snapshot("crowded", cards)).status_code == 200
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    count = BUSY if hard == resource.RLIM_INFINITY else min(BUSY, hard - SPARE)
    before, port = resident_bytes(site.hub.process.pid), int(site.url.rpartition(":")[2].strip("/"))
    statuses: Counter[int] = Counter()

    async def work() -> tuple[list[float], float]:
        began = time.monotonic()
        paths = ("/api/v1/gpus", "/api/v1/nodes/crowded", "/api/v1/summary", "/api/v1/users")
        all_of_them = asyncio.gather(*(_busy(port, paths[n % len(paths)], statuses) for n in range(count)))
        took = await _health(port, all_of_them)
        await all_of_them
        return took, time.monotonic() - began

    try:
        took, seconds = asyncio.run(work())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    grown = resident_bytes(site.hub.process.pid) - before
    with capsys.disabled():
        slowest = f"/healthz {statistics.median(took):.2f} s, at most {max(took):.2f} s of {seconds:.1f} s"
        sys.stdout.write(f"[{count:,} busy connections: {slowest}, {grown // MIB} MiB] ")
    assert statuses == {200: ROUNDS * count}
    # Of the whole time, so that a busy machine fails nothing: each round is a turn of everybody.
    assert statistics.median(took) < seconds / 2
    assert grown < BUSY_BYTES_EACH * count + 20 * MIB


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
