"""Very many agents in one process, for bench.ingest: each a real WebSocket, sending what a real agent sends.

    python -m bench.pushers SETTINGS.json

Writes one JSON object a line: {"connected": n} when all are, {"sent": …, "lags": […]} at the end. The frames are
made as a client makes them, masked; the lines are the simulated crowd's, which bench.fleet compares with the real
probe's. Marked nodes tell their send in the temperature of their first GPU, by which it is found in live frames.
"""

import asyncio
import json
import os
import secrets
import ssl
import sys
import time
import zlib
from dataclasses import dataclass, field
from math import gcd
from pathlib import Path

import numpy as np
import uvloop
from websockets.frames import apply_mask

from bench.fleet import MIX, PEOPLE, SHARES, TEMPLATES
from gpulse.simulate.crowd import Crowd

SLICES = 50
# Temperatures by which sends are told apart; 255 is unknown.
MARKS = 200


@dataclass(frozen=True)
class Settings:
    port: int
    nodes: int
    tokens: str
    listeners: int
    seconds: float
    interval: float = 1.0
    connects_a_second: int = 400
    warm_seconds: float = 10.0
    post: bool = False
    tls: bool = False
    marked: int = 250

    def context(self) -> ssl.SSLContext | None:
        """For connections to a hub of our own, whoever it says it is."""
        if not self.tls:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context


class Refused(Exception):
    """The hub did not let an agent in."""


class Agent(asyncio.Protocol):
    """One node's connection."""

    def __init__(self, name: str, token: str, port: int, opened: asyncio.Future):
        self._request = (
            f"GET /api/v1/ingest?instance={secrets.token_hex(8)} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n"
            f"Authorization: Bearer {token}\r\n\r\n"
        ).encode()
        self.name = name
        self.mask = os.urandom(4)
        self.opened = opened
        self.transport: asyncio.Transport = None
        self._head = b""

    def connection_made(self, transport):
        self.transport = transport
        transport.write(self._request)

    def data_received(self, data):
        if self.opened.done():
            if data[0] & 0x0F == 9:
                # Only uvicorn's own WebSocket asks.
                self.transport.write(_pong(data[2 : 2 + (data[1] & 0x7F)]))
            elif data[0] & 0x0F == 8:
                print(f"{self.name}: closed by the hub: {data[4:]!r}", file=sys.stderr)
            return
        self._head += data
        if b"\r\n\r\n" in self._head:
            if b" 101 " not in self._head.split(b"\r\n")[0]:
                self.opened.set_exception(Refused(self._head.decode("latin-1")))
            else:
                self.opened.set_result(self)

    def connection_lost(self, exc):
        if not self.opened.done():
            self.opened.set_exception(Refused(f"{self.name}: {exc}"))

    def goodbye(self) -> None:
        self.transport.write(b"\x88\x82" + self.mask + apply_mask(b"\x03\xe8", self.mask))
        self.transport.close()

    def send(self, line: bytes) -> None:
        size = len(line)
        head = b"\x82" + (
            bytes((0xFE,)) + size.to_bytes(2, "big") if size < 1 << 16 else bytes((0xFF,)) + size.to_bytes(8, "big")
        )
        self.transport.write(b"".join((head, self.mask, apply_mask(line, self.mask))))


class Poster(asyncio.Protocol):
    """One node that posts whole snapshots instead, on a connection it keeps."""

    def __init__(self, name: str, token: str, port: int, opened: asyncio.Future):
        self._head = (
            f"POST /api/v1/ingest HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\nContent-Length: "
        ).encode()
        self.name = name
        self.opened = opened
        self.transport: asyncio.Transport = None

    def connection_made(self, transport):
        self.transport = transport
        self.opened.set_result(self)

    def data_received(self, data):
        if not data.startswith(b"HTTP/1.1 200"):
            print(f"{self.name}: {data[:300]!r}", file=sys.stderr)

    def send(self, line: bytes) -> None:
        self.transport.write(b"%s%d\r\n\r\n%s" % (self._head, len(line), line))


