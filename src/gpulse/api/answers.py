"""Answers over HTTP: made and compressed once a tick for all who ask the same, and not sent when nothing is new."""

import asyncio
import hashlib
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from gpulse.api.hub import Hub

SMALLEST_TO_COMPRESS = 1024
# Compressing this much takes some milliseconds; then others get their turn.
_PIECE = 128 * 1024
_MOST_KEPT = 64
_GZIP = 16 + zlib.MAX_WBITS
# A browser may keep what it got, but asks each time whether it still holds.
CACHE_CONTROL = "private, no-cache"


class Body:
    """What is sent, plain and, once somebody wanted it so, compressed."""

    def __init__(self, plain: bytes, media: str):
        self.plain = plain
        self.media = media
        self._gzip: bytes | None = None

    async def gzip(self) -> bytes:
        if self._gzip is None:
            squeezer = zlib.compressobj(1, wbits=_GZIP)
            pieces = []
            for start in range(0, len(self.plain), _PIECE):
                pieces.append(squeezer.compress(self.plain[start : start + _PIECE]))
                await asyncio.sleep(0)
            self._gzip = b"".join([*pieces, squeezer.flush()])
        return self._gzip


class Packed:
    """What can be too large to be in memory unpacked: who cannot unpack it gets it piece by piece."""

    def __init__(self, gzip: bytes, media: str):
        self.gzip = gzip
        self.media = media

    async def plain(self) -> AsyncIterator[bytes]:
        unpacker = zlib.decompressobj(wbits=_GZIP)
        rest = self.gzip
        while rest:
            yield unpacker.decompress(rest, _PIECE)
            rest = unpacker.unconsumed_tail
            await asyncio.sleep(0)

    def response(self, request: Request, headers: dict[str, str]) -> Response:
        packed = _takes_gzip(request)
        if packed:
            headers["Content-Encoding"] = "gzip"
            headers["Content-Length"] = str(len(self.gzip))
        if request.method == "HEAD":
            return Response(headers=headers, media_type=self.media)
        if packed:
            return Response(self.gzip, headers=headers, media_type=self.media)
        return StreamingResponse(self.plain(), headers=headers, media_type=self.media)


class Answers:
    """The answers of this tick."""

    def __init__(self, hub: Hub):
        self._hub = hub
        self._state = (-1, -1)
        self._kept: dict[str, Body | Packed] = {}
        self._making: dict[str, asyncio.Future[Body | Packed]] = {}

    def etag(self, key: str) -> str:
        digest = hashlib.blake2s(key.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
        return f'W/"{self._hub.instance}-{"-".join(map(str, self._now()))}-{digest}"'

    def unchanged(self, request: Request, etag: str) -> bool:
        told = [one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")]
        return "*" in told or etag.removeprefix("W/") in told

    def not_modified(self, etag: str) -> Response:
        return Response(status_code=304, headers=_headers(etag))

    def kept(self, key: str) -> Body | Packed | None:
        if self._state != self._now():
            self._state = self._now()
            self._kept.clear()
        return self._kept.get(key)

    def _now(self) -> tuple[int, int]:
        """What an answer holds for: a tick, in which nobody has reserved anything else."""
        return self._hub.fleet.generation, self._hub.fleet.reservations

    async def once(self, key: str, make: Callable[[], Awaitable[Body | Packed]]) -> Body | Packed:
        """Made now; or waited for, where it is in the making for somebody else."""
        making = self._making.get(key)
        if making is None:
            making = self._making[key] = asyncio.ensure_future(make())
            making.add_done_callback(lambda _: self._making.pop(key, None))
        # Who goes away does not take it from the others.
        return await asyncio.shield(making)

    def keep(self, key: str, body: Body | Packed, etag: str | None) -> None:
        """For the rest of the tick; what took longer than its tick is not kept."""
        if etag == self.etag(key) and self._state == self._now():
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[key] = body

    async def response(self, request: Request, body: Body | Packed, etag: str | None) -> Response:
        headers = _headers(etag)
        if isinstance(body, Packed):
            return body.response(request, headers)
        content = body.plain
        if len(content) >= SMALLEST_TO_COMPRESS and _takes_gzip(request):
            content = await body.gzip()
            headers["Content-Encoding"] = "gzip"
        if request.method == "HEAD":
            headers["Content-Length"] = str(len(content))
            content = b""
        return Response(content, headers=headers, media_type=body.media)


def _headers(etag: str | None) -> dict[str, str]:
    headers = {"Cache-Control": CACHE_CONTROL, "Vary": "Accept-Encoding"}
    if etag is not None:
        headers["ETag"] = etag
    return headers


def _takes_gzip(request: Request) -> bool:
    for part in request.headers.get("accept-encoding", "").lower().split(","):
        coding, _, weight = part.partition(";")
        if coding.strip() in ("gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
