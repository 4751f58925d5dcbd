"""Nodes over SSH: one connection and one long-lived probe each, booted from memory; nothing is installed there."""

import asyncio

import asyncssh
import msgspec

import gpulse_probe
from gpulse.errors import NodeLost
from gpulse.transport import explain, without_python
from gpulse.transport.bundle import make_bundle
from gpulse.transport.dial import Dialer
from gpulse.transport.feed import Feed
from gpulse.transport.remote import Ended, Remote
from gpulse.transport.ssh_options import Route, SshSettings, route
from gpulse.transport.stream import PROBE_OPTIONS, Lines
from gpulse_probe.boot import EXIT_TOO_OLD

__all__ = ["Ssh", "SshSettings", "SshTarget"]

SETTINGS_SECONDS = 20.0
# Login scripts may wait for a file server.
START_SECONDS = 60.0
FIRST_LINE_SECONDS = 30.0
# A connection that says something every few seconds needs no other sign of life.
QUIET_INTERVAL_SECONDS = 5.0


class SshTarget(msgspec.Struct, frozen=True):
    """A node that is reached by SSH. What is not given here is looked up in ssh_config."""

    name: str
    host: str
    user: str | None = None
    port: int | None = None
    interval_seconds: float = 1.0
    python: str = "python3"
    identity_files: tuple[str, ...] = ()


class Ssh:
    """The way to all nodes over SSH; they share jump hosts, known host keys and turns to log in."""

    def __init__(self, settings: SshSettings | None = None) -> None:
        self.dialer = Dialer(settings or SshSettings())

    async def close(self) -> None:
        await self.dialer.close()

    async def route(self, target: SshTarget) -> Route:
        way = await route(self.dialer.settings, target.host, target.user, target.port, target.identity_files)
        if target.interval_seconds > QUIET_INTERVAL_SECONDS:
            way.arguments.update(keepalive_interval=self.dialer.settings.keepalive_seconds, keepalive_count_max=2)
        return way

    async def stream(self, target: SshTarget, feed: Feed) -> None:
        """Feed the node's lines until its connection ends: by python3, else by nvidia-smi."""
        feed.connecting("reading ssh's settings")
        feed.within(SETTINGS_SECONDS, explain.bad_settings("a command of a Match line does not end"))
        way = await self.route(target)
        bundle = await asyncio.get_running_loop().run_in_executor(None, make_bundle)
        async with self.dialer.connection(way, feed) as connection:
            feed.log(f"logged in to {way.place.user}@{way.place.host} port {way.place.port}")
            options = ("--interval", f"{target.interval_seconds:g}", "--node", target.name)
            command = bundle.command(*PROBE_OPTIONS, *options, python=target.python)
            ended, lines = await _run_probe(connection, command, bundle.data, feed)
            told = f"{lines.preamble()}\n{ended.told}"
            why = explain.ended(ended.status, ended.signal, told, target.python, way.place)
            if ended.problem is not None:
                raise explain.hung_up(way.place, explain.Attempt(), str(ended.problem), logged_in=True)
            if feed.first_line_at is None and why.check == explain.PYTHON and _other_way(ended, told, target):
                await without_python.stream(connection, target.name, feed, why, way.place)
            raise why


def _other_way(ended: Ended, told: str, target: SshTarget) -> bool:
    return ended.status == EXIT_TOO_OLD or explain.python_missing(ended.status, told, target.python)


async def _run_probe(
    connection: asyncssh.SSHClientConnection, command: str, data: bytes, feed: Feed
) -> tuple[Ended, Lines]:
    feed.connecting("starting the probe")
    feed.within(
        START_SECONDS,
        NodeLost(
            f"logged in, but no probe started within {START_SECONDS:g} s",
            "see that login scripts end, and that the account has a shell that runs commands",
            explain.PYTHON,
        ),
    )

    def started(preamble: str) -> None:
        if preamble:
            feed.log(f"its login says: {preamble}")
        feed.log(f"probe {gpulse_probe.__version__} started")
        feed.within(FIRST_LINE_SECONDS, NodeLost("its probe started but sent nothing", "see its log", explain.PROBE))

    lines = Lines(feed.line, started)
    remote = Remote(lines.feed, feed.log)
    return await remote.run(connection, command, data), lines
