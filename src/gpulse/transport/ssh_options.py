"""What the user's and the system's ssh_config say of a host."""

import asyncio
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

import asyncssh
import msgspec

from gpulse.errors import NodeLost
from gpulse.transport import explain
from gpulse.transport.explain import Place

DEFAULT_KEYS = ("id_ed25519_sk", "id_ecdsa_sk", "id_ed25519", "id_ecdsa", "id_rsa")


class SshSettings(msgspec.Struct, frozen=True):
    """How nodes are reached by SSH. What one host needs is in ssh_config, not here."""

    # "strict": only hosts in known_hosts; "accept-new": hosts seen for the first time are added to it.
    host_keys: Literal["strict", "accept-new"] = "strict"
    config_files: tuple[str, ...] = ("~/.ssh/config", "/etc/ssh/ssh_config")
    system_known_hosts: tuple[str, ...] = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
    # Logins begun at once; sshd refuses some of more than 10 at a time (MaxStartups), a hub's CPU has limits too.
    connects_at_once: int = 32
    connect_seconds: float = 15.0
    login_seconds: float = 30.0
    # Of nodes that are seldom heard; those that send every few seconds need no other sign of life.
    keepalive_seconds: float = 15.0


class Route(msgspec.Struct, frozen=True):
    """A host as ssh_config describes it, and the arguments of asyncssh.connect that go there."""

    # As it was asked for; options of ssh_config are looked up by it.
    asked: str
    place: Place
    # The name that known_hosts has it by.
    alias: str | None
    jump: str | None
    # A proxy command, a canonical name or a local address: things that asyncssh sees to while it connects.
    left_to_asyncssh: bool
    family: int
    known_hosts: tuple[Path, ...]
    # Where new keys go.
    own_known_hosts: Path
    identities: tuple[Path, ...]
    agent: str
    connect_seconds: float
    arguments: dict[str, Any]


async def route(
    settings: SshSettings, host: str, user: str | None, port: int | None, identity_files: Sequence[str] = ()
) -> Route:
    """Read the files (in a thread: a Match may run a command). Raises NodeLost where they cannot be used."""
    files = [path for path in _paths(settings.config_files) if path.is_file()]
    arguments: dict[str, Any] = {"config": files}
    if user:
        arguments["username"] = user
    if port:
        arguments["port"] = port
    loop = asyncio.get_running_loop()
    read = partial(asyncssh.SSHClientConnectionOptions, host=host, client_keys=None, loop=loop, **arguments)
    try:
        options = await loop.run_in_executor(None, read)
    except (OSError, ValueError, asyncssh.Error) as problem:
        raise explain.bad_settings(str(problem)) from problem
    return await loop.run_in_executor(None, _route, settings, host, options, arguments, identity_files)


def _route(
    settings: SshSettings,
    host: str,
    options: asyncssh.SSHClientConnectionOptions,
    arguments: dict[str, Any],
    identity_files: Sequence[str],
) -> Route:
    config = options.config
    told = identity_files or cast(list[str], config.get("IdentityFile") or [])
    # ssh passes over files that are not there; asyncssh would not.
    identities = tuple(path for path in _paths(told) if path.is_file())
    if not told:
        identities = tuple(path for name in DEFAULT_KEYS if (path := Path("~/.ssh").expanduser() / name).is_file())
    elif identities:
        arguments["client_keys"] = [str(path) for path in identities]
        arguments["ignore_encrypted"] = True
        if config.get("IdentitiesOnly"):
            arguments["agent_identities"] = [str(path) for path in identities]
    agent = _agent(config.get("IdentityAgent", ()))
    user_files = cast(list[str] | None, config.get("UserKnownHostsFile"))
    own = _paths(user_files or ("~/.ssh/known_hosts", "~/.ssh/known_hosts2"))
    system = _paths(cast(list[str] | None, config.get("GlobalKnownHostsFile")) or settings.system_known_hosts)
    if config.get("Compression") is None:
        # It would cost a third of a megabyte for every node.
        arguments["compression_algs"] = None
    if config.get("Ciphers") is None:
        # The cheapest for small packets, where processors have instructions for it; the others stay possible.
        arguments["encryption_algs"] = "^aes128-gcm@openssh.com,aes256-gcm@openssh.com"
    arguments |= {
        "x509_trusted_certs": None,
        "agent_path": agent or None,
        "connect_timeout": None,
        "login_timeout": settings.login_seconds,
        "agent_forwarding": False,
        "x11_forwarding": False,
        "gss_kex": False,
        "request_pty": False,
        "encoding": None,
    }
    return Route(
        asked=host,
        place=Place(options.host, options.port, options.username),
        alias=options.host_key_alias,
        jump=cast(str | None, options.tunnel) or None,
        left_to_asyncssh=bool(
            options.proxy_command or options.local_addr or (options.canonicalize_hostname and options.canonical_domains)
        ),
        family=options.family,
        known_hosts=(*own, *system),
        own_known_hosts=own[0],
        identities=identities,
        agent=agent,
        connect_seconds=float(cast(float, config.get("ConnectTimeout") or settings.connect_seconds)),
        arguments=arguments,
    )


def hops(jump: str) -> list[tuple[str, str | None, int | None]]:
    """The hosts of a ProxyJump, in order: (host, user, port)."""
    found = []
    for text in jump.split(","):
        user, _, rest = text.strip().removeprefix("ssh://").rpartition("@")
        host, port = rest, ""
        if rest.startswith("["):
            host, _, port = rest[1:].partition("]")
            port = port.removeprefix(":")
        elif rest.count(":") == 1:
            host, _, port = rest.partition(":")
        if not host or (port and not (port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65536)):
            raise NodeLost(f"ProxyJump {text!r} is no host", "correct ~/.ssh/config", explain.LOGIN)
        found.append((host, user or None, int(port) if port else None))
    return found


def _agent(told: object) -> str:
    """The agent's socket: IdentityAgent may also be none, SSH_AUTH_SOCK or a variable."""
    if told is None:
        return ""
    path = str(told) if told else "SSH_AUTH_SOCK"
    if path == "SSH_AUTH_SOCK" or path.startswith("$"):
        path = os.environ.get(path.lstrip("$").strip("{}"), "")
    return str(Path(path).expanduser()) if path else ""


def _paths(names: Sequence[str]) -> list[Path]:
    return [Path(name.replace("%d", str(Path.home()))).expanduser() for name in names]
