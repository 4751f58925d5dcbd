"""Asks an application without a client, and measures for how long each step of the loop keeps it, in CPU time."""

import asyncio
import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from starlette.types import ASGIApp


class Asked(NamedTuple):
    """A request."""

    path: str
    query: str = ""
    method: str = "GET"
    body: bytes = b""
    headers: tuple[tuple[bytes, bytes], ...] = ()

    def __str__(self) -> str:
        return f"{self.method} {self.path}?{self.query[:300]} {self.body[:200]!r}"


class Told(NamedTuple):
    """The status of the answer, how long it is, and the most CPU seconds for which a step kept the loop."""

    status: int
    size: int
    longest: float


@contextmanager
def _longest_step() -> Iterator[list[float]]:
    """CPU seconds of this thread in the longest callback of the loop: between two of them others have their turn."""
    longest = [0.0]
    run = asyncio.Handle._run

    def measured(handle: asyncio.Handle) -> None:
        began = time.thread_time()
        run(handle)
        longest[0] = max(longest[0], time.thread_time() - began)

    asyncio.Handle._run = measured  # type: ignore[method-assign]
    # When garbage is collected depends on all tests before; the hub freezes what it started with.
    gc.disable()
    try:
        yield longest
    finally:
        gc.enable()
        asyncio.Handle._run = run  # type: ignore[method-assign]


def ask(app: ASGIApp, asked: Asked) -> Told:
    status, size = 0, 0

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": asked.body, "more_body": False}

    async def send(message: Any) -> None:
        nonlocal status, size
        status = message.get("status", status)
        size += len(message.get("body", b""))

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": asked.method,
        "scheme": "http",
        "path": asked.path,
        "raw_path": asked.path.encode(),
        "query_string": asked.query.encode(),
        "root_path": "",
        "headers": [(b"host", b"hub"), (b"accept-encoding", b"gzip"), *asked.headers],
        "client": ("127.0.0.1", 1),
        "server": ("hub", 80),
    }
    with _longest_step() as longest:
        asyncio.run(app(scope, receive, send))
    return Told(status, size, longest[0])
