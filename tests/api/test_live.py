"""The live stream, over real sockets: first everything, then what changed, and nobody waits for the slow."""

import asyncio
import json
import socket
import struct
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest
import uvicorn
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from gpulse.api.application import SERVER_OPTIONS, create_app
from gpulse.api.live import Listener
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.places import Place
from tests.api.fleets import add, card, small, snapshot
from tests.api.people import open_access
from tests.patience import PATIENCE_SECONDS


class Server:
    def __init__(self, port: int, live: Any):
        self.port = port
        self.live = live

    def url(self, query: str = "", base: str = "") -> str:
        return f"ws://127.0.0.1:{self.port}{base}/api/v1/live{query}"


@asynccontextmanager
async def serving(fleet: Fleet, **options: Any) -> AsyncIterator[Server]:
    app = create_app(fleet, **({"access": open_access()} | options))
    config = uvicorn.Config(app, log_level="error", lifespan="off", **SERVER_OPTIONS)
    server = uvicorn.Server(config)
    listening = socket.create_server(("127.0.0.1", 0))
    # Connections inherit it; the kernel would else keep megabytes for a slow reader.
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
    task = asyncio.create_task(server.serve([listening]))
    try:
        yield Server(listening.getsockname()[1], app.state.live)
    finally:
        server.should_exit = True
        await asyncio.wait_for(task, PATIENCE_SECONDS)


def with_server(fleet: Fleet, check: Callable[[Server], Awaitable[None]], **options: Any) -> None:
    async def run() -> None:
        async with serving(fleet, **options) as server:
            await check(server)

    asyncio.run(run())


async def frame(listener: ClientConnection) -> Any:
    text = await asyncio.wait_for(listener.recv(), 10)
    return json.loads(text) if isinstance(text, str) else text


def standing() -> Fleet:
    """A small one. By its clock no time passes: no node becomes stale, however slow the machine is."""
    fleet = small()
    now = fleet.clock()
    fleet.clock = lambda: now
    return fleet


def busier(fleet: Fleet, name: str, gpus: int = 2) -> None:
    cards = [card(f"GPU-{name}-{index}", index, power_watts=500.0) for index in range(gpus)]
    fleet.line(name, snapshot(name, cards))


def test_first_everything_then_what_changed():
    fleet = standing()

    async def check(server: Server) -> None:
        async with connect(server.url()) as listener:
            full = await frame(listener)
            assert (full["type"], full["generation"], full["total"]) == ("full", 1, 4)
            assert [node["name"] for node in full["nodes"]] == ["gpu1", "gpu2", "gpu3", "gpu10"]
            assert full["summary"]["states"]["free"] == 3
            busier(fleet, "gpu2")
            fleet.remove("gpu3")
            fleet.tick()
            delta = await frame(listener)
            assert (delta["type"], delta["generation"], delta["removed"]) == ("delta", 2, ["gpu3"])
            assert [node["name"] for node in delta["nodes"]] == ["gpu2"]
            assert delta["nodes"][0]["gpus"][0]["power_watts"] == 500.0
            add(fleet, "gpu4")
            fleet.tick()
            delta = await frame(listener)
            assert [node["name"] for node in delta["nodes"]] == ["gpu4"]

    with_server(fleet, check)


def test_to_grow_older_or_longer_idle_is_no_news():
    now = [100.0]
    fleet = Fleet(clock=lambda: now[0])
    for name in ("gpu1", "gpu2"):
        fleet.place(Place(name=name))
        fleet.line(name, snapshot(name, [card(f"GPU-{name}", 0, memory_used_bytes=9 << 30)]))
    fleet.tick()

    async def check(server: Server) -> None:
        async with connect(server.url("?q=idle")) as listener:
            full = await frame(listener)
            assert [node["gpus"][0]["idle_seconds"] for node in full["nodes"]] == [0.0, 0.0]
            now[0] += 2.5
            busier(fleet, "gpu1")
            fleet.tick()
            delta = await frame(listener)
            assert (delta["nodes"], delta["removed"]) == ([], ["gpu1"])

    with_server(fleet, check)


def test_a_filter_narrows_nodes_and_gpus():
    fleet = standing()

    async def check(server: Server) -> None:
        async with connect(server.url("?q=free+node:gpu[1-2]&limit=1")) as listener:
            full = await frame(listener)
            assert full["total"] == 2
            assert [[gpu["id"] for gpu in node["gpus"]] for node in full["nodes"]] == [["GPU-gpu1-1"]]
            assert full["summary"]["gpus"] == 6, "the summary is of the whole fleet"
            fleet.down("gpu1", "gone")
            fleet.tick()
            delta = await frame(listener)
            assert delta["removed"] == ["gpu1"]
            assert [node["name"] for node in delta["nodes"]] == ["gpu2"]

    with_server(fleet, check)


