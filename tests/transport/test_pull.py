"""Pull: real agents asked by a real supervisor, and everything else that may listen on their port."""

import asyncio
import ssl
import subprocess
import time
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gpulse.fleet.fleet import Fleet
from gpulse.fleet.places import Place
from gpulse.transport import pull
from gpulse.transport.pull import Pull, PullTarget
from gpulse.transport.supervisor import Pace, Supervisor
from tests.fake_nvml import h100_node
from tests.patience import PATIENCE_SECONDS
from tests.ports import free_port
from tests.probe.serving import TOKEN, Serving
from tests.transport.recorder import Recorder

PACE = Pace(first_pause_seconds=0.1, longest_pause_seconds=0.2, silence_seconds=3.0, spread_seconds=0)

# Who does not take a standstill of this machine for silence.
PATIENT = Pace(first_pause_seconds=0.1, longest_pause_seconds=0.2, silence_seconds=60.0, spread_seconds=0)


def target(port: int, **fields: object) -> PullTarget:
    return PullTarget(
        **{"name": "n", "host": "127.0.0.1", "token": TOKEN, "port": port, "interval_seconds": 0.1, **fields}
    )


@asynccontextmanager
async def pulling(*targets: PullTarget, sink=None, pace=PACE):
    recorder = sink or Recorder()
    supervisor = Supervisor(recorder, {PullTarget: Pull().stream}, pace)
    supervisor.set_targets(targets)
    try:
        yield recorder
    finally:
        await supervisor.stop()


@pytest.fixture
def agent(fake, tmp_path):
    fake.describe(h100_node(2, moving=True))
    with Serving(tmp_path, fake.environment(), "--node", "n", "--interval", "0.1") as one:
        yield one


def test_a_token_does_not_get_into_logs():
    assert TOKEN not in repr(target(1))
    assert target(1, host="::1").url == "http://[::1]:1"
    assert target(1, tls=True).url == "https://127.0.0.1:1"


async def _lines_of(agent):
    async with pulling(target(agent.port)) as seen:
        await seen.until(lambda: len(seen.lines["n"]) > 10)
    return seen


def test_a_full_snapshot_and_then_updates(agent):
    seen = asyncio.run(_lines_of(agent))
    first, *others = seen.lines["n"]
    assert first["node"] == "n"
    assert len(first["gpus"]) == 2
    whole = first["seq"]
    for line in others:
        if "update" in line:
            assert line["update"] == whole
        else:
            whole = line["seq"]
    numbers = [line["seq"] for line in seen.lines["n"]]
    assert numbers == sorted(set(numbers)), "nothing comes twice"
    assert sum("update" in line for line in others) > 5
    assert seen.downs["n"] == []


def test_into_a_real_fleet(agent):
    async def run():
        fleet = Fleet()
        fleet.place(Place(name="n", interval_seconds=0.1))
        async with pulling(target(agent.port), sink=fleet):
            async with asyncio.timeout(PATIENCE_SECONDS):
                while fleet.generation < 20 or fleet.node("n").state != "up":
                    fleet.tick()
                    await asyncio.sleep(0.05)
            assert [gpu.index for gpu in fleet.gpus()] == [0, 1]
            return [entry.message for entry in fleet.log_of("n")]

    said = asyncio.run(run())
    assert not [words for words in said if "cannot be read" in words]


def _one_connection(agent, between, **fields):
    async def run():
        async with pulling(target(agent.port, **fields), pace=PATIENT) as seen:
            await seen.until(lambda: len(seen.lines["n"]) > 3)
            before = _connections(agent.port)
            between()
            for _ in range(5):
                await seen.up("n")
            assert _connections(agent.port) == before
            assert len(before) == 1
            assert seen.downs["n"] == []

    asyncio.run(run())


def test_one_connection_is_kept(agent):
    """Mostly nothing is new, and such an answer is one, too."""
    _one_connection(agent, lambda: None, interval_seconds=0.02)


def test_one_connection_is_kept_however_long_it_is_between_two_questions(agent):
    # All of this process stands still.
    _one_connection(agent, lambda: time.sleep(5.5))


def _connections(port):
    """The other ends of what is connected to a port of this machine."""
    rows = [row.split() for row in Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]]
    return {row[2] for row in rows if int(row[1].split(":")[1], 16) == port and row[3] == "01"}


def test_an_agent_that_is_started_anew(fake, tmp_path):
    fake.describe(h100_node(1))

    async def run():
        port = free_port()
        async with pulling(target(port)) as seen:
            await seen.until(lambda: seen.downs["n"])
            assert seen.downs["n"][0] == (
                f"no agent listens on 127.0.0.1 port {port};"
                " start one there: gpulse agent serve --host ADDRESS --token-file FILE"
            )
            for _ in range(2):
                with Serving(tmp_path, fake.environment(), "--interval", "0.1", port=port):
                    before = len(seen.lines["n"])
                    await seen.until(lambda before=before: len(seen.lines["n"]) > before + 3)
                    fulls = [line for line in seen.lines["n"][before:] if "update" not in line]
                    assert fulls[0]["seq"] == 0
                count = len(seen.downs["n"])
                await seen.until(lambda count=count: len(seen.downs["n"]) > count)

    asyncio.run(run())


