"""Which node a host of a comments.json is: domains may be left out on either side, and nothing else."""

from collections.abc import Collection, Iterable
from itertools import islice

_LONGEST_TOLD = 100
_MOST_TOLD = 3


class Hosts:
    """The hosts of a file, among the nodes there are."""

    def __init__(self, nodes: Collection[str], hosts: Iterable[str]) -> None:
        self._nodes = nodes
        self._by_name: dict[str, list[str]] = {}
        # Those that have a domain, without it.
        self._by_short: dict[str, list[str]] = {}
        for node in nodes:
            name = host_key(node)
            self._by_name.setdefault(name, []).append(node)
            if (short := _short(name)) is not None:
                self._by_short.setdefault(short, []).append(node)
        # What the file calls each node.
        self._called: dict[str, dict[str, str]] = {}
        for host in sorted(set(hosts)):
            meant = self.meant(host)
            if len(meant) == 1:
                self._called.setdefault(meant[0], {}).setdefault(host_key(host), host)

    def node(self, host: str) -> tuple[str | None, str]:
        """The one that is meant; else why that is not known."""
        meant, none = self.meant(host), f"there is no node {_told([host])}"
        if len(meant) > 1:
            return None, f"{none}; {_listed(meant)} may be meant"
        if not meant:
            elsewhere = self._by_short.get(_short(host_key(host)) or "", [])
            return None, f"{none}; in another domain there is {_listed(elsewhere)}" if elsewhere else none
        (node,) = meant
        # A file may have many hosts that are one node here; some of them are enough to say so.
        called = (other for name, other in self._called.get(node, {}).items() if name != host_key(host))
        others = list(islice(called, _MOST_TOLD))
        if others and host_key(host) != host_key(node):
            return None, f"{none}; {node} may be meant, which {_told(others)} of the file may be, too"
        return node, ""

    def meant(self, host: str) -> list[str]:
        """All that may be, whatever else is in the file."""
        if host in self._nodes:
            return [host]
        name = host_key(host)
        if name in self._by_name:
            return self._by_name[name]
        short = _short(name)
        # Of two domains each has nodes of its own.
        return self._by_short.get(name, []) if short is None else self._by_name.get(short, [])


def host_key(host: str) -> str:
    """However it is written."""
    return host.strip().rstrip(".").casefold()


def _short(name: str) -> str | None:
    """Without its domain; None where it has none. What ends in a number, or has a colon, is an address."""
    short, dot, domain = name.partition(".")
    return short if dot and ":" not in name and not domain.rpartition(".")[2].isdigit() else None


def _told(hosts: Iterable[str]) -> str:
    return ", ".join(f'"{host[:_LONGEST_TOLD]}"' for host in list(hosts)[:_MOST_TOLD])


def _listed(nodes: list[str]) -> str:
    return ", ".join(nodes[:_MOST_TOLD])
