"""What secures the hub's connections: each new one by the newest certificate; plain http gets an answer in words."""

import ssl
from typing import Any

# How OpenSSL calls what begins like "GET /".
_PLAIN_HTTP = "HTTP_REQUEST"


class RenewableContext(ssl.SSLContext):
    """A context whose certificate may be replaced at any time: connections that are open do not notice.

    A new context takes the place of the old one as a whole, for one that is loaded with other files may be left with
    half of them. `refusal` is sent, as it is, to who speaks http.
    """

    _current: ssl.SSLContext
    _refusal: bytes

    def __new__(cls, _current: ssl.SSLContext, _refusal: bytes) -> "RenewableContext":
        return super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)

    def __init__(self, current: ssl.SSLContext, refusal: bytes) -> None:
        self._refusal = refusal
        self.renew(current)

    def renew(self, current: ssl.SSLContext) -> None:
        current.sslobject_class = _Handshake
        self._current = current

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *rest: Any, **options: Any) -> ssl.SSLObject:
        """What event loops call for each connection."""
        made = self._current.wrap_bio(incoming, outgoing, *rest, **options)
        if isinstance(made, _Handshake):
            made.answer_http(outgoing, self._refusal)
        return made


class _Handshake(ssl.SSLObject):
    """One connection's TLS."""

    _plain: ssl.MemoryBIO | None = None
    _refusal = b""
    _failure: ssl.SSLError | None = None

    def answer_http(self, plain: ssl.MemoryBIO, refusal: bytes) -> None:
        """`plain` is where what is written goes out as it is."""
        self._plain, self._refusal = plain, refusal

    def do_handshake(self) -> None:
        if self._failure is not None:
            raise self._failure
        try:
            super().do_handshake()
        except ssl.SSLError as error:
            if self._plain is None or error.reason != _PLAIN_HTTP:
                raise
            self._plain.write(self._refusal)
            self._failure = error
            # A loop sends what is there when more is wanted; whatever comes next ends the connection.
            raise ssl.SSLWantReadError from error