@dataclass
class Freshness:
    """When marked lines were sent, and when a live frame showed them."""

    names: list[str]
    # As the last full line told them.
    temperatures: dict[str, list[int]] = field(default_factory=dict)
    sent: dict[str, list[float]] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=dict)
    lags: list[float] = field(default_factory=list)
    counting: bool = False

    def mark(self, name: str, line: bytes, now: float) -> bytes:
        times = self.sent.setdefault(name, [])
        value = len(times) % MARKS
        times.append(now)
        record = json.loads(line)
        if "update" in record:
            column = record.setdefault("gpus", {}).setdefault("temperature_celsius", self.temperatures[name])
            column[0] = value
        else:
            record["gpus"][0]["temperature_celsius"] = value
            self.temperatures[name] = [gpu.get("temperature_celsius") for gpu in record["gpus"]]
        return json.dumps(record, separators=(",", ":")).encode()

    def frame(self, temperature: dict[str, int], now: float) -> None:
        for name, value in temperature.items():
            times = self.sent.get(name)
            if not times:
                continue
            # The newest send with this mark.
            last = len(times) - 1
            newest = last - (last - value) % MARKS
            for number in range(self.seen.get(name, newest), newest + 1):
                if self.counting and name in self.seen:
                    self.lags.append(now - times[number])
            if newest >= 0:
                self.seen[name] = newest + 1


class Frames:
    """Reads binary live frames, as the page does."""

    def __init__(self, freshness: Freshness):
        self._freshness = freshness
        self._planes = np.zeros(0, np.uint8)
        self._slots: dict[str, int] = {}
        self._gpus = 0

    def take(self, frame: bytes) -> None:
        now = time.monotonic()
        kind, size = frame[5], int.from_bytes(frame[8:12], "little")
        head = json.loads(frame[12 : 12 + size])
        rest = frame[12 + size :]
        if kind == 0:
            layout = json.loads(zlib.decompress(rest[: head["layout_bytes"]]))
            rest = rest[head["layout_bytes"] :]
            self._gpus, self._slots = 0, {}
            wanted = set(self._freshness.names)
            for node in layout["nodes"]:
                if node["name"] in wanted and node["gpus"]:
                    self._slots[node["name"]] = self._gpus
                self._gpus += len(node["gpus"])
            self._planes = np.frombuffer(zlib.decompress(rest), np.uint8).copy()
        else:
            self._planes += np.frombuffer(zlib.decompress(rest), np.uint8)
        temperature = self._planes[3 * self._gpus : 4 * self._gpus]
        self._freshness.frame({name: int(temperature[slot]) for name, slot in self._slots.items()}, now)


class Listener(asyncio.Protocol):
    """Somebody who watches; `take` gets whole frames, or nobody."""

    def __init__(self, port: int, take=None):
        self._request = (
            f"GET /api/v1/live?format=binary HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
        ).encode()
        self._take = take
        self._buffer = bytearray()
        self._open = False
        self.frames = 0
        self.bytes = 0
        self.lost = False

    def connection_made(self, transport):
        self._transport = transport
        transport.write(self._request)

    def connection_lost(self, _exc):
        self.lost = True

    def data_received(self, data):
        self._buffer += data
        if not self._open:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            assert b" 101 " in self._buffer[:end], bytes(self._buffer[:300])
            del self._buffer[: end + 4]
            self._open = True
        while self._frame():
            pass

    def _frame(self) -> bool:
        buffer = self._buffer
        if len(buffer) < 2:
            return False
        size, start = buffer[1] & 0x7F, 2
        if size == 126:
            size, start = int.from_bytes(buffer[2:4], "big"), 4
        elif size == 127:
            size, start = int.from_bytes(buffer[2:10], "big"), 10
        if len(buffer) < start + size:
            return False
        opcode = buffer[0] & 0x0F
        if opcode == 2:
            self.frames += 1
            self.bytes += size
            if self._take:
                self._take(bytes(buffer[start : start + size]))
        elif opcode == 9:
            self._transport.write(b"\x8a\x80\0\0\0\0" if not size else _pong(bytes(buffer[start : start + size])))
        del buffer[: start + size]
        return True


def _pong(payload: bytes) -> bytes:
    return bytes((0x8A, 0x80 | len(payload))) + b"\0\0\0\0" + payload


def tokens_of(path: Path) -> dict[str, str]:
    """Node -> token."""
    return json.loads(path.read_text("ascii"))


def tell(**what) -> None:
    print(json.dumps(what), flush=True)


