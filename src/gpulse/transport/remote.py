"""One remote command on an SSH connection: what it prints goes on at once, its end is told once."""

import asyncio
import contextlib
from collections.abc import Callable

import asyncssh
import msgspec

from gpulse.errors import NodeLost
from gpulse.transport.limits import Messages
from gpulse.transport.stream import Lines

KEPT_MESSAGES = 8 << 10


class Ended(msgspec.Struct, frozen=True):
    """How a remote command ended: its code or signal, or the connection's trouble; and what it said on stderr."""

    status: int | None = None
    signal: str | None = None
    problem: Exception | None = None
    told: str = ""


class Remote(asyncssh.SSHClientSession[bytes]):
    """Gives stdout to `output` as it comes and every line of stderr to `log`.

    A NodeLost that `output` raises ends the command and is raised by run(); so is that of a command that floods stderr.
    """

    def __init__(self, output: Callable[[bytes], None], log: Callable[[str], None]) -> None:
        self._output = output
        self._log = log
        self._errors = Lines(self._error_line)
        self._messages = Messages()
        self._told: list[str] = []
        self._told_size = 0
        self._status: int | None = None
        self._signal: str | None = None
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None
        self._done: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()

    async def run(self, connection: asyncssh.SSHClientConnection, command: str, data: bytes = b"") -> Ended:
        """Run it with `data` on its stdin, which stays open. Ends with the command; cancelled, it ends the command."""
        try:
            channel, _session = await connection.create_session(lambda: self, command, encoding=None, request_pty=False)
        except asyncssh.ChannelOpenError as problem:
            raise NodeLost(
                f"it refuses to run a command ({problem.reason})", "see ForceCommand and MaxSessions of sshd", "login"
            ) from problem
        except (asyncssh.Error, OSError) as problem:
            return Ended(problem=problem)
        try:
            if data:
                # A command may end before it has read anything; why it did is told by its end.
                with contextlib.suppress(BrokenPipeError):
                    channel.write(data)
            return await self._done
        finally:
            channel.abort()

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        self._channel = chan

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        if self._done.done():
            return
        try:
            if datatype:
                self._messages.spend(data)
                self._errors.feed(data)
            else:
                self._output(data)
        except NodeLost as problem:
            self._done.set_exception(problem)
            if self._channel is not None:
                # Nothing more is read: the other side has to stop when its window is full.
                self._channel.pause_reading()

    def exit_status_received(self, status: int) -> None:
        self._status = status

    def exit_signal_received(self, signal: str, _core_dumped: bool, _msg: str, _lang: str) -> None:
        self._signal = signal

    def connection_lost(self, exc: Exception | None) -> None:
        self._errors.feed(b"\n")
        if not self._done.done():
            if exc is None and self._status is None and self._signal is None:
                exc = ConnectionError("the channel was closed without a word")
            self._done.set_result(Ended(self._status, self._signal, exc, "\n".join(self._told)))

    def _error_line(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").strip()
        if not text:
            return
        self._log(text)
        if self._told_size < KEPT_MESSAGES:
            self._told_size += len(text)
            self._told.append(text[:KEPT_MESSAGES])
