"""The web server at https, on the loops it may run on: pages, nodes' connections, plain http, renewed certificates."""

import asyncio
import contextlib
import json
import socket
import ssl
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest
import uvicorn
import uvloop
import websockets
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket
from websockets.exceptions import ConnectionClosed

from gpulse.api import takeover
from gpulse.api.frames_in import LARGEST_MESSAGE
from gpulse.api.security import STRICT_TRANSPORT, SecurityHeaders
from gpulse.api.server import make_server, this_is_https
from gpulse.api.takeover import EXTENSION, MOST_UNSENT
from gpulse.tls.files import Files
from gpulse.tls.serving import ServingTls
from tests.api.test_takeover import Receiver, until
from tests.certificates import Made, make
from tests.patience import PATIENCE_SECONDS

PING = b"\x89\xfd" + b"\0\0\0\0" + b"p" * 125


class Served(NamedTuple):
    server: uvicorn.Server
    port: int
    receivers: list[Receiver]
    tls: ServingTls

    @property
    def node(self) -> str:
        return f"wss://127.0.0.1:{self.port}/"


@pytest.fixture
def first() -> Made:
    return make()


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest):
    runs = {"asyncio": asyncio.run, "uvloop": uvloop.run}[request.param]
    return lambda scene: runs(asyncio.wait_for(scene, PATIENCE_SECONDS))


def trusting(*made: Made) -> ssl.SSLContext:
    return ssl.create_default_context(cadata="".join(one.pem.decode() for one in made))


@contextlib.asynccontextmanager
async def serving(folder, made: Made, strict: bool = False) -> AsyncIterator[Served]:
    receivers: list[Receiver] = []

    async def serve(websocket: WebSocket) -> None:
        await websocket.accept()

        def make_one(line: Any) -> Receiver:
            receivers.append(Receiver(line))
            return receivers[-1]

        websocket.scope["extensions"][EXTENSION](make_one)

    async def scheme(request: Request) -> JSONResponse:
        return JSONResponse({"scheme": request.url.scheme, "from": request.client.host if request.client else None})

    app = Starlette(
        routes=[WebSocketRoute("/", serve), Route("/scheme", scheme)],
        middleware=[Middleware(SecurityHeaders, frozenset(), strict)],
    )
    tls = ServingTls(Files(*made.write(folder)), this_is_https())
    listener = socket.create_server(("127.0.0.1", 0))
    server = make_server(app, tls.context)
    running = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield Served(server, listener.getsockname()[1], receivers, tls)
    finally:
        server.should_exit = True
        await asyncio.wait_for(running, PATIENCE_SECONDS)


