"""One stream of live frames, and those who watch it.

Who is too slow for a frame does not get it later: the next that fits is a full one, so that no listener ever waits in
memory.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

# A stream that takes long to make comes less often: it gets at most this share of the loop.
_LARGEST_SHARE = 0.2


class Source(Protocol):
    """Makes the frames of one stream.

    `step` takes the figures of the tick that was; `full` and `delta` then tell of that tick until the next step.
    `delta` is None where only a full frame will do.
    """

    async def step(self) -> None: ...
    def full(self) -> str | bytes: ...
    def delta(self) -> str | bytes | None: ...


class Listener:
    """Somebody who watches: at most one frame waits here."""

    def __init__(self, beside: Callable[[], str | None] = lambda: None) -> None:
        """`beside`: what to tell this one alone with a frame, where it is not what was told last."""
        self._beside = beside
        self._own: str | None = None
        self._own_sent: str | None = None
        self._frame: str | bytes | None = None
        self._ready = asyncio.Event()
        self._sending = False
        # Whether it has got every frame so far, so that a delta builds on what it has.
        self._follows = False

    def offer(self, source: Source) -> None:
        if self._sending or self._frame is not None:
            self._frame = None
            self._ready.clear()
            self._follows = False
            return
        delta = source.delta() if self._follows else None
        self._frame = source.full() if delta is None else delta
        self._own = self._beside()
        self._follows = True
        self._ready.set()

    async def feed(self, send: Callable[[str | bytes], Awaitable[None]]) -> None:
        """Send what is offered, until the listener goes."""
        while True:
            await self._ready.wait()
            self._ready.clear()
            frame, self._frame = self._frame, None
            if frame is not None:
                self._sending = True
                if self._own is not None and self._own != self._own_sent:
                    self._own_sent = self._own
                    await send(self._own)
                await send(frame)
                self._sending = False


class Stream:
    """A source with those who watch it."""

    def __init__(self, source: Source):
        self.source = source
        self.listeners: set[Listener] = set()
        self.generation = -1
        self.not_before = 0.0

    async def publish(self, generation: int) -> None:
        started = time.monotonic()
        await self.source.step()
        self.generation = generation
        for listener in tuple(self.listeners):
            listener.offer(self.source)
        ended = time.monotonic()
        self.not_before = ended + (ended - started) * (1 / _LARGEST_SHARE - 1)
