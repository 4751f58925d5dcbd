"""What a request brings with it: read in time, unpacked within limits, and refused in words."""

import asyncio
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gpulse.api.body_limits import beyond
from gpulse.auth.identity import Identity
from gpulse.errors import RequestError, SignInRefused
from gpulse.fleet.sight import Sight

MOST_BYTES = 1 << 20
DEADLINE_SECONDS = 30.0
# For how long, and how much of it, the rest of a refused body is heard out.
_REST_SECONDS = 1.0
_REST_BYTES = 16 << 20
_PLAIN = ("", "identity")
_GZIP = ("gzip", "x-gzip")

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Incoming:
    """What a handler may want to know of the request beside its query and path."""

    headers: Mapping[str, str]
    # The media type the answer is to have.
    media: str
    body: bytes = b""
    # What the endpoint's `admit` gave back.
    admitted: Any = None
    # Who asks; nobody where one answer serves all who see the same.
    who: Identity
    # What they see of others.
    sight: Sight
    # Where they are, as far as that is known, and whether nobody in between can read along.
    address: str = ""
    secure: bool = False
    # Why a proxy that vouched for them was not believed.
    refused: SignInRefused | None = None


async def read_body(request: Request, limit: int = MOST_BYTES, seconds: float = DEADLINE_SECONDS) -> bytes:
    """The whole body, unpacked; RequestError where it is too large, too slow, broken or packed in an unknown way."""
    coding = request.headers.get("content-encoding", "").strip().lower()
    if coding not in (*_PLAIN, *_GZIP, "deflate"):
        raise RequestError(
            415,
            "unknown_encoding",
            f'a body packed as "{coding[:100]}" cannot be read',
            "Content-Encoding may be gzip, deflate or identity",
        )
    told = request.headers.get("content-length", "")
    if told.isascii() and told.isdigit() and int(told[:20]) > limit:
        raise _too_large(limit)
    packed = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for piece in request.stream():
                packed += piece
                if len(packed) > limit:
                    raise _too_large(limit)
    except TimeoutError:
        raise RequestError(
            408, "too_slow", f"the body did not arrive within {seconds:g} s", "send it again, at once"
        ) from None
    except ClientDisconnect:
        # Nobody hears this answer; the log of a proxy in between may show it.
        raise RequestError(400, "cut_short", "the body ended before its time", "send it again") from None
    request.state.body_heard = True
    return bytes(packed) if coding in _PLAIN else _unpacked(packed, coding, limit)


def is_heard(request: Request) -> bool:
    """Whether nothing of the body is still to come."""
    return request.method in ("GET", "HEAD") or getattr(request.state, "body_heard", False)


def decode(body: bytes, kind: type[T]) -> T:
    """The body as its type; RequestError says where it is not so."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        limit = beyond(error) if isinstance(error, msgspec.MsgspecError) else None
        message, detail = limit or ("the body is not as it should be", f"{str(error)[:300]}; see api/docs")
        raise RequestError(400, "bad_body", message, detail) from None


class LastAnswer(Response):
    """An answer to a request whose body has not been read: the connection ends after it.

    The rest of the body is heard out for a moment: closing while it still comes would reset the connection, and the
    answer be lost with it.
    """

    @classmethod
    def of(cls, response: Response) -> "LastAnswer":
        last = cls(bytes(response.body), response.status_code)
        last.raw_headers = [*response.raw_headers, (b"connection", b"close")]
        return last

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        await _hear_out(receive)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _hear_out(receive: Receive) -> None:
    heard = 0
    try:
        async with asyncio.timeout(_REST_SECONDS):
            while heard < _REST_BYTES:
                message = await receive()
                heard += len(message.get("body", b""))
                if not message.get("more_body", False):
                    return
    except TimeoutError:
        # Whoever has not finished by now has had time to read the answer.
        return


def _unpacked(packed: bytearray, coding: str, limit: int) -> bytes:
    unpacker = zlib.decompressobj(wbits=_window(packed, coding))
    try:
        # It stops one byte after the limit, however much more there would be.
        content = unpacker.decompress(packed, limit + 1)
    except zlib.error as error:
        raise _broken(coding, str(error)) from None
    if len(content) > limit:
        raise _too_large(limit)
    if not unpacker.eof:
        raise _broken(coding, "it ends too early")
    if unpacker.unused_data:
        raise _broken(coding, f"{len(unpacker.unused_data)} bytes follow after its end")
    return content


def _window(packed: bytearray, coding: str) -> int:
    if coding in _GZIP:
        return 16 + zlib.MAX_WBITS
    # The standard means a stream in a zlib envelope; some send it bare.
    enveloped = len(packed) > 1 and packed[0] & 0x0F == 8 and int.from_bytes(packed[:2]) % 31 == 0
    return zlib.MAX_WBITS if enveloped else -zlib.MAX_WBITS


def _broken(coding: str, why: str) -> RequestError:
    return RequestError(400, "broken_encoding", f"the body cannot be unpacked as {coding}: {why}", "send one stream")


def _too_large(limit: int) -> RequestError:
    return RequestError(
        413, "too_large", f"the body is larger than {limit:,} bytes", "the limit also holds for what it unpacks to"
    )
