"""The web server's HTTP, with bounds for the head of a request: nobody has shown a token before its end."""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from gpulse import descriptors
from gpulse.api.errors import error_response
from gpulse.errors import RequestError

MOST_HEAD_BYTES = 1 << 16
HEAD_SECONDS = 30.0
# Of a body that nobody has asked for: so much may still come after the answer, then the connection ends.
MOST_UNASKED_BYTES = 1 << 20
# Requests that came before the one in front of them was answered. Browsers send none.
MOST_PIPELINED = 100


class HttpProtocol(HttpToolsProtocol):
    """uvicorn's own, which would wait for the end of a head for ever, keep all of it, and hear any body out."""

    _in_head = False
    _head_bytes = 0
    _head_timer: asyncio.TimerHandle | None = None
    _unasked_bytes = 0
    # Those whose answers are not complete.
    _cycles: tuple[RequestResponseCycle, ...] = ()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's own
        super().connection_made(transport)
        if descriptors.is_last(transport.get_extra_info("socket").fileno()):
            words = "the hub has as many connections as it may open"
            self._refuse(RequestError(503, "too_many_connections", words, "try again in some seconds", 5))
            return
        self._begin_head()

    def data_received(self, data: bytes) -> None:
        was_in_head = self._in_head
        super().data_received(data)
        # The piece in which a head begins does not count: most of it may belong to the request before.
        if was_in_head and self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > MOST_HEAD_BYTES:
                words = f"the head of the request is larger than {MOST_HEAD_BYTES >> 10} KiB"
                self._refuse(RequestError(431, "head_too_large", words, "send less in the address and the headers"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_head()
        # uvicorn tells the last request alone; the others would answer into the void, each with a traceback.
        for cycle in self._cycles:
            cycle.disconnected = True
        self._cycles = ()
        self.pipeline.clear()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if not self._in_head:
            self._begin_head()

    def on_headers_complete(self) -> None:
        self._end_head()
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is not before:
            self._cycles = (*(cycle for cycle in self._cycles if not cycle.response_complete), self.cycle)
        if len(self.pipeline) > MOST_PIPELINED:
            self.transport.abort()

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        # Of a request that is to become a WebSocket there is none.
        if self.cycle is not None and self.cycle.response_complete:
            self._unasked_bytes += len(body)
            if self._unasked_bytes > MOST_UNASKED_BYTES:
                self.transport.close()

    def _begin_head(self) -> None:
        self._in_head = True
        self._head_bytes = 0
        self._unasked_bytes = 0
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self._too_slow)

    def _end_head(self) -> None:
        self._in_head = False
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _too_slow(self) -> None:
        words = f"no whole request came within {HEAD_SECONDS:g} s"
        self._refuse(RequestError(408, "too_slow", words, "send it again, at once"))

    def _refuse(self, error: RequestError) -> None:
        self._end_head()
        if self.transport.is_closing():
            return
        self.transport.write(last_words(error))
        self.transport.close()


def last_words(error: RequestError) -> bytes:
    """An answer as it goes over the wire, where no application answers."""
    answer = error_response(error)
    headers = [*answer.raw_headers, (b"connection", b"close")]
    lines = [b"HTTP/1.1 %d Refused" % error.status, *(name + b": " + value for name, value in headers)]
    return b"\r\n".join(lines) + b"\r\n\r\n" + bytes(answer.body)
