"""The agent's service on one node: asked over SSH, by the agent's own zip, which runs there from memory."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, Literal

import asyncssh
import msgspec

from gpulse.auth.secret_text import without_secrets
from gpulse.errors import NodeLost
from gpulse.transport import explain
from gpulse.transport.bundle import Bundle
from gpulse.transport.progress import Steps
from gpulse.transport.remote import Remote
from gpulse.transport.ssh import SETTINGS_SECONDS, START_SECONDS, Ssh, SshTarget
from gpulse.transport.ssh_options import Route
from gpulse.transport.stream import FirstLine, Lines

Word = Literal["install", "status", "restart", "stop", "remove"]
# A node may have to wait for an old agent to end, for the new one to start, and for systemd in between.
ANSWER_SECONDS = 120.0
# Of all it prints, with what login scripts say before.
MOST_BYTES = 2 << 20
# A node may say anything; a moment that no calendar has, or a number that no process has, is no answer.
Moment = Annotated[float, msgspec.Meta(ge=0, le=1e11)]
Pid = Annotated[int, msgspec.Meta(ge=0, le=1 << 32)]


class Answer(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What a node tells of its agent, or what kept it from telling; and whether it starts with the machine."""

    # The hub's own name for it.
    node: str = ""
    outcome: Literal[
        "installed", "updated", "started", "unchanged", "running", "stopped", "removed", "absent", "failed"
    ]
    error: str = ""
    fix: str = ""
    notes: list[str] = []
    # "systemd" or "detached".
    by: str | None = None
    version: str | None = None
    command: list[str] | None = None
    pid: Pid | None = None
    since: Moment | None = None
    at_boot: bool | None = None
    log: list[str] = []
    folder: str | None = None
    token_id: str | None = None


class NodeService:
    """A node that is logged in to."""

    def __init__(
        self, connection: asyncssh.SSHClientConnection, way: Route, target: SshTarget, steps: Steps, agent: Bundle
    ) -> None:
        self._connection = connection
        self._way = way
        self._target = target
        self._steps = steps
        self._agent = agent

    async def ask(self, word: Word, **order: Any) -> Answer:
        """Have something done; raises NodeLost where the node does not answer."""
        place, python = self._way.place, self._target.python
        self._steps.within(
            START_SECONDS, NodeLost(f"logged in, but nothing started within {START_SECONDS:g} s", "", explain.PYTHON)
        )
        answer = FirstLine()
        late = NodeLost(f"no answer within {ANSWER_SECONDS:g} s", "look at the node's load and its home's file server")
        lines = Lines(answer.take, lambda _preamble: self._steps.within(ANSWER_SECONDS, late))
        remote = Remote(_bounded(lines.feed), lambda _message: None)
        text = msgspec.json.encode({"node": self._target.name, **order}) + b"\n"
        command = self._agent.command("service", word, python=python)
        ended = await remote.run(self._connection, command, self._agent.data + text)
        if ended.problem is not None:
            raise explain.hung_up(place, explain.Attempt(), str(ended.problem), logged_in=True)
        if answer.line is None:
            told = f"{lines.preamble()}\n{ended.told}"
            if explain.python_missing(ended.status, told, python):
                fix = "install Python 3.6 or later there, or name one by --python"
                raise NodeLost(f"there is no {python} on the node's PATH", fix, explain.PYTHON)
            raise explain.ended(ended.status, ended.signal, told, python, place)
        try:
            # A node may send back what it was given, and people are shown what it says.
            return msgspec.json.decode(without_secrets(answer.line.decode()), type=Answer)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
            raise NodeLost(f"its answer cannot be read: {problem}", "", explain.PROBE) from problem


def _bounded(feed: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """Take no more than MOST_BYTES; raise NodeLost for a node that prints without end."""
    left = MOST_BYTES

    def take(data: bytes) -> None:
        nonlocal left
        left -= len(data)
        if left < 0:
            fix = "look at what its login scripts and its agent print"
            raise NodeLost(f"it prints more than {MOST_BYTES >> 20} MiB and no end of it", fix, explain.PROBE)
        feed(data)

    return take


@contextlib.asynccontextmanager
async def logged_in(
    ssh: Ssh, target: SshTarget, agent: Bundle, check: Callable[[Route], None]
) -> AsyncIterator[NodeService]:
    """A visit to one node; raises NodeLost where it fails. `check` may refuse where it leads, before it begins."""
    steps = Steps()
    try:
        async with asyncio.timeout(SETTINGS_SECONDS) as steps.deadline:
            steps.overdue = explain.bad_settings("a command of a Match line does not end")
            way = await ssh.route(target)
            check(way)
            async with ssh.dialer.connection(way, steps) as connection:
                yield NodeService(connection, way, target, steps, agent)
    except TimeoutError as problem:
        raise steps.overdue from problem
