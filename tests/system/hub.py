"""The hub's part that connects, with a sink that remembers."""

import contextlib
import time
from collections.abc import AsyncIterator

from gpulse.transport.ssh import Ssh, SshSettings, SshTarget
from gpulse.transport.supervisor import Pace, Supervisor
from tests.patience import PATIENCE_SECONDS
from tests.system.stalls import Stalls
from tests.transport.recorder import Recorder

QUICK = Pace(first_pause_seconds=0.2, longest_pause_seconds=1.0)
# For tests that wait for it.
SHORT_SILENCE = Pace(first_pause_seconds=0.2, longest_pause_seconds=1.0, silence_seconds=6.0)


@contextlib.asynccontextmanager
async def hub(settings: SshSettings, *targets: SshTarget, pace: Pace = QUICK) -> AsyncIterator[Recorder]:
    """Connects to the targets until the end of the block; it must then be gone within 10 s."""
    recorder = Recorder()
    ssh = Ssh(settings)
    supervisor = Supervisor(recorder, {SshTarget: ssh.stream}, pace)
    recorder.set_targets = supervisor.set_targets
    with Stalls() as recorder.stalls:
        supervisor.set_targets(targets)
        try:
            yield recorder
        finally:
            began = time.monotonic()
            await supervisor.stop()
            await ssh.close()
            assert time.monotonic() - began - recorder.stalls.since(began) < 10


async def first_line(settings: SshSettings, target: SshTarget, seconds: float = PATIENCE_SECONDS) -> Recorder:
    """What was seen up to its first line."""
    async with hub(settings, target) as seen:
        await seen.up(target.name, seconds=seconds)
        return seen


async def first_failure(settings: SshSettings, target: SshTarget, seconds: float = PATIENCE_SECONDS) -> str:
    """Why it is down."""
    async with hub(settings, target) as seen:
        await seen.until(lambda: seen.downs[target.name], seconds)
        assert not seen.lines[target.name]
        return seen.downs[target.name][0]
