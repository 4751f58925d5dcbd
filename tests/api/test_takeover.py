"""A connection that was taken over, on a real server: messages go to the receiver, goodbyes come in words."""

import asyncio
import contextlib
import json
import socket

import pytest
import uvicorn
import websockets
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket
from websockets.exceptions import ConnectionClosed

from gpulse.api import takeover
from gpulse.api.application import SERVER_OPTIONS
from gpulse.api.takeover import EXTENSION, MOST_CONTROLS_A_SECOND, MOST_UNSENT
from tests.patience import PATIENCE_SECONDS


class Receiver:
    def __init__(self, line):
        self.line = line
        self.heard = []
        self.ended = asyncio.Event()
        self.gone_with = None

    def binary(self, data: bytes) -> None:
        if data == b"crash":
            raise RuntimeError("a receiver's own fault")
        self.heard.append(("binary", data))
        if data == b"echo":
            self.line.send("echo")
        if data == b"bye":
            self.line.close(4400, "as you wish")

    def text(self, data: bytes) -> None:
        self.heard.append(("text", data))

    def gone(self, code: int, reason: str) -> None:
        assert self.gone_with is None
        self.gone_with = (code, reason)
        self.ended.set()


@contextlib.asynccontextmanager
async def serving():
    """A server and the receivers of its connections."""
    receivers: list[Receiver] = []

    async def serve(websocket: WebSocket) -> None:
        await websocket.accept()

        def make(line):
            receivers.append(Receiver(line))
            return receivers[-1]

        websocket.scope["extensions"][EXTENSION](make)

    async def never(websocket: WebSocket) -> None:
        del websocket
        await asyncio.sleep(3600)

    app = Starlette(routes=[WebSocketRoute("/", serve), WebSocketRoute("/never", never)])
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="warning", **SERVER_OPTIONS))
    running = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield server, f"ws://127.0.0.1:{listener.getsockname()[1]}/", receivers
    finally:
        server.should_exit = True
        await asyncio.wait_for(running, PATIENCE_SECONDS)


async def until(true, seconds=PATIENCE_SECONDS):
    async with asyncio.timeout(seconds):
        while not true():
            await asyncio.sleep(0.01)


def run(scene):
    asyncio.run(asyncio.wait_for(scene(), 60))


def test_messages_reach_the_receiver():
    async def scene():
        async with serving() as (_, url, receivers), websockets.connect(url, compression=None) as client:
            await client.send(b"one")
            await client.send("two")
            await client.send([b"thr", b"ee" * 70_000])
            await client.send(b"echo")
            assert await client.recv() == "echo"
            assert receivers[0].heard[:2] == [("binary", b"one"), ("text", b"two")]
            assert receivers[0].heard[2] == ("binary", b"thr" + b"ee" * 70_000)
            await asyncio.wait_for(await client.ping(), 20)

    run(scene)


def test_the_client_says_goodbye():
    async def scene():
        async with serving() as (_, url, receivers):
            async with websockets.connect(url) as client:
                await client.close(1001, "going")
            await until(receivers[0].ended.is_set)
            assert receivers[0].gone_with == (1001, "going")

    run(scene)


def test_the_client_is_cut_off():
    async def scene():
        async with serving() as (_, url, receivers):
            client = await websockets.connect(url)
            await client.send(b"one")
            client.transport.abort()
            await until(lambda: receivers and receivers[0].ended.is_set())
            assert receivers[0].gone_with[0] == 1006

    run(scene)


def test_the_hub_says_goodbye():
    async def scene():
        async with serving() as (_, url, receivers), websockets.connect(url) as client:
            await until(lambda: receivers)
            receivers[0].line.close(4401, "the token was revoked")
            with pytest.raises(ConnectionClosed) as closed:
                # A client waits for the server to hang up.
                await asyncio.wait_for(client.recv(), 20)
            assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4401, "the token was revoked")
            assert receivers[0].gone_with == (4401, "the token was revoked")

    run(scene)


def test_a_ping_behind_what_ended_the_connection(caplog):
    async def scene():
        async with serving() as (_, url, receivers):
            client = await websockets.connect(url)
            ping = b"\x89\x81\0\0\0\0p"
            bye = b"\x82\x83\0\0\0\0bye"
            client.transport.write(bye + ping)
            with pytest.raises(ConnectionClosed) as closed:
                await asyncio.wait_for(client.recv(), 20)
            assert closed.value.rcvd.code == 4400
            assert receivers[0].gone_with == (4400, "as you wish")

    run(scene)
    assert caplog.text == ""


def test_the_hub_ends():
    async def scene():
        async with serving() as (server, url, receivers), websockets.connect(url) as client:
            await until(lambda: receivers)
            server.should_exit = True
            with pytest.raises(ConnectionClosed) as closed:
                await client.recv()
            assert closed.value.rcvd.code == 1012
            assert receivers[0].gone_with[0] == 1012

    run(scene)


def test_a_fault_of_the_receiver_ends_its_connection_alone(caplog):
    async def scene():
        async with (
            serving() as (_, url, receivers),
            websockets.connect(url) as other,
            websockets.connect(url) as client,
        ):
            await client.send(b"crash")
            with pytest.raises(ConnectionClosed) as closed:
                await client.recv()
            assert closed.value.rcvd.code == 1011
            assert receivers[1].gone_with[0] == 1011
            await other.send(b"echo")
            assert await other.recv() == "echo"

    run(scene)
    assert "fault of gpulse" in caplog.text


