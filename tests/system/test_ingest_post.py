"""Snapshots by POST: with curl as people would, and from those who mean harm."""

import gzip
import json
import shutil
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fake_nvml import FakeNvml, NoCompilerError, Process, h100_node
from tests.hub.running import GPULSE
from tests.patience import PATIENCE_SECONDS
from tests.system.agents import CALM, Site, snapshot, until
from tests.system.stalls import Stalls

MIB = 1 << 20
GPUSTAT = Path(__file__).resolve().parents[2] / ".venv-peers" / "bin" / "gpustat"


class Ages(threading.Thread):
    """Looks all the time how old the last line of a node is, not counting when all of the machine stood still."""

    def __init__(self, site: Site, node: str):
        super().__init__(daemon=True)
        self._site, self._node = site, node
        self._done = threading.Event()
        self.oldest = 0.0
        self.seen = 0

    def run(self) -> None:
        with httpx.Client(base_url=self._site.url, timeout=PATIENCE_SECONDS) as client, Stalls() as stalls:
            while not self._done.is_set():
                asked = time.monotonic()
                node = client.get(f"api/v1/nodes/{self._node}").json()
                # A hub that answers late is one that keeps people waiting.
                waited = time.monotonic() - asked
                self.oldest = max(self.oldest, stalls.age(node, asked) + waited)
                self.seen += 1
                self._done.wait(0.03)

    def end(self) -> float:
        """How old it was at most, also when all was over."""
        seen = self.seen
        until(lambda: self.seen > seen + 1)
        self._done.set()
        self.join(20)
        return self.oldest


@pytest.fixture(scope="module")
def fake(tmp_path_factory: pytest.TempPathFactory) -> FakeNvml:
    try:
        fake = FakeNvml(tmp_path_factory.mktemp("driver"))
    except NoCompilerError:
        pytest.skip("gcc is missing")
    fake.describe(h100_node(2))
    return fake


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, fake: FakeNvml) -> Iterator[Site]:
    with Site(tmp_path_factory.mktemp("site"), fake.environment({})) as site:
        yield site


@pytest.fixture(scope="module")
def tokens(site: Site) -> dict[str, str]:
    return site.tokens("poster,packer,stats,bad,bystander,clock[1-2]")


@pytest.fixture(scope="module", autouse=True)
def bystander(site: Site, tokens: dict[str, str]) -> None:
    """A node like any other, which all that follows must not disturb."""
    site.agent("bystander", token=tokens["bystander"])
    site.until_up("bystander")


# As people do it.


def shell(site: Site, fake: FakeNvml, token: str, script: str) -> Any:
    """What curl prints; the token is in a file, as everybody could read it on a command line."""
    if shutil.which("curl") is None:
        pytest.skip("curl is missing")
    config = site.folder / "curl"
    config.write_text(f'header = "Authorization: Bearer {token}"\n')
    environment = fake.environment() | {"HUB": site.url.strip("/"), "CURL": str(config), "HOME": str(site.folder)}
    environment |= {"GPULSE": str(GPULSE), "GPUSTAT": str(GPUSTAT), "PYTHON": sys.executable}
    ran = subprocess.run(
        ["sh", "-euc", script], env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
    )
    assert ran.returncode == 0, ran.stderr + ran.stdout
    return json.loads(ran.stdout)


def test_curl(site: Site, fake: FakeNvml, tokens: dict[str, str]):
    script = '"$GPULSE" probe --once --node poster | curl -sS -K "$CURL" --data-binary @- "$HUB/api/v1/ingest"'
    assert shell(site, fake, tokens["poster"], script) == {"node": "poster", "gpus": 2}
    node = site.until_up("poster")
    assert [gpu["model"] for gpu in node["gpus"]] == ["H100 80G"] * 2
    assert node["address"] == "push"


def test_curl_with_gzip(site: Site, fake: FakeNvml, tokens: dict[str, str]):
    script = (
        '"$GPULSE" probe --once --node packer | gzip | '
        'curl -sS -K "$CURL" -H "Content-Encoding: gzip" --data-binary @- "$HUB/api/v1/ingest"'
    )
    assert shell(site, fake, tokens["packer"], script) == {"node": "packer", "gpus": 2}
    assert len(site.until_up("packer")["gpus"]) == 2


