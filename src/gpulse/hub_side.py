"""Settings and lists of nodes as the transports want them: the one place that knows both sides."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from gpulse.config import Config
from gpulse.config.files import is_file_name, read_bytes, reason
from gpulse.discovery import Target
from gpulse.errors import NodeLost
from gpulse.transport.feed import Feed
from gpulse.transport.pull import Pull, PullTarget
from gpulse.transport.ssh import SshSettings, SshTarget

PULL_PORT = 7080
_NAME = "{name}"


def ssh_settings(config: Config) -> SshSettings:
    """The [ssh] section."""
    given = config.ssh
    return SshSettings(
        host_keys=given.host_keys,
        config_files=tuple(map(str, given.config_files)),
        system_known_hosts=SshSettings().system_known_hosts + tuple(map(str, given.known_hosts)),
        connects_at_once=given.simultaneous_connects,
        connect_seconds=given.connect_timeout_seconds,
        login_seconds=given.login_timeout_seconds,
        keepalive_seconds=given.keepalive_seconds,
    )


def ssh_target(config: Config, target: Target) -> SshTarget:
    """A node; what its own table does not say comes from [ssh] and [hub]."""
    return SshTarget(
        name=target.name,
        host=target.host,
        user=target.user or config.ssh.user,
        # Of a node that is asked over HTTP it is the agent's.
        port=(target.port if target.transport != "pull" else None) or config.ssh.port,
        interval_seconds=target.interval_seconds or config.hub.interval_seconds,
        python=target.python or config.ssh.python,
        identity_files=tuple(map(str, target.identity_files or config.ssh.identity_files)),
    )


class Asked(msgspec.Struct, frozen=True):
    """A node whose agent is asked; its token stands in a file, which may be written after the list was.

    {name} in the file's name is the node's: with one token for all, whoever listens in the place of one agent has it.
    """

    name: str
    host: str
    port: int
    tls: bool
    token_file: Path | None
    interval_seconds: float


def hub_side_target(config: Config, target: Target) -> SshTarget | Asked:
    """A node that the hub goes to, by the way its list says."""
    if target.transport == "ssh":
        return ssh_target(config, target)
    return Asked(
        name=target.name,
        host=target.host,
        port=target.port or PULL_PORT,
        tls=target.tls,
        token_file=target.token_file,
        interval_seconds=target.interval_seconds or config.hub.interval_seconds,
    )


def asking(pull: Pull) -> Callable[[Asked, Feed], Awaitable[None]]:
    """The way to such a node: its token is read anew with every attempt."""

    async def ask(target: Asked, feed: Feed) -> None:
        await pull.stream(
            PullTarget(
                name=target.name,
                host=target.host,
                port=target.port,
                tls=target.tls,
                token=_token(target),
                interval_seconds=target.interval_seconds,
            ),
            feed,
        )

    return ask


def _token(target: Asked) -> str:
    if target.token_file is None:
        raise NodeLost("the token of its agent is not known", "set token_file in its table of nodes", "login")
    file = str(target.token_file)
    if _NAME in file:
        # Some names come from the network, and none may lead elsewhere.
        if not is_file_name(target.name):
            raise NodeLost(f"its name cannot be {_NAME} in token_file {file}", "name it otherwise where it is listed")
        file = file.replace(_NAME, target.name)
    try:
        token = read_bytes(Path(file)).decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as problem:
        why = reason(problem) if isinstance(problem, OSError) else "it is no text"
        raise NodeLost(
            f"the file of its token, {file}, cannot be read: {why}",
            "put the token that its agent serves with there",
            "login",
        ) from None
    if not token or any(not "!" <= letter <= "~" for letter in token):
        raise NodeLost(f"the file of its token, {file}, holds no token", "put one word into it, in one line", "login")
    return token
