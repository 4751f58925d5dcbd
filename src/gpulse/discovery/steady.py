"""Stale beats partial: a source of nodes that cannot be read keeps its last answer."""

from collections.abc import Hashable

from gpulse.discovery.targets import Problem, Source, Target
from gpulse.errors import DiscoveryError


class Steady:
    """A source that never fails: it tells what is wrong, once, and gives what it gave before."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._last: list[Target] = []
        self._told: set[str] = set()
        self._failed = False

    def targets(self, problem: Problem) -> list[Target]:
        said: list[str] = []
        try:
            self._last = self._source.targets(said.append)
            self._failed = False
        except DiscoveryError as error:
            said.append(f"{error}; the nodes it listed before are kept" if self._last else str(error))
            self._failed = True
        for words in said:
            if words not in self._told:
                problem(words)
        self._told = set(said)
        return self._last

    def mark(self) -> Hashable:
        return self._source.mark()

    def close(self) -> None:
        self._source.close()

    def failing(self) -> bool:
        """Whether the last reading failed here or, for a source made of sources, within."""
        within = getattr(self._source, "failing", None)
        return self._failed or bool(within and within())
