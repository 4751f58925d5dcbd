"""A TCP proxy in front of a server that can be told to cut, to swallow everything, or to read slowly."""

import asyncio
import contextlib


class Proxy:
    """Forwards until `open` is cleared: then both sides stay connected and nothing passes."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.open = asyncio.Event()
        self.open.set()
        self.bytes_per_second: float | None = None

    async def __aenter__(self) -> "Proxy":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._server.close()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """Reset every connection."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers = []

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers += [writer, far_writer]
        for source, drain in ((reader, far_writer), (far_reader, writer)):
            task = asyncio.create_task(self._forward(source, drain))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _forward(self, source: asyncio.StreamReader, drain: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(4096):
                await self.open.wait()
                if self.bytes_per_second:
                    await asyncio.sleep(len(data) / self.bytes_per_second)
                drain.write(data)
                await drain.drain()
            drain.close()