def test_what_is_no_frame_ends_the_connection():
    async def scene():
        async with serving() as (_, url, receivers):
            client = await websockets.connect(url)
            client.transport.write(b"\x82\x05hello")
            with pytest.raises(ConnectionClosed) as closed:
                await client.recv()
            assert closed.value.rcvd.code == 1002
            assert "masked" in closed.value.rcvd.reason
            assert receivers[0].gone_with[0] == 1002

    run(scene)


HANDSHAKE = (
    b"Host: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)
NO_HANDSHAKES = {
    "a long header": (b"GET / HTTP/1.1\r\n" + HANDSHAKE + b"Authorization: " + b"a" * 30_000 + b"\r\n\r\n", 431),
    "many headers": (
        b"GET / HTTP/1.1\r\n" + HANDSHAKE + b"".join(b"X-%d: y\r\n" % number for number in range(500)) + b"\r\n",
        431,
    ),
    "a long address": (b"GET /" + b"a" * 30_000 + b" HTTP/1.1\r\n" + HANDSHAKE + b"\r\n", 431),
    "a POST": (b"POST / HTTP/1.1\r\nContent-Length: 5\r\n" + HANDSHAKE + b"\r\nhello", 400),
    "a body": (b"GET / HTTP/1.1\r\nContent-Length: 5\r\n" + HANDSHAKE + b"\r\nhello", 400),
}


async def answered(url: str, request: bytes) -> bytes:
    """All that comes until the server hangs up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2].strip("/")))
    try:
        writer.write(request)
        return await asyncio.wait_for(reader.read(), 20)
    finally:
        writer.close()


@pytest.mark.parametrize("kind", NO_HANDSHAKES)
def test_what_is_no_handshake_is_refused_and_not_kept(kind, caplog):
    request, status = NO_HANDSHAKES[kind]

    async def scene():
        async with serving() as (server, url, _):
            answers = await asyncio.gather(*(answered(url, request) for _ in range(50)))
            for answer in answers:
                head, _, body = answer.partition(b"\r\n\r\n")
                assert int(head.split()[1]) == status
                assert b"connection: close" in head
                assert json.loads(body)["error"]["message"]
            await until(lambda: not server.server_state.connections)
            async with websockets.connect(url) as client:
                await client.send(b"echo")
                assert await client.recv() == "echo"

    run(scene)
    assert caplog.text == ""


def test_an_application_that_does_not_answer_a_handshake(monkeypatch):
    monkeypatch.setattr(takeover, "HANDSHAKE_SECONDS", 0.3)

    async def scene():
        async with serving() as (server, url, _):
            answer = await answered(url, b"GET /never HTTP/1.1\r\n" + HANDSHAKE + b"\r\n")
            assert answer.startswith(b"HTTP/1.1 503 ")
            assert b"retry-after: 5" in answer
            await until(lambda: not server.server_state.connections)
            for task in tuple(server.server_state.tasks):
                task.cancel()
            # Its time is not that of the connection.
            async with websockets.connect(url) as client:
                await asyncio.sleep(0.5)
                await client.send(b"echo")
                assert await client.recv() == "echo"

    run(scene)


def test_too_many_pings():
    async def scene():
        async with serving() as (_, url, receivers):
            client = await websockets.connect(url)
            ping = b"\x89\x81\0\0\0\0p"
            client.transport.write(ping * (MOST_CONTROLS_A_SECOND // 2))
            await client.send(b"echo")
            assert await client.recv() == "echo"
            # More than two seconds may hold: they need not all fall into one.
            client.transport.write(ping * (2 * MOST_CONTROLS_A_SECOND + 1))
            with pytest.raises(ConnectionClosed) as closed:
                await asyncio.wait_for(client.recv(), 20)
            assert closed.value.rcvd.code == 1008
            assert receivers[0].gone_with[0] == 1008

    run(scene)


def test_who_asks_for_pongs_and_reads_none_is_cut_off(monkeypatch):
    monkeypatch.setattr(takeover, "MOST_CONTROLS_A_SECOND", 10**9)

    async def scene():
        async with serving() as (_, url, receivers):
            client = await websockets.connect(url, max_queue=1)
            client.transport.pause_reading()
            ping = b"\x89\xfd" + b"\0\0\0\0" + b"p" * 125
            sent = 0
            while not (receivers and receivers[0].ended.is_set()):
                if client.transport.is_closing():
                    break
                client.transport.write(ping * 1000)
                sent += 127_000
                await asyncio.sleep(0.001)
                assert sent < 500 * MOST_UNSENT
            await until(receivers[0].ended.is_set)
            client.transport.abort()

    run(scene)


def test_many_connections_leave_nothing_behind():
    async def scene():
        async with serving() as (server, url, receivers):
            for _ in range(5):
                clients = await asyncio.gather(*(websockets.connect(url) for _ in range(40)))
                for client in clients:
                    await client.send(b"echo")
                await asyncio.gather(*(client.recv() for client in clients))
                for client in clients:
                    client.transport.abort()
                await until(lambda: all(receiver.ended.is_set() for receiver in receivers))
            await until(lambda: not server.server_state.connections)
            await until(lambda: not server.server_state.tasks)

    run(scene)