class Pushers:
    """All agents: each sends from the moment it is connected, a slice of them at a time."""

    def __init__(self, settings: Settings):
        self._settings = settings
        self._kind = Poster if settings.post else Agent
        self._tokens = tokens_of(Path(settings.tokens))
        self._crowd = Crowd(
            settings.nodes,
            1,
            time.time(),
            templates=TEMPLATES,
            seconds=300,
            every=5,
            mix=MIX,
            people=PEOPLE,
            shares=SHARES,
        )
        step = max(1, settings.nodes // settings.marked)
        while gcd(step, SLICES) > 1:
            # Otherwise they would all be in one slice, and their lag that of its moment.
            step += 1
        self.freshness = Freshness([place.name for place in self._crowd.places()[::step]])
        self._marked = set(self.freshness.names)
        self._slices: list[list[Agent | Poster]] = [[] for _ in range(SLICES)]
        self.sent = 0
        self.bytes = 0
        self.latest = 0.0

    async def connect(self) -> None:
        loop = asyncio.get_running_loop()
        port, context = self._settings.port, self._settings.context()
        names = [place.name for place in self._crowd.places()]
        for first in range(0, len(names), 50):
            began = time.monotonic()
            waiting = []
            for number, name in enumerate(names[first : first + 50], first):
                opened = loop.create_future()
                # One source address has 28,000 ports.
                await loop.create_connection(
                    lambda name=name, opened=opened: self._kind(name, self._tokens[name], port, opened),
                    "127.0.0.1",
                    port,
                    local_addr=(f"127.0.1.{1 + number // 10_000}", 0),
                    ssl=context,
                )
                waiting.append(opened)
            for number, agent in enumerate(await asyncio.gather(*waiting), first):
                self._crowd.advance(time.time())
                self._crowd.new_stream(agent.name)
                self._send(agent)
                self._slices[number % SLICES].append(agent)
            await asyncio.sleep(max(0.0, began + 50 / self._settings.connects_a_second - time.monotonic()))

    async def send(self) -> None:
        """Until it is cancelled; no moment is left out, however late it is."""
        due = time.monotonic()
        number = 0
        while True:
            self._crowd.advance(time.time())
            self.latest = max(self.latest, time.monotonic() - due)
            for agent in self._slices[number]:
                self._send(agent)
            number = (number + 1) % SLICES
            due += self._settings.interval / SLICES
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    def _send(self, agent: Agent | Poster) -> None:
        if self._settings.post:
            self._crowd.new_stream(agent.name)
        line = self._crowd.line(agent.name)
        if agent.name in self._marked:
            line = self.freshness.mark(agent.name, line, time.monotonic())
        agent.send(line)
        self.sent += 1
        self.bytes += len(line)


async def run(settings: Settings) -> None:
    pushers = Pushers(settings)
    sending = asyncio.create_task(pushers.send())
    await pushers.connect()
    loop = asyncio.get_running_loop()
    frames = Frames(pushers.freshness)
    listeners = []
    for number in range(settings.listeners):
        take = frames.take if number == 0 else None
        _, listener = await loop.create_connection(
            lambda take=take: Listener(settings.port, take), "127.0.0.1", settings.port, ssl=settings.context()
        )
        listeners.append(listener)
    tell(connected=settings.nodes)
    await asyncio.sleep(settings.warm_seconds)
    pushers.freshness.counting = True
    sent, sent_bytes, pushers.latest = pushers.sent, pushers.bytes, 0.0
    cpu = time.process_time()
    tell(begun=True)
    await asyncio.sleep(settings.seconds)
    cpu = time.process_time() - cpu
    tell(ended=True)
    sending.cancel()
    await asyncio.wait([sending])
    if not sending.cancelled():
        sending.result()
    await asyncio.sleep(3)
    tell(
        sent=pushers.sent,
        bytes_a_line=(pushers.bytes - sent_bytes) / (pushers.sent - sent),
        late_seconds=pushers.latest,
        lags=pushers.freshness.lags,
        frames=[listener.frames for listener in listeners],
        frame_bytes=listeners[0].bytes,
        listeners_lost=sum(listener.lost for listener in listeners),
        cpu_ratio=cpu / settings.seconds,
    )
    # The connections stay until the hub has been asked.
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    uvloop.run(run(Settings(**json.loads(Path(sys.argv[1]).read_text("ascii")))))