def test_an_agent_slower_than_the_hub_is_not_silent(fake, tmp_path):
    fake.describe(h100_node(1))

    async def run():
        with Serving(tmp_path, fake.environment(), "--interval", "4") as agent:
            async with pulling(target(agent.port)) as seen:
                await seen.until(lambda: len(seen.lines["n"]) > 1)
                assert seen.downs["n"] == []
                assert seen.lines["n"][1]["time"] - seen.lines["n"][0]["time"] > 3.5

    asyncio.run(run())


def test_another_name_is_told(fake, tmp_path):
    async def run():
        with Serving(tmp_path, fake.environment(), "--node", "other") as agent:
            async with pulling(target(agent.port)) as seen:
                await seen.up("n")
                assert seen.logs["n"] == ["its agent calls itself other"]

    asyncio.run(run())


def test_a_wrong_token(agent):
    async def run():
        async with pulling(target(agent.port, token=TOKEN[::-1])) as seen:
            await seen.until(lambda: seen.downs["n"])
        return seen.downs["n"][0]

    assert asyncio.run(run()) == (
        f"its agent at http://127.0.0.1:{agent.port} refuses the hub's token (401);"
        " give the hub the token that the agent was started with (token_file)"
    )


# What else may listen there.

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def _down(handle: Handler, context: ssl.SSLContext | None = None, **fields: object) -> str:
    """Why the node is down where this listens."""

    async def answer(reader, writer):
        try:
            await reader.read(1 << 16)
            await handle(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    async with server:
        port = server.sockets[0].getsockname()[1]
        async with pulling(target(port, **fields)) as seen:
            await seen.until(lambda: seen.downs["n"])
    assert seen.lines["n"] == []
    return seen.downs["n"][0].replace(str(port), "PORT")


def says(text: bytes) -> Handler:
    async def handle(_reader, writer):
        writer.write(text)
        await writer.drain()

    return handle


GOOD = b'HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nX-Gpulse-Base: a-0\r\nETag: "a-0"\r\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", "refuses the hub's token (403)"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "is no gpulse agent (404)"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", "elsewhere (302)"),
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", "answers 503 Busy"),
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi", "is no gpulse agent"),
        (GOOD + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\nhi", "is no gpulse agent"),
        (GOOD.replace(b"a-0", b"a&b") + b"Content-Length: 2\r\n\r\n{}", "is no gpulse agent"),
        (b"SSH-2.0-OpenSSH_9.9\r\n", "does not speak HTTP, or hung up"),
        (b"", "does not speak HTTP, or hung up"),
        (GOOD + b"Content-Length: 20\r\n\r\n{}", "does not speak HTTP, or hung up"),
        (GOOD + b"Content-Length: 8\r\n\r\nrubbish\n", "its last 5 lines cannot be read"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 300000, "does not speak HTTP, or hung up"),
    ],
)
def test_what_is_no_agent_is_told_in_words(text, words):
    assert words in asyncio.run(_down(says(text)))


async def _without_end(_reader, writer):
    writer.write(GOOD + b"Transfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")
        await writer.drain()


def test_an_answer_without_end_is_cut_off():
    assert "its answer is larger than 4 MiB" in asyncio.run(_down(_without_end))


async def _byte_by_byte(_reader, writer):
    writer.write(GOOD + b"Transfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"1\r\n \r\n" * 1000)
        await writer.drain()


def test_an_answer_in_chunks_of_a_byte_is_cut_off():
    assert "its answer comes in more than 4,096 pieces" in asyncio.run(_down(_byte_by_byte))


def test_an_answer_of_newlines_is_cut_off():
    lines = b"\n" * (1 << 21)
    words = asyncio.run(_down(says(GOOD + b"Content-Length: %d\r\n\r\n" % len(lines) + lines)))
    assert "its last 5 lines cannot be read" in words


async def _silent(_reader, _writer):
    await asyncio.sleep(3600)


async def _trickling(_reader, writer):
    writer.write(GOOD + b"Content-Length: 1000000\r\n\r\n")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("handle", [_silent, _trickling])
def test_an_answer_that_does_not_come(handle, monkeypatch):
    monkeypatch.setattr(pull, "FIRST_SECONDS", 0.5)
    began = time.monotonic()
    assert "127.0.0.1 port PORT did not answer within 0.5 s" in asyncio.run(_down(handle))
    assert time.monotonic() - began < 20


def test_a_name_that_does_not_resolve():
    async def run(host):
        async with pulling(target(7080, host=host)) as seen:
            await seen.until(lambda: seen.downs["n"])
        return seen.downs["n"][0]

    assert "the name no.such.host.invalid does not resolve" in asyncio.run(run("no.such.host.invalid"))
    assert "is no host that can be asked" in asyncio.run(run("a b\x00"))


@pytest.fixture
def certificate(tmp_path):
    key, made = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    )
    subprocess.run([*command.split(), "-keyout", key, "-out", made], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made, key)
    return context, made


def test_tls(certificate, monkeypatch):
    context, made = certificate
    said = asyncio.run(_down(says(b""), context, tls=True))
    assert "the certificate of https://127.0.0.1:PORT is not trusted: self-signed certificate" in said
    assert "does not speak TLS" in asyncio.run(_down(says(b"hello"), tls=True))
    # As this machine would be told to trust it.
    monkeypatch.setenv("SSL_CERT_FILE", str(made))
    assert "is no gpulse agent (404)" in asyncio.run(
        _down(says(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"), context, tls=True)
    )


def test_proxies_of_the_environment_are_not_used(agent, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    seen = asyncio.run(_lines_of(agent))
    assert seen.downs["n"] == []
