"""Connections to jump hosts, shared by the nodes behind them and closed when the last of these has gone."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import AbstractAsyncContextManager

import asyncssh

from gpulse.errors import NodeLost

Opening = Callable[[], AbstractAsyncContextManager[asyncssh.SSHClientConnection]]


class _Shared:
    def __init__(self, opening: Opening) -> None:
        self.users = 0
        self.opened: asyncio.Future[asyncssh.SSHClientConnection] = asyncio.get_running_loop().create_future()
        self.unused = asyncio.Event()
        self.task = asyncio.create_task(self._hold(opening))

    async def _hold(self, opening: Opening) -> None:
        """A task of its own holds the connection, for it belongs to none of the nodes."""
        try:
            async with opening() as connection:
                self.opened.set_result(connection)
                await self.unused.wait()
        except (NodeLost, asyncio.CancelledError) as problem:
            if not self.opened.done():
                self.opened.set_exception(problem if isinstance(problem, NodeLost) else NodeLost("it was given up"))
                # Those who wait for it are told; nobody may be left.
                self.opened.exception()


class Jumps:
    def __init__(self) -> None:
        self._open: dict[Hashable, _Shared] = {}

    @contextlib.asynccontextmanager
    async def shared(self, key: Hashable, opening: Opening) -> AsyncIterator[asyncssh.SSHClientConnection]:
        """The connection with this key: the one that is open, or a new one. Raises NodeLost where it fails."""
        jump = self._open.get(key)
        if jump is None or not _usable(jump):
            jump = self._open[key] = _Shared(opening)
        jump.users += 1
        try:
            # Shielded: one node that gives up must not take the connection from the others.
            yield await asyncio.shield(jump.opened)
        finally:
            jump.users -= 1
            if not jump.users:
                if self._open.get(key) is jump:
                    del self._open[key]
                jump.unused.set()
                if not jump.opened.done():
                    jump.task.cancel()


def _usable(jump: _Shared) -> bool:
    if not jump.opened.done():
        return True
    return jump.opened.exception() is None and not jump.opened.result().is_closed()