def test_curl_of_what_gpustat_prints(site: Site, fake: FakeNvml, tokens: dict[str, str], pids: list[int]):
    if not GPUSTAT.exists():
        pytest.skip("make test installs the peers")
    fake.describe(h100_node(2, [Process(pids[0], gpu=1, memory="5GiB", sm=40)]))
    script = '"$GPUSTAT" --json | curl -sS -K "$CURL" --data-binary @- "$HUB/api/v1/ingest/gpustat"'
    assert shell(site, fake, tokens["stats"], script) == {"node": "stats", "gpus": 2}
    node = site.until_up("stats")
    assert [gpu["model"] for gpu in node["gpus"]] == ["H100 80G"] * 2
    assert [process["pid"] for process in node["processes"]] == [pids[0]]
    assert node["gpus"][1]["people"][0]["memory_bytes"] == 5 << 30
    fake.describe(h100_node(2))


def test_two_ways_at_once(site: Site, tokens: dict[str, str]):
    """While its agent sends, nobody else speaks for a node."""
    answer = site.post(tokens["bystander"], snapshot("bystander", gpus=[]))
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "name_taken")
    assert len(site.hub.node("bystander")["gpus"]) == 2


@pytest.mark.parametrize(("node", "hours"), [("clock1", 6), ("clock2", -30)])
def test_clock_hours_off(site: Site, tokens: dict[str, str], node: str, hours: int):
    assert site.post(tokens[node], snapshot(node, time=time.time() + hours * 3600, probe=CALM)).status_code == 200
    found = site.until_up(node)
    assert found["age_seconds"] < 60
    assert found["clock_difference_seconds"] == pytest.approx(hours * 3600, abs=5)


# What is refused, and why.


def packed(body: bytes) -> bytes:
    return gzip.compress(body, 1)


REFUSED: dict[str, tuple[Callable[[], bytes], dict[str, str], int, str]] = {
    "another's name": (lambda: snapshot("poster"), {}, 403, "poster"),
    "no name": (lambda: b'{"schema":1,"time":1.0,"seq":0}', {}, 422, "node"),
    "nothing": (lambda: b"", {}, 422, "no snapshot"),
    "no JSON": (lambda: b"GPU 0: 40 %", {}, 422, "no snapshot"),
    "a list": (lambda: b"[]", {}, 422, "array"),
    "cut off": (lambda: snapshot("bad")[:-5], {}, 422, "no snapshot"),
    "no time": (lambda: b'{"schema":1,"node":"bad","seq":0}', {}, 422, "time"),
    "a time that is none": (lambda: snapshot("bad", time="noon"), {}, 422, "time"),
    "GPUs that are none": (lambda: snapshot("bad", gpus=[17]), {}, 422, "gpus"),
    "a newer schema": (lambda: snapshot("bad", schema=99), {}, 422, "upgrade the hub"),
    "an update": (lambda: b'{"update":0,"seq":1,"time":1.0,"node":"bad"}', {}, 422, "it is an update"),
    "no UTF-8": (lambda: b'{"node":"\xff"}', {}, 422, "utf-8"),
    "another packing": (lambda: snapshot("bad"), {"Content_Encoding": "br"}, 415, "br"),
    "not packed as it says": (lambda: snapshot("bad"), {"Content_Encoding": "gzip"}, 400, "gzip"),
    "packed twice": (lambda: snapshot("bad"), {"Content_Encoding": "gzip, gzip"}, 415, "gzip, gzip"),
    "packed and cut off": (lambda: packed(snapshot("bad"))[:-9], {"Content_Encoding": "gzip"}, 400, "too early"),
    "1 MiB and a byte": (lambda: snapshot("bad", pad="x" * MIB)[: MIB + 1], {}, 413, "1,048,576"),
    "the same packed": (
        lambda: packed(snapshot("bad", pad="x" * MIB)[: MIB + 1]),
        {"Content_Encoding": "gzip"},
        413,
        "1,048,576",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(site: Site, tokens: dict[str, str], case: str):
    make, headers, status, words = REFUSED[case]
    answer = site.post(tokens["bad"], make(), **headers)
    error = answer.json()["error"]
    assert answer.status_code == status, error
    assert words in error["message"], error
    assert site.state("bad") == "new"
    assert len(site.hub.node("poster")["gpus"]) == 2


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"gpus":1}', b"No GPU found"])
def test_refused_as_gpustat(site: Site, tokens: dict[str, str], body: bytes):
    answer = site.post(tokens["bad"], body, "/gpustat")
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "bad_snapshot")
    assert "gpustat --json" in answer.json()["error"]["message"]
    assert site.state("bad") == "new"


