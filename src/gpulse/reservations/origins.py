"""Which entries of a comments.json were imported before: by what the file had then, not by what is reserved now."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import NamedTuple

from gpulse.reservations.hosts import Hosts, host_key
from gpulse.reservations.model import Origin, Reservation

# The file has minutes.
SAME_SECONDS = 60.0


class Whose(NamedTuple):
    """Who is meant by a name of the file."""

    login: str
    # What should be known about that; "": nothing, it is the login as it is in the file.
    note: str = ""

    def told(self, message: str) -> str:
        return f"{message}; {self.note}" if self.note else message


class Origins:
    """Entries that were imported, with what was made of them.

    A host or a name is the same as written, or where the same node or login is meant by it: which ones those are may
    have changed since.
    """

    def __init__(
        self, imported: Iterable[tuple[Origin, Reservation]], hosts: Hosts, people: Mapping[str, Whose]
    ) -> None:
        self._hosts, self._people = hosts, people
        self._found: dict[tuple[str, str, str], list[tuple[float, Reservation]]] = {}
        for origin, made in imported:
            meant = hosts.meant(origin.host)
            for key in self._keys(origin, meant[0] if len(meant) == 1 else None):
                self._found.setdefault(key, []).append((origin.end, made))

    def made_of(self, origin: Origin) -> Reservation | None:
        """The reservation, however it went on; of several the one that lasts."""
        node, _ = self._hosts.node(origin.host)
        found = (
            made
            for key in self._keys(origin, node)
            for end, made in self._found.get(key, ())
            if abs(end - origin.end) < SAME_SECONDS
        )
        return max(found, key=lambda made: made.last, default=None)

    def _keys(self, origin: Origin, node: str | None) -> Iterator[tuple[str, str, str]]:
        login = self._people.get(origin.name, Whose(origin.name)).login
        hosts = {host_key(host) for host in (origin.host, node) if host is not None}
        for host, name in product(hosts, {origin.name.casefold(), login.casefold()}):
            yield host, origin.index, name
