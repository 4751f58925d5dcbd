"""Which nodes there are and how each is reached: what every source of nodes gives."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from gpulse.config.hosts import Address, is_host, parse
from gpulse.config.sections import Reach, Transport
from gpulse.errors import HostsError

Problem = Callable[[str], None]
NOTHING = Reach()
# Where a node listens unless told otherwise; one that pushes listens nowhere.
_USUAL_PORTS: dict[Transport, int | None] = {"ssh": 22, "pull": 7080, "push": None}


class Target(msgspec.Struct, frozen=True):
    """A node to be reached; None is left to [ssh] and to ssh_config, or is what the transport has for usual."""

    # Unique in the fleet: the host as typed or `called`, or with :port where it stands there twice.
    name: str
    host: str
    user: str | None = None
    port: int | None = None
    group: str | None = None
    rack: str | None = None
    display_name: str | None = None
    interval_seconds: float | None = None
    python: str | None = None
    identity_files: tuple[Path, ...] = ()
    transport: Transport = "ssh"
    token_file: Path | None = None
    tls: bool = False
    # What the source calls the node, where that is not its host.
    called: str | None = None


class Source(Protocol):
    """Somewhere that nodes are listed.

    `targets` reads now and may block: it is called in a thread. What is wrong with a part it tells `problem`, and
    gives the rest; where nothing can be read it raises DiscoveryError with file and line.
    `mark` is another than before when it should be read again; it may look at files, but does not wait for a network.
    `close` ends what goes on in the background, at once, also while another thread reads.
    """

    def targets(self, problem: Problem) -> list[Target]: ...

    def mark(self) -> Hashable: ...

    def close(self) -> None: ...


def expand(text: str, defaults: Reach = NOTHING) -> list[Target]:
    """The nodes that text names; HostsError where it names none. What stands in the text wins over the defaults."""
    found: dict[tuple[str, int | None], Target] = {}
    for address in parse(text):
        target = target_of(address, defaults)
        found.setdefault((target.host, target.port), target)
    return unique(found.values(), _refuse)


def unique(targets: Iterable[Target], problem: Problem, names: Mapping[str, str] | None = None) -> list[Target]:
    """Each node once, under a name of its own; the first of two wins, and of the second is told.

    `names` has what people call a node, by its name.
    """
    found: dict[str, Target] = {}
    for target in targets:
        name = target.called or target.host
        if not is_host(name):
            # Names are typed and pasted into shells, and are parts of paths.
            problem(f'node "{name[:100]}" is left out: a name has letters, digits, ".", "_" and "-", or is an address')
            continue
        known = found.get(name)
        if known is not None and known.port != target.port and known.transport == target.transport:
            # Another door is another node; another way to the same host is the same node.
            name = str(Address(name, target.port or _USUAL_PORTS[target.transport]))
            known = found.get(name)
        if known is not None:
            problem(f"node {name} is listed twice: {_told(known)} is used, {_told(target)} is not")
            continue
        display_name = (names or {}).get(name) or target.display_name
        if display_name:
            display_name = display_name.replace("{name}", name)
        found[name] = msgspec.structs.replace(target, name=name, display_name=display_name)
    return list(found.values())


def target_of(address: Address, defaults: Reach) -> Target:
    """A node at an address; what the address does not tell comes from the defaults."""
    return Target(
        name=address.host,
        host=address.host,
        user=address.user or defaults.user,
        port=address.port or defaults.port,
        group=defaults.group,
        rack=defaults.rack,
        display_name=defaults.display_name,
        interval_seconds=defaults.interval_seconds,
        python=defaults.python,
        identity_files=defaults.identity_files,
        transport=defaults.transport,
        token_file=defaults.token_file,
        tls=defaults.tls,
    )


def _told(target: Target) -> str:
    place = str(Address(target.host, target.port, target.user))
    if target.transport != "ssh":
        place += f" by {target.transport}"
    return f"{place} of group {target.group}" if target.group else place


def _refuse(words: str) -> None:
    raise HostsError(words)