def planes_of(data: bytes) -> tuple[int, dict[str, Any], bytes]:
    """Kind, head with the layout in it, and planes, as docs/api.md describes them."""
    magic, version, kind, zero, length = struct.unpack_from("<4sBBHL", data)
    assert (magic, version, zero) == (b"GPLS", 2, 0)
    head = json.loads(data[12 : 12 + length])
    rest = 12 + length + head.get("layout_bytes", 0)
    if kind == 0:
        head |= json.loads(zlib.decompress(data[12 + length : rest]))
    return kind, head, zlib.decompress(data[rest:])


def test_binary_frames_add_up():
    fleet = standing()

    async def check(server: Server) -> None:
        async with connect(server.url("?format=binary")) as listener:
            kind, head, planes = planes_of(await frame(listener))
            assert kind == 0
            assert [len(node["gpus"]) for node in head["nodes"]] == [2, 2, 0, 2]
            assert list(planes[:6]) == [4, 7, 4, 7, 4, 7], "busy and free in turn"
            fleet.down("gpu1", "gone")
            fleet.tick()
            kind, head, difference = planes_of(await frame(listener))
            assert (kind, head["base"], head["generation"]) == (1, 1, 2)
            now = bytes((one + other) % 256 for one, other in zip(planes, difference, strict=True))
            assert list(now[:6]) == [0, 0, 4, 7, 4, 7]
            add(fleet, "gpu4")
            fleet.tick()
            kind, head, _ = planes_of(await frame(listener))
            assert kind == 0, "a new layout needs a full frame"
            assert len(head["nodes"]) == 5

    with_server(fleet, check)


def test_binary_frames_are_whole_for_those_who_come_after_all_have_gone():
    fleet = small()

    async def check(server: Server) -> None:
        for _ in range(2):
            async with connect(server.url("?format=binary")) as listener:
                _, head, _ = planes_of(await frame(listener))
            model = head["nodes"][0]["gpus"][0][2]
            assert head["models"][model] == "H100 80G"
            for _ in range(100):
                if server.live.listeners == 0:
                    break
                await asyncio.sleep(0.05)
            fleet.tick()

    with_server(fleet, check)


def test_listeners_of_one_kind_share_their_frames(monkeypatch: pytest.MonkeyPatch):
    from gpulse.api.live_json import JsonSource

    steps = []
    step = JsonSource.step

    async def counted(self: JsonSource) -> None:
        steps.append(1)
        await step(self)

    monkeypatch.setattr(JsonSource, "step", counted)
    fleet = small()

    async def check(server: Server) -> None:
        listeners = [await connect(server.url()) for _ in range(60)]
        for listener in listeners:
            assert (await frame(listener))["type"] == "full"
        made = len(steps)
        fleet.tick()
        frames = [await asyncio.wait_for(listener.recv(), 10) for listener in listeners]
        assert len(set(frames)) == 1
        assert json.loads(frames[0])["type"] == "delta"
        assert len(steps) == made + 1
        assert server.live.listeners == 60
        for listener in listeners:
            await listener.close()
        for _ in range(100):
            if server.live.listeners == 0:
                break
            await asyncio.sleep(0.05)
        assert server.live.listeners == 0

    with_server(fleet, check)


