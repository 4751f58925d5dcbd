"""A clock that other programs cannot hold up, for tests of how long something waits or keeps others waiting."""

import asyncio
import gc
import selectors
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Skipping(selectors.DefaultSelector):
    """Does not wait for what is due later: the clock is set forward to it."""

    def __init__(self) -> None:
        super().__init__()
        self.skipped = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0 if timeout is not None else None)
        if not ready and timeout is not None:
            self.skipped += timeout
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._skipping = _Skipping()
        super().__init__(self._skipping)

    def time(self) -> float:
        return time.thread_time() + self._skipping.skipped


def run(main: Coroutine[Any, Any, T]) -> T:
    """As asyncio.run, but the loop's clock has only what this thread computed and what it meant to wait.

    Only for what waits for nothing outside of the loop: neither threads nor processes nor sockets are waited for.
    """
    # To look through what other tests have left may take half a second, and this thread would be the one that does.
    gc.freeze()
    try:
        with asyncio.Runner(loop_factory=_Loop) as runner:
            return runner.run(main)
    finally:
        gc.unfreeze()
