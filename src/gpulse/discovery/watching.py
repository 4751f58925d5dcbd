"""All sources of nodes as one list, again whenever it changes."""

import asyncio
from collections.abc import AsyncIterator, Hashable, Mapping, Sequence
from pathlib import Path

from gpulse.config import Config
from gpulse.discovery.config_file import ConfigFile
from gpulse.discovery.static import Static
from gpulse.discovery.steady import Steady
from gpulse.discovery.targets import Problem, Source, Target, unique

# A source that failed is tried again after so many looks, even if its file seems to be the same.
RETRY_LOOKS = 10


def sources(texts: Sequence[str], path: Path | None, config: Config) -> list[Source]:
    """The command line first: where a node is listed twice, it wins. HostsError where a text names no host.

    `path` is the file of the settings, if there is one; `config` is what runs, the command line's options included.
    """
    files = [ConfigFile(path, config)] if path else []
    return [*(Static(text) for text in texts), *files]


async def watch(
    sources: Sequence[Source], problem: Problem, names: Mapping[str, str] | None = None, every: float = 1.0
) -> AsyncIterator[list[Target]]:
    """The nodes of all sources at once, and again whenever they change; it never ends and never fails.

    What is wrong goes to `problem`, once. A source that cannot be read keeps its last answer and is tried again. With
    the watching the sources end too.
    """
    watching = _Watching(sources, names or {})
    try:
        while True:
            # A thread, because a file may be on a network and ClusterShell's groups may be commands.
            said: list[str] = []
            targets = await asyncio.to_thread(watching.look, said.append)
            for words in said:
                problem(words)
            if targets is not None:
                yield targets
            await asyncio.sleep(every)
    finally:
        for source in sources:
            source.close()


class _Watching:
    def __init__(self, sources: Sequence[Source], names: Mapping[str, str]) -> None:
        self._sources = [Steady(source) for source in sources]
        self._names = names
        self._marks: list[Hashable] | None = None
        self._last: list[Target] | None = None
        self._told: set[str] = set()
        self._idle = 0

    def look(self, problem: Problem) -> list[Target] | None:
        """The list if it is another than before; blocks."""
        # Marks are taken before the reading: a file that is written meanwhile differs from its mark next time.
        marks = [source.mark() for source in self._sources]
        self._idle += 1
        retry = self._idle >= RETRY_LOOKS and any(source.failing() for source in self._sources)
        if marks == self._marks and not retry:
            return None
        self._idle = 0
        found = [target for source in self._sources for target in source.targets(problem)]
        # A file that this reading was the first to name is not in these marks: then all is read once more.
        self._marks = marks
        twice: list[str] = []
        targets = unique(found, twice.append, self._names)
        for words in twice:
            if words not in self._told:
                problem(words)
        self._told = set(twice)
        if targets == self._last:
            return None
        self._last = targets
        return targets