async def asked(served: Served, context: ssl.SSLContext | None, request: bytes) -> bytes:
    """All that is answered until the server hangs up, or says where the end is."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port, ssl=context)
    try:
        writer.write(request)
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
        size = int(head.lower().partition(b"content-length: ")[2].split()[0])
        return head + await asyncio.wait_for(reader.readexactly(size), 5)
    finally:
        writer.close()


GET = b"GET /scheme HTTP/1.1\r\nHost: h\r\n\r\n"


def test_requests(run, first, tmp_path):
    async def scene():
        async with serving(tmp_path, first) as served:
            answer = await asked(served, trusting(first), GET)
            assert json.loads(answer.partition(b"\r\n\r\n")[2]) == {"scheme": "https", "from": "127.0.0.1"}
            assert b"strict-transport" not in answer.lower()

    run(scene())


def test_browsers_are_held_to_https_where_it_is_wanted(run, first, tmp_path):
    async def scene():
        async with serving(tmp_path, first, strict=True) as served:
            answer = await asked(served, trusting(first), GET)
            assert f"strict-transport-security: {STRICT_TRANSPORT}".encode() in answer

    run(scene())


def test_plain_http_is_told_and_others_go_on(run, first, tmp_path, caplog):
    async def scene():
        async with serving(tmp_path, first) as served:
            for method in (b"GET", b"POST", b"HEAD"):
                answers = await asyncio.gather(*(asked(served, None, GET.replace(b"GET", method)) for _ in range(20)))
                for answer in answers:
                    head, _, body = answer.partition(b"\r\n\r\n")
                    assert head.startswith(b"HTTP/1.1 400 ")
                    assert b"connection: close" in head
                    assert json.loads(body)["error"]["message"] == "this is https"
            assert b" 200 " in await asked(served, trusting(first), GET)

    run(scene())
    assert caplog.text == ""


def test_after_the_sentence_nothing_more_is_taken(run, first, tmp_path):
    async def scene():
        async with serving(tmp_path, first) as served:
            reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
            writer.write(GET)
            assert b"this is https" in await asyncio.wait_for(reader.readuntil(b"}}"), 5)
            writer.write(GET)
            with contextlib.suppress(ConnectionError):
                assert await asyncio.wait_for(reader.read(), 5) == b""
            writer.close()

    run(scene())


@pytest.mark.parametrize("sent", [b"\0" * 100, b"SSH-2.0-x\r\n", b"\x16\x03\x01\xff\xff" + b"x" * 100])
def test_what_is_neither(run, first, tmp_path, sent, caplog):
    async def scene():
        async with serving(tmp_path, first) as served:
            reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
            writer.write(sent)
            with contextlib.suppress(ConnectionError):
                assert b"HTTP" not in await asyncio.wait_for(reader.read(), 5)
            writer.close()
            assert b" 200 " in await asked(served, trusting(first), GET)

    run(scene())
    assert caplog.text == ""


def test_old_versions_and_weak_ciphers_are_refused(run, first, tmp_path):
    def old(**attributes: Any) -> ssl.SSLContext:
        context = trusting(first)
        context.set_ciphers("ALL:@SECLEVEL=0")
        for name, value in attributes.items():
            setattr(context, name, value)
        return context

    weak = old(maximum_version=ssl.TLSVersion.TLSv1_2)
    weak.set_ciphers("ECDHE-ECDSA-AES256-SHA:AES128-SHA:@SECLEVEL=0")

    async def scene():
        async with serving(tmp_path, first) as served:
            with pytest.warns(DeprecationWarning):
                very_old = old(minimum_version=ssl.TLSVersion.TLSv1, maximum_version=ssl.TLSVersion.TLSv1_1)
            for context in (very_old, weak):
                with pytest.raises((ssl.SSLError, ConnectionError)):
                    await asked(served, context, GET)
            assert b" 200 " in await asked(served, old(maximum_version=ssl.TLSVersion.TLSv1_2), GET)

    run(scene())


def test_lines_of_nodes(run, first, tmp_path):
    async def scene():
        async with (
            serving(tmp_path, first) as served,
            websockets.connect(served.node, ssl=trusting(first), compression=None) as client,
        ):
            await client.send(b"one")
            await client.send("two")
            await client.send(b"x" * LARGEST_MESSAGE)
            await client.send(b"echo")
            assert await client.recv() == "echo"
            heard = served.receivers[0].heard
            assert heard[:2] == [("binary", b"one"), ("text", b"two")]
            assert len(heard[2][1]) == LARGEST_MESSAGE
            await asyncio.wait_for(await client.ping(), 5)

    run(scene())


def test_goodbyes_come_in_words(run, first, tmp_path, caplog):
    async def scene():
        async with serving(tmp_path, first) as served:
            client = await websockets.connect(served.node, ssl=trusting(first))
            await until(lambda: served.receivers)
            # Something is always on its way while the hub says goodbye.
            await client.send(b"one")
            served.receivers[0].line.close(4401, "the token was revoked")
            with pytest.raises(ConnectionClosed) as closed:
                await asyncio.wait_for(client.recv(), 20)
            assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4401, "the token was revoked")
            assert served.receivers[0].gone_with == (4401, "the token was revoked")
            await until(lambda: not served.server.server_state.connections)

            client = await websockets.connect(served.node, ssl=trusting(first))
            await client.close(1001, "going")
            await until(served.receivers[1].ended.is_set)
            assert served.receivers[1].gone_with == (1001, "going")

            client = await websockets.connect(served.node, ssl=trusting(first))
            await client.send(b"one")
            client.transport.abort()
            await until(lambda: len(served.receivers) == 3 and served.receivers[2].ended.is_set())
            assert served.receivers[2].gone_with[0] == 1006
            await until(lambda: not served.server.server_state.connections)

    run(scene())
    assert caplog.text == ""


def test_nothing_reaches_the_receiver_after_its_end(run, first, tmp_path):
    async def scene():
        async with serving(tmp_path, first) as served:
            client = await websockets.connect(served.node, ssl=trusting(first))
            frame = b"\x82\x83\0\0\0\0"
            client.transport.write(frame + b"bye" + frame + b"two" + b"\x89\x81\0\0\0\0p")
            with pytest.raises(ConnectionClosed):
                await asyncio.wait_for(client.recv(), 20)
            await until(lambda: not served.server.server_state.connections)
            assert served.receivers[0].heard == [("binary", b"bye")]
            assert served.receivers[0].gone_with == (4400, "as you wish")

    run(scene())


def test_who_does_not_say_goodbye_is_not_waited_for(run, first, tmp_path, monkeypatch):
    monkeypatch.setattr(takeover, "CLOSE_SECONDS", 0.3)

    async def scene():
        async with serving(tmp_path, first) as served:
            for data in (b"\x82\x83\0\0\0\0bye", b"\x82\x05hello"):
                client = await websockets.connect(served.node, ssl=trusting(first))
                client.transport.pause_reading()
                client.transport.write(data)
                await until(served.receivers[-1].ended.is_set)
                await until(lambda: not served.server.server_state.connections)
                client.transport.abort()
            assert served.receivers[1].gone_with[0] == 1002

    run(scene())


def test_the_hub_ends(run, first, tmp_path):
    async def scene():
        async with (
            serving(tmp_path, first) as served,
            websockets.connect(served.node, ssl=trusting(first)) as client,
        ):
            await until(lambda: served.receivers)
            served.server.should_exit = True
            with pytest.raises(ConnectionClosed) as closed:
                await client.recv()
            assert closed.value.rcvd.code == 1012
            assert served.receivers[0].gone_with[0] == 1012

    run(scene())


def test_the_hub_ends_though_somebody_never_finishes_the_handshake(run, first, tmp_path):
    async def scene():
        silent = []
        async with serving(tmp_path, first) as served:
            for beginning in (b"", b"\x16\x03\x01"):
                _, writer = await asyncio.open_connection("127.0.0.1", served.port)
                writer.write(beginning)
                silent.append(writer)
            assert b" 200 " in await asked(served, trusting(first), GET)
        for writer in silent:
            writer.close()

    run(scene())


def test_who_asks_for_pongs_and_reads_none_is_cut_off(run, first, tmp_path, monkeypatch):
    monkeypatch.setattr(takeover, "MOST_CONTROLS_A_SECOND", 10**9)

    async def scene():
        async with serving(tmp_path, first) as served:
            client = await websockets.connect(served.node, ssl=trusting(first), max_queue=1)
            await until(lambda: served.receivers)
            client.transport.pause_reading()
            sent = 0
            while not served.receivers[0].ended.is_set() and not client.transport.is_closing():
                client.transport.write(PING * 1000)
                sent += len(PING) * 1000
                await asyncio.sleep(0.001)
                assert sent < 500 * MOST_UNSENT
            await until(served.receivers[0].ended.is_set)
            client.transport.abort()

    run(scene())


def test_many_connections_leave_nothing_behind(run, first, tmp_path):
    async def scene():
        async with serving(tmp_path, first) as served:
            context = trusting(first)
            for _ in range(3):
                clients = await asyncio.gather(*(websockets.connect(served.node, ssl=context) for _ in range(20)))
                for client in clients:
                    await client.send(b"echo")
                await asyncio.gather(*(client.recv() for client in clients))
                for client in clients:
                    client.transport.abort()
                await until(lambda: all(receiver.ended.is_set() for receiver in served.receivers))
            await until(lambda: not served.server.server_state.connections)
            await until(lambda: not served.server.server_state.tasks)

    run(scene())


def test_a_renewed_certificate(run, first, tmp_path):
    renewed = make()

    async def scene():
        async with serving(tmp_path, first) as served:
            client = await websockets.connect(served.node, ssl=trusting(first))
            renewed.write(tmp_path)
            assert "was renewed" in served.tls.look()
            # Those who are connected stay and notice nothing.
            await client.send(b"echo")
            assert await client.recv() == "echo"
            with pytest.raises(ssl.SSLCertVerificationError):
                await asked(served, trusting(first), GET)
            assert b" 200 " in await asked(served, trusting(renewed), GET)
            (tmp_path / "certificate.pem").write_bytes(b"nonsense")
            served.tls.look()
            assert b" 200 " in await asked(served, trusting(renewed), GET)
            await client.send(b"echo")
            assert await client.recv() == "echo"
            await client.close()

    run(scene())
