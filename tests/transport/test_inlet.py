"""One SSH connection takes a share of the hub's time at most, whatever it sends, and nothing is kept for it."""

import asyncio
import time

import pytest

from gpulse.transport import inlet
from gpulse.transport.inlet import Inlet
from tests import undisturbed


class Reader:
    """Takes its time for every piece."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.pieces: list[bytes] = []
        self.lost = False

    def connection_made(self, _transport: object) -> None:
        return None

    def data_received(self, data: bytes) -> None:
        end = time.thread_time() + self.seconds
        while time.thread_time() < end:
            pass
        self.pieces.append(data)

    def eof_received(self) -> None:
        return None

    def connection_lost(self, _exc: Exception | None) -> None:
        self.lost = True


class Transport:
    """Always has more, unless it is paused."""

    def __init__(self, piece: bytes) -> None:
        self.piece = piece
        self.paused = False
        self.closing = False

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def is_closing(self) -> bool:
        return self.closing

    async def flood(self, protocol: Inlet, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while loop.time() < end:
            if not self.paused:
                protocol.data_received(self.piece)
            await asyncio.sleep(0 if not self.paused else 0.001)


@pytest.mark.parametrize("later", [False, True], ids=["directly", "through a jump host"])
@pytest.mark.parametrize("size", [100, 1 << 18], ids=["small pieces", "large pieces"])
def test_a_flood_takes_a_share_of_the_time(size: int, later: bool):
    async def run() -> tuple[float, float]:
        reader, transport = Reader(0.004), Transport(b"x" * size)
        protocol = Inlet(reader, later=later)
        protocol.connection_made(transport)
        loop = asyncio.get_running_loop()
        began = loop.time()
        await transport.flood(protocol, 2.0)
        assert max(map(len, reader.pieces)) <= inlet.PIECE_BYTES
        return len(reader.pieces) * reader.seconds, loop.time() - began

    busy, passed = undisturbed.run(run())
    assert busy < 1.5 * inlet.LARGEST_SHARE * passed
    # It goes on being read.
    assert busy > 0.5 * inlet.LARGEST_SHARE * passed


def test_everything_arrives_in_order():
    async def run() -> bytes:
        reader, transport = Reader(0.0), Transport(b"")
        protocol = Inlet(reader)
        protocol.connection_made(transport)
        protocol.data_received(bytes(range(256)) * 1000)
        while transport.paused:
            await asyncio.sleep(0)
        protocol.data_received(b"end")
        return b"".join(reader.pieces)

    assert undisturbed.run(run()) == bytes(range(256)) * 1000 + b"end"


def test_what_is_lost_is_dropped():
    async def run() -> Reader:
        reader, transport = Reader(0.0), Transport(b"")
        protocol = Inlet(reader)
        protocol.connection_made(transport)
        protocol.data_received(b"x" * 100_000)
        transport.closing = True
        protocol.connection_lost(None)
        await asyncio.sleep(0.1)
        return reader

    reader = undisturbed.run(run())
    assert reader.lost
    assert len(reader.pieces) == 1
