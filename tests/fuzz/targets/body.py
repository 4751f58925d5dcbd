"""Bodies of requests, packed in whatever way."""

import asyncio
import gzip
import zlib
from typing import Any

from starlette.requests import Request

from gpulse.api.bodies import read_body
from gpulse.errors import RequestError

LIMIT = 2000
CODINGS = (b"", b"gzip", b"deflate", b"x-gzip", b"br")
SEEDS = [
    b"\x00{}",
    b"\x01" + gzip.compress(b"{}" * 100, mtime=0),
    b"\x01" + gzip.compress(bytes(100_000), mtime=0),
    b"\x02" + zlib.compress(b"abc" * 50),
    b"\x02" + zlib.compress(b"abc" * 50, wbits=-15),
    b"\x04x",
]
WORDS = ["\\x1f\\x8b\\x08"]
_loop = asyncio.new_event_loop()


def fuzz(data: bytes) -> None:
    coding = CODINGS[data[0] % len(CODINGS)] if data else b""
    scope = {"type": "http", "method": "POST", "headers": [(b"content-encoding", coding)]}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": data[1:], "more_body": False}

    try:
        body = _loop.run_until_complete(read_body(Request(scope, receive), LIMIT))
    except RequestError as refused:
        assert refused.message
        assert refused.status in (400, 413, 415)
        return
    assert len(body) <= LIMIT
