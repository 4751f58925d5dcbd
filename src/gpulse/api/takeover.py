"""The web server's WebSocket, with a shortcut: an address may take over its connection and get the frames directly.

An application finds `gpulse.take_over` among the extensions of its scope. It calls it once, right after it has
accepted; from then on what comes goes to the receiver that it gave, and the application may return.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Protocol, cast

from uvicorn._types import ASGISendEvent
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import SecurityError
from websockets.http11 import Request

from gpulse.api.frames_in import CLOSE, PING, FrameError, FramesIn, close_frame, pong_frame, text_frame
from gpulse.api.heads import last_words
from gpulse.errors import RequestError
from gpulse.transport.limits import Tally
from gpulse.transport.pushed import Line

EXTENSION = "gpulse.take_over"
RESTART = 1012
NORMAL = 1000
POLICY = 1008
INTERNAL_ERROR = 1011
# Pings, pongs and goodbyes: an agent needs one in twenty seconds. A viewer has nothing else to say either.
MOST_CONTROLS_A_SECOND = 100
# So long an application has to take or refuse a connection.
HANDSHAKE_SECONDS = 30.0
# Who asks for pongs and does not read them must not fill the memory.
MOST_UNSENT = 1 << 16
# So long a peer has for its own close frame after ours, and so much it may still send before that.
CLOSE_SECONDS = 5.0
MOST_AFTER_CLOSE = 32 << 20
# Frames are parsed so many bytes at a time: of the smallest there are hundreds in them, and then they are counted.
PIECE_BYTES = 1 << 12

_log = logging.getLogger(__name__)


class Receiver(Protocol):
    """Who takes over. No call may wait; one that raises ends the connection."""

    def binary(self, data: bytes) -> None: ...

    def text(self, data: bytes) -> None: ...

    def gone(self, code: int, reason: str) -> None:
        """The connection has ended, by whomever, also by Line.close(); called once, nothing comes after it."""


TakeOver = Callable[[Callable[[Line], Receiver]], None]


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """uvicorn's own, with the extension; it would keep a request that is no handshake for ever, without a word."""

    _handshake_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._counted = Tally()
        self._handshake_timer = self.loop.call_later(HANDSHAKE_SECONDS, self._too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_handshake()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        for start in range(0, len(data), PIECE_BYTES):
            if self.transport.is_closing():
                return
            super().data_received(data[start : start + PIECE_BYTES])
            trouble = self.conn.handshake_exc
            if trouble is not None and not self.handshake_initiated:
                self._refuse(_no_handshake(trouble))

    def handle_events(self) -> None:
        if self.handshake_complete and self._counted.add(len(self.conn.events)) > MOST_CONTROLS_A_SECOND:
            self._end(POLICY, f"more than {MOST_CONTROLS_A_SECOND} frames a second")
            return
        super().handle_events()

    def handle_ping(self) -> None:
        if self.transport.get_write_buffer_size() > MOST_UNSENT:
            # Its pongs would pile up. A ping may go unanswered when a later one is answered.
            self.conn.data_to_send()
            return
        super().handle_ping()

    def _end(self, code: int, reason: str) -> None:
        """Close the connection with words, and without waiting for the peer's own."""
        self.stop_keepalive()
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})
        self.conn.data_to_send()
        self.transport.write(close_frame(code, reason))
        self.close_sent = True
        self.transport.close()
        # One that does not read the words either is not waited for.
        self.loop.call_later(CLOSE_SECONDS, self.transport.abort)

    def _refuse(self, error: RequestError) -> None:
        self._end_handshake()
        if self.transport.is_closing():
            return
        self.transport.write(last_words(error))
        self.transport.close()

    def _too_slow(self) -> None:
        self._refuse(RequestError(503, "too_slow", "the hub did not get to it in time", "try again later", 5))

    def _end_handshake(self) -> None:
        if self._handshake_timer is not None:
            self._handshake_timer.cancel()
            self._handshake_timer = None

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if hasattr(self, "scope"):
            # The application runs only after this.
            cast(dict[str, Any], self.scope["extensions"])[EXTENSION] = self._take_over

    async def send(self, message: ASGISendEvent) -> None:
        if self.close_sent and self.initial_response is None:
            # The server has ended it: to the application that is as if the peer had gone.
            raise ClientDisconnected
        await super().send(message)
        if self.handshake_complete:
            self._end_handshake()
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            # Refused in words: that is a handshake's end too, and no mistake of the application's.
            self.handshake_complete = True
            self._end_handshake()

    def _take_over(self, make: Callable[[Line], Receiver]) -> None:
        if not self.handshake_complete or self.disconnected or self.transport.is_closing():
            # It is gone already: the application is told as of any connection.
            return
        self.stop_keepalive()
        taken = TakenOver(self.transport, self.connections, make)
        self.connections.discard(self)
        self.transport.set_protocol(taken)
        # uvicorn closes the transport when the application returns.
        self.transport = cast(asyncio.Transport, _Nothing())


