"""Doctor's checks of a running hub's nodes: on demand, a few at a time, and kept for a moment."""

import asyncio
import time
from collections.abc import Callable

from gpulse.transport.checks import Examination, examine
from gpulse.transport.ssh import Ssh, SshTarget

AT_ONCE = 4
# Each costs a login on the node; many may look at one that is down.
KEPT_SECONDS = 30.0
MOST_KEPT = 1000


class Examining:
    """Asks a node's checks once, however many want them."""

    def __init__(self, ssh: Ssh, target: Callable[[str], SshTarget | None]):
        """`target` tells how a node is reached over SSH, None where it is read another way."""
        self._ssh = ssh
        self._target = target
        self._places = asyncio.Semaphore(AT_ONCE)
        self._begun: dict[str, tuple[float, SshTarget, asyncio.Task[Examination]]] = {}

    async def examine(self, name: str) -> Examination | None:
        """What doctor finds of a node; None where it has nothing to check: the node is not read over SSH."""
        target = self._target(name)
        if target is None:
            return None
        began, asked, task = self._begun.get(name, (float("-inf"), None, None))
        over = task is not None and task.done() and time.monotonic() - began > KEPT_SECONDS
        if task is None or over or asked != target:
            task = asyncio.create_task(self._examined(target))
            self._begun.pop(name, None)
            self._begun[name] = (time.monotonic(), target, task)
            self._forget()
        # Who goes away does not take it from the others.
        return await asyncio.shield(task)

    async def close(self) -> None:
        tasks = [task for _, _, task in self._begun.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _examined(self, target: SshTarget) -> Examination:
        async with self._places:
            return (await examine(self._ssh, target)).examination

    def _forget(self) -> None:
        """The oldest, of those that are at their end."""
        for name, (_, _, task) in list(self._begun.items()):
            if len(self._begun) <= MOST_KEPT:
                return
            if task.done():
                del self._begun[name]
