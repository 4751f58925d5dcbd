"""Nodes of a file with one host a line, as in a node-list.txt; ranges, users and ports may stand there too."""

from pathlib import Path

from gpulse.config.files import read_bytes, reason
from gpulse.config.sections import Reach
from gpulse.discovery.marks import Mark, file_mark
from gpulse.discovery.targets import NOTHING, Problem, Target, expand
from gpulse.errors import DiscoveryError, HostsError


class HostFile:
    """A bad line is told of by its number, and the others are kept."""

    def __init__(self, path: Path, defaults: Reach = NOTHING) -> None:
        self._path = path
        self._defaults = defaults

    def targets(self, problem: Problem) -> list[Target]:
        try:
            # A comment in Latin-1 is no reason to lose the hosts; a host's name in it is told of as a bad line.
            text = read_bytes(self._path).decode("utf-8-sig", "replace")
        except OSError as error:
            raise DiscoveryError(f"{self._path}: cannot be read: {reason(error)}") from error
        found: list[Target] = []
        for number, line in enumerate(text.split("\n"), 1):
            hosts = line.partition("#")[0].strip()
            if not hosts:
                continue
            try:
                found.extend(expand(hosts, self._defaults))
            except HostsError as error:
                problem(f"{self._path}:{number}: {error}")
        return found

    def mark(self) -> Mark:
        return file_mark(self._path)

    def close(self) -> None:
        """Nothing goes on."""
