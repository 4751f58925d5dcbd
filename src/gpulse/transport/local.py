"""This machine as a node: its probe as a process of our own."""

import asyncio
import sys
from typing import cast

import msgspec

from gpulse.errors import NodeLost
from gpulse.transport.feed import Feed
from gpulse.transport.limits import Messages
from gpulse.transport.stream import PROBE_OPTIONS, Lines

FIRST_LINE_SECONDS = 30.0
END_SECONDS = 2.0
PIECE_BYTES = 1 << 16


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
        # Without the folder that the hub was started in, where anything may lie.
        "-P",
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
    reading = [asyncio.create_task(_lines(output, feed)), asyncio.create_task(_log(log, feed, messages))]
    try:
        # Whichever of the two floods ends both.
        await asyncio.gather(*reading)
        code = await process.wait()
        raise NodeLost(
            f"its probe ended with code {code}" + (f": {messages[-1]}" if messages else ""),
            "run: gpulse probe --pretty",
            "probe",
        )
    except NodeLost:
        # One that floods gets no time to end by itself.
        if process.returncode is None:
            process.kill()
        raise
    finally:
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)
        await _end(process)


async def _lines(stdout: asyncio.StreamReader, feed: Feed) -> None:
    lines = Lines(feed.line)
    while data := await stdout.read(PIECE_BYTES):
        lines.feed(data)


async def _log(stderr: asyncio.StreamReader, feed: Feed, messages: list[str]) -> None:
    def take(line: bytes) -> None:
        if text := line.decode("utf-8", "replace").strip():
            messages[:] = [text]
            feed.log(text)

    lines = Lines(take)
    allowed = Messages()
    while data := await stderr.read(PIECE_BYTES):
        allowed.spend(data)
        lines.feed(data)


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    cast(asyncio.StreamWriter, process.stdin).close()
    # asyncio sees the end of a process only once its pipes are read to their end.
    pipes = (cast(asyncio.StreamReader, process.stdout), cast(asyncio.StreamReader, process.stderr))
    draining = [asyncio.create_task(_drain(pipe)) for pipe in pipes]
    try:
        await asyncio.wait_for(process.wait(), END_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
    finally:
        for task in draining:
            task.cancel()


async def _drain(pipe: asyncio.StreamReader) -> None:
    while await pipe.read(PIECE_BYTES):
        # A pipe that always has something would let nobody else run.
        await asyncio.sleep(0)
