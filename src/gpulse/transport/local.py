"""This machine as a node: its probe as a process of our own."""

import asyncio
import sys
from typing import cast

import msgspec

from gpulse.errors import NodeLost
from gpulse.transport.feed import Feed
from gpulse.transport.stream import PROBE_OPTIONS, Lines

FIRST_LINE_SECONDS = 30.0
END_SECONDS = 2.0


class LocalTarget(msgspec.Struct, frozen=True):
    """This machine, by the name it has in the fleet."""

    name: str
    interval_seconds: float = 1.0


async def stream(target: LocalTarget, feed: Feed) -> None:
    """Feed this machine's lines until its probe ends."""
    feed.connecting("starting the probe")
    feed.within(FIRST_LINE_SECONDS, NodeLost("its probe said nothing", "run: gpulse probe --pretty", "probe"))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "gpulse_probe",
        *PROBE_OPTIONS,
        "--interval",
        f"{target.interval_seconds:g}",
        "--node",
        target.name,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        # A Ctrl-C is for the hub, which ends its probe itself.
        start_new_session=True,
    )
    output, log = cast(asyncio.StreamReader, process.stdout), cast(asyncio.StreamReader, process.stderr)
    messages: list[str] = []
    errors = asyncio.create_task(_log(log, feed, messages))
    try:
        lines = Lines(feed.line)
        while data := await output.read(1 << 18):
            lines.feed(data)
        code = await process.wait()
        await errors
        raise NodeLost(
            f"its probe ended with code {code}" + (f": {messages[-1]}" if messages else ""),
            "run: gpulse probe --pretty",
            "probe",
        )
    finally:
        errors.cancel()
        await _end(process)


async def _log(stderr: asyncio.StreamReader, feed: Feed, messages: list[str]) -> None:
    def take(line: bytes) -> None:
        if text := line.decode("utf-8", "replace").strip():
            messages[:] = [text]
            feed.log(text)

    lines = Lines(take)
    while data := await stderr.read(1 << 14):
        lines.feed(data)


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    cast(asyncio.StreamWriter, process.stdin).close()
    try:
        await asyncio.wait_for(process.wait(), END_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
