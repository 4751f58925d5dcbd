"""Nodes of gpulse.toml: its [[nodes]], the files it names, and what it has asked of Consul and DNS."""

from collections.abc import Hashable
from pathlib import Path

import msgspec

from gpulse.config import Config, ConsulTable, DnsTable, HostFileTable, IniFileTable, Reach, load
from gpulse.config.files import other_owner, reason
from gpulse.discovery.asking import Asked, Question
from gpulse.discovery.consul import Consul
from gpulse.discovery.dns import Dns
from gpulse.discovery.hostfile import HostFile
from gpulse.discovery.ini import IniFile
from gpulse.discovery.marks import file_mark
from gpulse.discovery.steady import Steady
from gpulse.discovery.targets import Problem, Target, expand
from gpulse.errors import ConfigError, DiscoveryError

# Sections whose edits apply without a restart.
_LIVE = ("nodes", "host_files", "ini_files", "consul", "dns")
_SAYS_NOTHING = msgspec.structs.asdict(Reach())


class ConfigFile:
    """Node tables are read anew; other settings stay as they run, and edits that would change them are told."""

    def __init__(self, path: Path, running: Config) -> None:
        self._path = path
        self._running = running
        self._first: Config | None = None
        self._config: Config | None = None
        # Whose the file is, "" for one's own or root's; None before it was read.
        self._owners: set[str] | None = None
        self._failed = False
        self._files: dict[HostFileTable | IniFileTable, Steady] = {}
        self._asked: dict[ConsulTable | DnsTable, Asked] = {}
        self._closed = False

    def targets(self, problem: Problem) -> list[Target]:
        config = self._read(problem)
        known, asked = self._files, self._asked
        files: list[HostFileTable | IniFileTable] = [*config.host_files, *config.ini_files]
        tables: list[ConsulTable | DnsTable] = [*config.consul, *config.dns]
        # A file that stays in the list keeps its last answer, and so does what is asked.
        self._files = {table: known.get(table) or Steady(_file(table)) for table in files}
        # All are asked before the first is waited for.
        self._asked = {question: asked.get(question) or Asked(_question(question)) for question in map(_bare, tables)}
        for question, asking in asked.items():
            if question not in self._asked:
                asking.close()
        if self._closed:
            self.close()
        found = [target for table in config.nodes for text in table.texts() for target in expand(text, table)]
        for source in self._files.values():
            found.extend(source.targets(problem))
        for table in tables:
            found.extend(self._asked[_bare(table)].targets(table, problem))
        return found

    def mark(self) -> Hashable:
        files = tuple(source.mark() for source in self._files.values())
        return file_mark(self._path), files, tuple(asked.mark() for asked in self._asked.values())

    def close(self) -> None:
        # First the word, then the deed: a reading that goes on meanwhile looks at it when it has begun to ask.
        self._closed = True
        for asked in self._asked.values():
            asked.close()

    def failing(self) -> bool:
        return self._failed or any(source.failing() for source in self._files.values())

    def _read(self, problem: Problem) -> Config:
        """The settings; those of before where there is a mistake in them now: other sources are followed on."""
        try:
            owners: set[str] = set()
            config = load(self._path, owners.add)
            self._check_owners(owners)
        except ConfigError as error:
            if self._config is None:
                raise DiscoveryError(str(error)) from error
            problem(f"{error}; the nodes it listed before are kept")
            self._failed = True
            return self._config
        self._failed = False
        self._config = config
        self._first = self._first or config
        # What the command line set differs from the file from the start: that is no edit.
        edited = set(changed(self._first, config))
        for key in (key for key in changed(self._running, config) if key in edited):
            problem(f"{self._path}: {key} has changed; restart gpulse to apply it")
        return config

    def _check_owners(self, owners: set[str]) -> None:
        """Raise ConfigError if what was read is another user's by now: whoever started the hub trusted its owner.

        `owners` has the owner of the very file that was read; who owns a link to it is added.
        """
        try:
            owners.add(other_owner(self._path))
        except OSError as error:
            raise ConfigError([f"{self._path}: cannot be read: {reason(error)}"]) from error
        if self._owners is None:
            self._owners = owners
        elif new := owners - self._owners - {""}:
            raise ConfigError([f"{self._path}: belongs to {', '.join(new)} now; restart gpulse if you trust it"])


def changed(before: Config, after: Config) -> list[str]:
    """The settings that need a restart, as hub.port or names."""
    keys = []
    for section in msgspec.structs.fields(Config):
        old, new = getattr(before, section.name), getattr(after, section.name)
        if section.name in _LIVE or old == new:
            continue
        if isinstance(old, msgspec.Struct):
            fields = (field.name for field in msgspec.structs.fields(old))
            keys += [f"{section.name}.{name}" for name in fields if getattr(old, name) != getattr(new, name)]
        else:
            keys.append(section.name)
    return keys


def _file(table: HostFileTable | IniFileTable) -> HostFile | IniFile:
    return HostFile(table.path, table) if isinstance(table, HostFileTable) else IniFile(table.path, table)


def _bare(table: ConsulTable | DnsTable) -> ConsulTable | DnsTable:
    """What is asked, without what is said about the nodes: an edit of that must not begin anew and lose them."""
    return msgspec.structs.replace(table, **_SAYS_NOTHING)


def _question(table: ConsulTable | DnsTable) -> Question:
    return Consul(table) if isinstance(table, ConsulTable) else Dns(table)