def _no_handshake(trouble: Exception) -> RequestError:
    cause = trouble.__cause__ or trouble
    words = str(cause)[:200]
    if isinstance(cause, SecurityError):
        return RequestError(431, "head_too_large", f"the head of the request has too much: {words}", "send less in it")
    return RequestError(400, "bad_request", f"this opens no WebSocket: {words}", "send a GET without a body")


class _Nothing:
    """Stands where a transport was that belongs to somebody else now."""

    def close(self) -> None:
        return None

    def is_closing(self) -> bool:
        return True


class TakenOver(asyncio.Protocol):
    """A connection between a node and its receiver."""

    __slots__ = ("_after", "_connections", "_controls", "_deaf", "_frames", "_gone", "_receiver", "_timer", "transport")

    def __init__(self, transport: asyncio.Transport, connections: set[Any], make: Callable[[Line], Receiver]):
        self.transport = transport
        # uvicorn's: those it tells when it ends.
        self._connections = connections
        self._connections.add(self)
        self._gone = False
        # What comes cannot be read any more.
        self._deaf = False
        # How much came after the goodbye.
        self._after = 0
        self._controls = Tally()
        self._timer: asyncio.TimerHandle | None = None
        self._receiver = make(self)
        self._frames = FramesIn(self._receiver.binary, self._receiver.text, self._control)

    def data_received(self, data: bytes) -> None:
        if self._gone:
            self._after += len(data)
            if self._after > MOST_AFTER_CLOSE:
                self.transport.abort()
                return
        if self._deaf:
            return
        try:
            self._frames.feed(data)
        except FrameError as error:
            self._deaf = True
            self.close(error.code, str(error))
        except Exception:  # noqa: BLE001 - whatever goes wrong with one node is its trouble alone
            self._deaf = True
            _log.exception("a node's connection ended by a fault of gpulse")
            self.close(INTERNAL_ERROR, "a fault of the hub; its log has the details")

    def send(self, text: str) -> None:
        self.transport.write(text_frame(text))

    def close(self, code: int, reason: str) -> None:
        if self._gone:
            return
        self.transport.write(close_frame(code, reason))
        # Closing altogether while something still comes would reset the connection, and the words be lost with it. TLS
        # cannot end one direction alone: there the peer's own goodbye says that it has read ours.
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._end(code, reason)

    def eof_received(self) -> None:
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        if not self._gone:
            self._gone = True
            self._receiver.gone(1006, str(exc) if exc else "")

    def shutdown(self) -> None:
        """uvicorn: the server ends."""
        self.close(RESTART, "the hub restarts")
        self.transport.close()

    def _control(self, opcode: int, payload: bytes) -> None:
        if self._gone:
            if opcode == CLOSE:
                self.transport.close()
            return
        if self._controls.add() > MOST_CONTROLS_A_SECOND and opcode != CLOSE:
            self.close(POLICY, f"more than {MOST_CONTROLS_A_SECOND} pings or pongs a second")
            return
        if opcode == PING:
            if self.transport.get_write_buffer_size() > MOST_UNSENT:
                self.transport.abort()
                return
            self.transport.write(pong_frame(payload))
        elif opcode == CLOSE:
            code = int.from_bytes(payload[:2], "big") if len(payload) >= 2 else NORMAL
            self.transport.write(close_frame(NORMAL, ""))
            self._end(code, payload[2:].decode(errors="replace"))
            self.transport.close()

    def _end(self, code: int, reason: str) -> None:
        self._gone = True
        self._frames.ignore_messages()
        self._receiver.gone(code, reason)
        # The peer closes when it has read why; one that does not is not waited for.
        self._timer = asyncio.get_running_loop().call_later(CLOSE_SECONDS, self.transport.abort)