def test_a_slow_listener_skips_to_a_full_frame_and_delays_nobody():
    fleet = Fleet()
    for number in range(150):
        add(fleet, f"gpu{number}", 8)
    fleet.tick()

    async def check(server: Server) -> None:
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        slow.connect(("127.0.0.1", server.port))
        slow.sendall(
            b"GET /api/v1/live HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        async with connect(server.url(), max_size=None) as quick:
            await frame(quick)
            for generation in range(2, 14):
                for number in range(150):
                    busier(fleet, f"gpu{number}", 8)
                fleet.tick()
                started = time.monotonic()
                told = await frame(quick)
                assert told["generation"] == generation
                assert told["type"] == "delta"
                assert time.monotonic() - started < 5
        assert server.live.listeners >= 1
        slow.setblocking(False)
        kinds = await asyncio.wait_for(kinds_read(slow, fleet), 30)
        slow.close()
        assert kinds[0] == ("full", 1)
        assert len(kinds) < 12, "what it missed is gone"
        for (_, before), (kind, now) in pairwise(kinds):
            assert kind == ("delta" if now == before + 1 else "full")
        assert kinds[-1][1] > 13, "it goes on with what is so now"

    with_server(fleet, check)


async def kinds_read(slow: socket.socket, fleet: Fleet) -> list[tuple[str, int]]:
    """The kind and generation of all frames, up to one that is made after the reading began."""
    loop = asyncio.get_running_loop()
    data = bytearray()
    kinds: list[tuple[str, int]] = []
    body = False
    last = fleet.generation
    while not kinds or kinds[-1][1] <= last:
        try:
            data += await asyncio.wait_for(loop.sock_recv(slow, 1 << 20), 0.3)
        except TimeoutError:
            fleet.tick()
        if not body and b"\r\n\r\n" in data:
            body = True
            del data[: data.index(b"\r\n\r\n") + 4]
        while body and len(data) > 10:
            assert data[0] == 0x81
            size, start = data[1], 2
            if size == 126:
                size, start = struct.unpack_from(">H", data, 2)[0], 4
            elif size == 127:
                size, start = struct.unpack_from(">Q", data, 2)[0], 10
            if len(data) < start + size:
                break
            told = json.loads(bytes(data[start : start + size]))
            kinds.append((told["type"], told["generation"]))
            del data[: start + size]
    return kinds


def test_a_listener_keeps_one_frame_at_most():
    class Numbers:
        def __init__(self) -> None:
            self.at = 0

        async def step(self) -> None:
            self.at += 1

        def full(self) -> str:
            return f"full {self.at}"

        def delta(self) -> str:
            return f"delta {self.at}"

    async def check() -> None:
        source, listener, got = Numbers(), Listener(), []
        may_go_on = asyncio.Event()
        may_go_on.set()

        async def send(told: str | bytes) -> None:
            got.append(told)
            await may_go_on.wait()

        feeding = asyncio.create_task(listener.feed(send))
        for at in range(1, 9):
            if at == 3:
                may_go_on.clear()
            if at == 7:
                may_go_on.set()
                await asyncio.sleep(0)
            await source.step()
            listener.offer(source)
            await asyncio.sleep(0.01)
        feeding.cancel()
        assert got == ["full 1", "delta 2", "delta 3", "full 7", "delta 8"]

    asyncio.run(check())


@pytest.mark.parametrize(
    ("query", "code", "words"),
    [
        ("?q=colour:red", 1008, "colour"),
        ("?format=xml", 1008, "format"),
        ("?colour=red", 1008, "colour"),
        ("?format=binary&q=free", 1008, "takes no filter"),
    ],
)
def test_what_cannot_be_watched_is_told(query: str, code: int, words: str):
    async def check(server: Server) -> None:
        async with connect(server.url(query)) as listener:
            with pytest.raises(ConnectionClosed) as closed:
                await frame(listener)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == code
        assert words in closed.value.rcvd.reason

    with_server(small(), check)


def test_there_is_room_for_so_many_and_no_more():
    async def check(server: Server) -> None:
        async with connect(server.url()) as first, connect(server.url()) as second:
            await frame(first)
            await frame(second)
            async with connect(server.url()) as third:
                with pytest.raises(ConnectionClosed) as closed:
                    await frame(third)
            assert closed.value.rcvd is not None
            assert (closed.value.rcvd.code, "(2)" in closed.value.rcvd.reason) == (1013, True)

    with_server(small(), check, most_listeners=2)


def test_so_many_different_filters_and_no_more():
    async def check(server: Server) -> None:
        async with connect(server.url("?q=free")) as first:
            await frame(first)
            async with connect(server.url("?q=busy")) as second:
                with pytest.raises(ConnectionClosed) as closed:
                    await frame(second)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1013
            async with connect(server.url("?q=free")) as third:
                assert (await frame(third))["type"] == "full"

    with_server(small(), check, most_streams=1)


def test_a_stream_that_cannot_go_on_hangs_up_and_can_be_had_again():
    fleet = small()
    failing = []

    def notices() -> list[str]:
        if failing:
            raise RuntimeError(failing.pop())
        return []

    async def check(server: Server) -> None:
        async with connect(server.url()) as listener:
            await frame(listener)
            failing.append("as this test wants it")
            fleet.tick()
            with pytest.raises(ConnectionClosed):
                await frame(listener)
        async with connect(server.url()) as listener:
            assert (await frame(listener))["type"] == "full"
            fleet.tick()
            assert (await frame(listener))["type"] == "delta"

    with_server(fleet, check, notices=notices)


def test_a_page_of_another_site_cannot_watch():
    async def check(server: Server) -> None:
        with pytest.raises(InvalidStatus) as refused:
            await connect(server.url(), origin="https://evil.example")  # type: ignore[arg-type]
        assert refused.value.response.status_code == 403
        for origin in (f"http://127.0.0.1:{server.port}", "https://portal.example"):
            async with connect(server.url(), origin=origin) as listener:  # type: ignore[arg-type]
                assert (await frame(listener))["type"] == "full"

    with_server(small(), check, origins=["https://portal.example"])


@pytest.mark.parametrize(
    "origin",
    ["http://[", "http://[::1", "http://hub:port", "http://hub:99999999", "null", "", "http://", "://", "\u212a"],
)
def test_an_origin_that_is_none_is_refused_in_words_and_not_a_fault(origin: str, caplog: pytest.LogCaptureFixture):
    async def check(server: Server) -> None:
        with pytest.raises(InvalidStatus) as refused:
            await connect(server.url(), additional_headers={"Origin": origin.encode().decode("latin-1")})
        assert refused.value.response.status_code == 403

    with_server(small(), check, origins=["https://portal.example"])
    assert "Traceback" not in caplog.text


def test_frames_are_not_compressed_one_by_one_and_the_sub_path_holds():
    async def check(server: Server) -> None:
        async with connect(server.url(base="/gpulse")) as listener:
            assert listener.protocol.extensions == []
            assert (await frame(listener))["notices"] == ["hello"]

    with_server(small(), check, base_path="/gpulse", notices=lambda: ["hello"])
