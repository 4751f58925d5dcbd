"""The nodes of a gpulse.toml as a hub follows them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from gpulse.config import load
from gpulse.discovery import Target, sources, watch
from tests.patience import PATIENCE_SECONDS

EVERY = 0.01


class Following:
    def __init__(self) -> None:
        self.targets: list[Target] = []
        self.said: list[str] = []
        self.lists = 0

    def names(self) -> list[str]:
        return [target.name for target in self.targets]

    async def until(self, true: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
        try:
            async with asyncio.timeout(seconds):
                while not true():
                    await asyncio.sleep(EVERY)
        except TimeoutError:
            raise AssertionError(f"not in time: {self.names()}, {self.said}") from None

    async def nodes(self, *names: str) -> None:
        await self.until(lambda: self.lists > 0 and self.names() == list(names))

    async def told(self, words: str, times: int = 1) -> None:
        await self.until(lambda: sum(words in said for said in self.said) >= times)

    async def _follow(self, path: Path) -> None:
        async for targets in watch(sources([], path, load(path)), self.said.append, every=EVERY):
            self.targets = targets
            self.lists += 1


@asynccontextmanager
async def following(path: Path) -> AsyncIterator[Following]:
    seen = Following()
    task = asyncio.create_task(seen._follow(path))
    try:
        yield seen
        assert not task.done()
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
