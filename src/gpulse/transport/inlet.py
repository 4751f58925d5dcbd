"""The bytes of one SSH connection on their way in: piece by piece, and never more than a share of the hub's time.

asyncssh reads whatever comes, at once. A node that sends at full rate, be it output or packets without any use, would
take all of the loop's time; here its connection is not read while it has used up its share, so that the node must wait.
"""

import asyncio
import socket
import time
from collections.abc import Callable
from typing import Any, cast

import asyncssh

# asyncssh copies the rest of a piece for every packet in it.
PIECE_BYTES = 1 << 14
LARGEST_SHARE = 0.2
# A login or a large snapshot takes some time at once.
MOST_SECONDS_AT_ONCE = 0.05


class Inlet(asyncio.Protocol):
    """Stands between a transport, or the channel of a jump host, and asyncssh's connection."""

    def __init__(self, connection: Any, *, later: bool = False) -> None:
        """`later`: nothing is done in data_received(), whose caller has to account for its own time."""
        self.connection = connection
        self._later = later
        self._loop = asyncio.get_running_loop()
        self._transport: Any = None
        self._rest = b""
        self._timer: asyncio.Handle | None = None
        # How much CPU time it may still take, and when that was so.
        self._seconds = MOST_SECONDS_AT_ONCE
        self._at = self._loop.time()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self.connection.connection_made(transport)

    def session_started(self) -> None:
        """The channel of a jump host is open."""
        self.connection.session_started()

    def data_received(self, data: bytes, _datatype: asyncssh.DataType = None) -> None:
        self._rest = self._rest + data if self._rest else data
        if self._timer is None:
            if self._later:
                self._wait(0.0)
            else:
                self._turn()

    def eof_received(self) -> None:
        self.connection.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._drop()
        self.connection.connection_lost(exc)

    def pause_writing(self) -> None:
        self.connection.pause_writing()

    def resume_writing(self) -> None:
        self.connection.resume_writing()

    def _turn(self) -> None:
        """Read a piece; then wait where there are more, or where it took too long."""
        paused, self._timer = self._timer is not None, None
        now = self._loop.time()
        self._seconds = min(self._seconds + LARGEST_SHARE * (now - self._at), MOST_SECONDS_AT_ONCE)
        self._at = now
        if self._rest and self._seconds >= 0:
            piece, self._rest = self._rest[:PIECE_BYTES], self._rest[PIECE_BYTES:]
            self._spend(piece)
        if self._transport.is_closing():
            self._drop()
        elif self._rest or self._seconds < 0:
            self._wait(max(0.0, -self._seconds / LARGEST_SHARE))
        elif paused:
            self._transport.resume_reading()

    def _spend(self, piece: bytes) -> None:
        began = time.thread_time()
        self.connection.data_received(piece)
        self._seconds -= time.thread_time() - began

    def _wait(self, seconds: float) -> None:
        self._transport.pause_reading()
        self._timer = self._loop.call_later(seconds, self._turn) if seconds else self._loop.call_soon(self._turn)

    def _drop(self) -> None:
        self._rest = b""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Connector:
    """What asyncssh opens its connection through, in place of a tunnel: a socket, or a connection to a jump host."""

    def __init__(self, through: socket.socket | asyncssh.SSHClientConnection) -> None:
        self._through = through

    async def create_connection(self, factory: Callable[[], Any], host: str, port: int) -> tuple[Any, Any]:
        if isinstance(self._through, socket.socket):
            loop = asyncio.get_running_loop()
            transport, inlet = await loop.create_connection(lambda: Inlet(factory()), sock=self._through)
            return transport, inlet.connection
        # To a jump host's channel it is a session.
        session = cast(Callable[[], asyncssh.SSHTCPSession[bytes]], lambda: Inlet(factory(), later=True))
        channel, opened = await self._through.create_connection(session, host, port)
        return channel, cast(Inlet, opened).connection
