"""A sink that remembers what it was given, and ways to wait for it."""

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import msgspec

from gpulse.errors import BadLine
from tests.patience import PATIENCE_SECONDS


class Recorder:
    """Takes what a Fleet takes; a line that is no JSON object is a bad one. `times` are by the clock it is given."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.lines: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.times: dict[str, list[float]] = defaultdict(list)
        self.downs: dict[str, list[str]] = defaultdict(list)
        self.logs: dict[str, list[str]] = defaultdict(list)
        self.steps: dict[str, list[str]] = defaultdict(list)

    def connecting(self, name: str, detail: str) -> None:
        self.steps[name].append(detail)

    def line(self, name: str, data: bytes) -> None:
        try:
            line = msgspec.json.decode(data)
        except msgspec.DecodeError as problem:
            raise BadLine(f"no JSON: {data[:20]!r}") from problem
        if not isinstance(line, dict):
            raise BadLine("no object")
        self.lines[name].append(line)
        self.times[name].append(self._clock())

    def down(self, name: str, reason: str) -> None:
        self.downs[name].append(reason)

    def log(self, name: str, message: str) -> None:
        self.logs[name].append(message)

    async def until(self, condition: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> float:
        """Wait for it; how long that took."""
        began = self._clock()
        while not condition():
            if self._clock() - began > seconds:
                seen = {
                    word: {name: told[-5:] for name, told in of.items()}
                    for word, of in (("down", self.downs), ("log", self.logs), ("steps", self.steps))
                }
                raise AssertionError(f"not within {seconds} s; the last of each: {json.dumps(seen)[:6000]}")
            await asyncio.sleep(0.02)
        return self._clock() - began

    async def up(self, *names: str, seconds: float = PATIENCE_SECONDS) -> None:
        """Wait for another line of each."""
        before = {name: len(self.lines[name]) for name in names}
        await self.until(lambda: all(len(self.lines[name]) > before[name] for name in names), seconds)
