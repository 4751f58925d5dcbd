"""Nodes over SSH that write without end, wherever that is read: they are cut off in words, and the hub stays quick."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

import pytest

from gpulse.agents.care import Agents
from gpulse.transport import without_python
from gpulse.transport.bundle import make_agent
from gpulse.transport.checks import examine
from gpulse.transport.ssh import Ssh, SshSettings
from gpulse_probe.boot import START_MARKER
from tests.patience import PATIENCE_SECONDS
from tests.system.conftest import target
from tests.system.hub import hub

# So much CPU time in one go: a page's request waits no longer because of such a node. Measured: 10 to 30 ms.
LONGEST_TURN_SECONDS = 0.25
STARTED = f"printf '\\n{START_MARKER}\\n'; "
FLOODS = {
    "newlines on stderr": "exec yes '' >&2",
    "lines on stderr": "exec yes 'gpulse: something is wrong' >&2",
    "a line without end on stderr": "exec cat /dev/zero >&2",
    "newlines on stdout": "exec yes ''",
    "a line without end on stdout": "exec cat /dev/zero",
    "newlines on stdout once started": STARTED + "exec yes ''",
    "newlines on stderr once started": STARTED + "exec yes '' >&2",
}


class Turns:
    """The CPU time of the loop's thread, in all and the most between two turns of a task that asks all the time."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._began = time.thread_time()

    @property
    def spent(self) -> float:
        return time.thread_time() - self._began

    async def watch(self) -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(0)
            self.longest = max(self.longest, time.thread_time() - before)
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def watched() -> AsyncIterator[Turns]:
    turns = Turns()
    task = asyncio.create_task(turns.watch())
    try:
        yield turns
    finally:
        task.cancel()


@pytest.mark.parametrize("flood", FLOODS)
def test_a_node_that_floods(serve, settings: SshSettings, flood: str):
    server = serve(wrapper=FLOODS[flood])

    async def run() -> tuple[list[str], Turns]:
        async with hub(settings, target(server)) as seen, watched() as turns:
            await seen.until(lambda: len(seen.downs["n0"]) >= 2, PATIENCE_SECONDS)
            return seen.downs["n0"], turns

    downs, turns = asyncio.run(run())
    words = {"stderr": "floods stderr", "stdout": "without end", "stdout once started": "lines cannot be read"}
    told = next(words[where] for where in sorted(words, key=len, reverse=True) if where in flood)
    assert told in downs[0], downs
    assert turns.longest < LONGEST_TURN_SECONDS
    # Each attempt is over as soon as it is seen for what it is.
    assert turns.spent < 3.0 * len(downs)


@pytest.mark.parametrize("flood", FLOODS)
def test_doctor_at_a_node_that_floods(serve, settings: SshSettings, flood: str):
    server = serve(wrapper=FLOODS[flood])

    async def run() -> tuple[str, Turns]:
        ssh = Ssh(settings)
        async with watched() as turns:
            async with asyncio.timeout(PATIENCE_SECONDS):
                found = (await examine(ssh, target(server))).examination
            await ssh.close()
            return found.checks[-1].detail, turns

    detail, turns = asyncio.run(run())
    assert any(words in detail for words in ("floods stderr", "without end", "more than 100 lines")), detail
    assert turns.longest < LONGEST_TURN_SECONDS


@pytest.mark.parametrize("flood", FLOODS)
def test_an_agents_node_that_floods(serve, settings: SshSettings, flood: str):
    server = serve(wrapper=FLOODS[flood])

    async def run() -> tuple[str, Turns]:
        ssh = Ssh(settings)
        async with watched() as turns:
            async with asyncio.timeout(PATIENCE_SECONDS):
                answers = [answer async for answer in Agents(ssh, make_agent()).ask([target(server)], "status")]
            await ssh.close()
            return answers[0].error, turns

    error, turns = asyncio.run(run())
    assert any(words in error for words in ("floods stderr", "without end", "more than 100 lines")), error
    assert turns.longest < LONGEST_TURN_SECONDS


def test_nvidia_smi_that_floods_stderr(serve, settings: SshSettings, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(without_python, "INTERVAL_SECONDS", 0.2)
    server = serve(python=None, path="/nowhere")
    server.program("nvidia-smi", "exec /usr/bin/yes '' >&2")

    async def run() -> tuple[str, Turns]:
        async with hub(settings, target(server)) as seen, watched() as turns:
            await seen.until(lambda: seen.downs["n0"], PATIENCE_SECONDS)
            return seen.downs["n0"][0], turns

    reason, turns = asyncio.run(run())
    assert "floods stderr" in reason
    assert turns.longest < LONGEST_TURN_SECONDS


def test_a_login_that_has_much_to_say_is_read(serve, settings: SshSettings):
    """A traced login script may write thousands of lines."""
    server = serve(wrapper="yes '+ test -f /etc/profile' | head -4000 >&2; exec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"")

    async def run() -> None:
        async with hub(settings, target(server)) as seen:
            await seen.up("n0", seconds=PATIENCE_SECONDS)
            assert not seen.downs["n0"]

    asyncio.run(run())
