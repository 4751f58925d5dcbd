"""Which nodes there are and how each is reached: what every source of nodes gives."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from gpulse.config.hosts import Address, parse
from gpulse.config.sections import Reach
from gpulse.errors import HostsError

Problem = Callable[[str], None]
NOTHING = Reach()


class Target(msgspec.Struct, frozen=True):
    """A node to be reached; None is left to [ssh] and to ssh_config."""

    # Unique in the fleet: the host as typed, or host:port where a host stands there twice.
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


class Source(Protocol):
    """Somewhere that nodes are listed.

    `targets` reads now and may block: it is called in a thread. What is wrong with a part it tells `problem`, and
    gives the rest; where nothing can be read it raises DiscoveryError with file and line.
    `watched` are the files to be looked at for changes, as of the last reading.
    """

    def targets(self, problem: Problem) -> list[Target]: ...

    def watched(self) -> list[Path]: ...


def expand(text: str, defaults: Reach = NOTHING) -> list[Target]:
    """The nodes that text names; HostsError where it names none. What stands in the text wins over the defaults."""
    found: dict[tuple[str, int | None], Target] = {}
    for address in parse(text):
        target = _target(address, defaults)
        found.setdefault((target.host, target.port), target)
    return unique(found.values(), _refuse)


def unique(targets: Iterable[Target], problem: Problem, names: Mapping[str, str] | None = None) -> list[Target]:
    """Each node once, under a name of its own; the first of two wins, and of the second is told.

    `names` has what people call a node, by its name.
    """
    found: dict[str, Target] = {}
    for target in targets:
        name = target.host
        known = found.get(name)
        if known is not None and known.port != target.port:
            # Where no port is given it is most often ssh's own.
            name = str(Address(target.host, target.port or 22))
            known = found.get(name)
        if known is not None:
            problem(f"node {name} is listed twice: {_told(known)} is used, {_told(target)} is not")
            continue
        display_name = (names or {}).get(name) or target.display_name
        if display_name:
            display_name = display_name.replace("{name}", name)
        found[name] = msgspec.structs.replace(target, name=name, display_name=display_name)
    return list(found.values())


def _target(address: Address, defaults: Reach) -> Target:
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
    )


def _told(target: Target) -> str:
    place = str(Address(target.host, target.port, target.user))
    return f"{place} of group {target.group}" if target.group else place


def _refuse(words: str) -> None:
    raise HostsError(words)
