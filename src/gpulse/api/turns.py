"""Long work on the loop in short turns."""

import asyncio
import time

# How long one piece of work keeps the loop; lines of nodes wait for no longer than that.
TURN_SECONDS = 0.01


class Turn:
    """`await turn.give()` between steps lets others have the loop when it is time."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._began_cpu = time.thread_time()
        # CPU seconds of the turns that are over.
        self.spent = 0.0

    async def give(self) -> None:
        if time.perf_counter() - self._began > TURN_SECONDS:
            self.spent += time.thread_time() - self._began_cpu
            await asyncio.sleep(0)
            self._began = time.perf_counter()
            self._began_cpu = time.thread_time()
