"""What a login tried in vain: key files, the agent's keys, and files that need a passphrase."""

import asyncio
from pathlib import Path

import asyncssh

from gpulse.transport.explain import Attempt
from gpulse.transport.ssh_options import Route

AGENT_SECONDS = 2.0


async def tried(way: Route, attempt: Attempt) -> Attempt:
    """The attempt, with what it had to offer."""
    return await asyncio.get_running_loop().run_in_executor(None, _tried_files, way, attempt, await _agent_keys(way))


def _tried_files(way: Route, attempt: Attempt, agent: list[bytes] | None) -> Attempt:
    keys, locked = [], []
    for path in way.identities:
        try:
            asyncssh.read_private_key(path)
            keys.append(_short(path))
        except asyncssh.KeyImportError as problem:
            # asyncssh has no other sign of it.
            if "passphrase" not in str(problem).lower():
                keys.append(f"{_short(path)} (unreadable)")
            elif _public_data(path) not in (agent or []):
                locked.append(_short(path))
        except OSError as problem:
            keys.append(f"{_short(path)} ({problem.strerror})")
    return Attempt(keys, len(agent) if agent is not None else None, locked, attempt.asked, attempt.banner)


def _public_data(path: Path) -> bytes:
    try:
        return asyncssh.read_public_key(f"{path}.pub").public_data
    except (OSError, asyncssh.KeyImportError):
        return b""


async def _agent_keys(way: Route) -> list[bytes] | None:
    if not way.agent:
        return None
    try:
        async with asyncio.timeout(AGENT_SECONDS):
            agent = await asyncssh.connect_agent(way.agent)
            try:
                return [key.public_data for key in await agent.get_keys()]
            finally:
                agent.close()
    except (OSError, TimeoutError, ValueError, asyncssh.Error):
        # An agent that does not answer holds no key.
        return None


def _short(path: Path) -> str:
    try:
        return f"~/{path.relative_to(Path.home())}"
    except ValueError:
        return str(path)
