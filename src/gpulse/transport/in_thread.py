"""Work that blocks and may hang for ever, such as on a file server that is gone: in a thread that holds nobody up."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

Result = TypeVar("Result")


async def in_thread(work: Callable[[], Result], patience_seconds: float, late: Callable[[], None]) -> Result:
    """What work() gives or raises; late() is called once when it takes longer than that.

    The thread is a daemon, unlike those of asyncio: one that hangs must not keep the hub from ending.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Result] = loop.create_future()

    def settle(result: Result | None, failure: BaseException | None) -> None:
        if done.cancelled():
            return
        if failure is not None:
            done.set_exception(failure)
        else:
            done.set_result(result)  # type: ignore[arg-type]  # None only where work() gave it

    def run() -> None:
        result, failure = None, None
        try:
            result = work()
        except Exception as problem:  # noqa: BLE001 - whoever waits for it is told
            failure = problem
        # The hub may have ended meanwhile, and its loop with it.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=run, name="may hang", daemon=True).start()
    try:
        finished, _ = await asyncio.wait({done}, timeout=patience_seconds)
        if not finished:
            late()
        return await done
    finally:
        done.cancel()