@pytest.mark.parametrize("path", ["", "/gpustat", "/join", "/agent"])
def test_without_a_token(site: Site, path: str):
    """Nothing of a body is read before it is known who sends it."""
    method = "GET" if path == "/agent" else "POST"
    body = b"" if path == "/agent" else bytes(10 * MIB)
    answer = httpx.request(method, f"{site.url}api/v1/ingest{path}", content=body, timeout=PATIENCE_SECONDS)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "token_missing")
    assert answer.headers["www-authenticate"] == "Bearer"


# Those who mean harm.


def bomb(size: int) -> bytes:
    """Zeros, packed as gzip."""
    packer = zlib.compressobj(9, wbits=31)
    head = packer.compress(b" " * MIB) + packer.flush(zlib.Z_FULL_FLUSH)
    more = packer.compress(b" " * MIB) + packer.flush(zlib.Z_FULL_FLUSH)
    return head + more * (size // MIB - 1) + b"\x03\x00" + bytes(8)


def pieces(body: bytes, size: int = 1 << 16) -> Iterator[bytes]:
    """Chunked: nobody says beforehand how much it will be."""
    for start in range(0, len(body), size):
        yield body[start : start + size]


def endless() -> Iterator[bytes]:
    while True:
        yield b" " * (1 << 16)


GPUS = snapshot("bad").replace(b'"gpus":[', b'"gpus":[' + b"{}," * 1_000_000)
LISTS = snapshot("bad")[:-1] + b',"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
HOSTILE: dict[str, tuple[Callable[[], Any], dict[str, str], int]] = {
    "10 GB of zeros": (lambda: bomb(10 << 30), {"Content-Encoding": "gzip"}, 413),
    "as many as fit into 1 MiB": (lambda: bomb(900 * MIB), {"Content-Encoding": "gzip"}, 413),
    "10 GB, chunked": (lambda: pieces(bomb(10 << 30)), {"Content-Encoding": "gzip"}, 413),
    "a million GPUs": (lambda: GPUS, {}, 413),
    "a million GPUs, packed": (lambda: packed(GPUS), {"Content-Encoding": "gzip"}, 413),
    "as many GPUs as fit": (lambda: GPUS[: MIB - 100], {}, 422),
    "lists in lists": (lambda: LISTS, {}, 422),
    "objects in objects": (lambda: b'{"node":' * 100_000, {}, 422),
    "1 MiB and a byte, chunked": (lambda: pieces(bytes(MIB + 1)), {}, 413),
    "endless": (endless, {}, 413),
}


@pytest.mark.parametrize("path", ["", "/gpustat"])
@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_bodies(site: Site, tokens: dict[str, str], case: str, path: str):
    make, headers, status = HOSTILE[case]
    body = make()
    before = site.hub_bytes()
    ages = Ages(site, "bystander")
    ages.start()
    for _ in range(3):
        try:
            answer = httpx.post(
                f"{site.url}api/v1/ingest{path}",
                content=make() if case.startswith("endless") or "chunked" in case else body,
                headers=headers | site.headers(tokens["bad"]),
                timeout=PATIENCE_SECONDS,
            )
        except httpx.WriteError:
            # The hub has hung up on somebody who never stops talking.
            assert case == "endless"
            continue
        assert answer.status_code == status, answer.text
        assert answer.json()["error"]["message"]
    assert ages.end() < 2.0
    assert site.hub_bytes() - before < 50 * MIB
    assert site.state("bad") == "new"
