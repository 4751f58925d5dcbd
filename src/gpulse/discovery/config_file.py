"""Nodes of gpulse.toml: its [[nodes]], and the files its [[host_files]] and [[ini_files]] name."""

from pathlib import Path

import msgspec

from gpulse.config import Config, HostFileTable, IniFileTable, load
from gpulse.discovery.hostfile import HostFile
from gpulse.discovery.ini import IniFile
from gpulse.discovery.steady import Steady
from gpulse.discovery.targets import Problem, Target, expand
from gpulse.errors import ConfigError, DiscoveryError

# Sections whose edits apply without a restart.
_LIVE = ("nodes", "host_files", "ini_files")


class ConfigFile:
    """Node tables are read anew; other settings stay as they run, and edits that would change them are told."""

    def __init__(self, path: Path, running: Config) -> None:
        self._path = path
        self._running = running
        self._first: Config | None = None
        self._files: dict[HostFileTable | IniFileTable, Steady] = {}

    def targets(self, problem: Problem) -> list[Target]:
        try:
            config = load(self._path)
        except ConfigError as error:
            raise DiscoveryError(str(error)) from error
        self._first = self._first or config
        # What the command line set differs from the file from the start: that is no edit.
        edited = set(changed(self._first, config))
        for key in (key for key in changed(self._running, config) if key in edited):
            problem(f"{self._path}: {key} has changed; restart gpulse to apply it")
        known = self._files
        tables: list[HostFileTable | IniFileTable] = [*config.host_files, *config.ini_files]
        # A file that stays in the list keeps its last answer.
        self._files = {table: known.get(table) or Steady(_source(table)) for table in tables}
        found = [target for table in config.nodes for text in table.texts() for target in expand(text, table)]
        for source in self._files.values():
            found.extend(source.targets(problem))
        return found

    def watched(self) -> list[Path]:
        return [self._path, *(path for source in self._files.values() for path in source.watched())]

    def failing(self) -> bool:
        return any(source.failing() for source in self._files.values())


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


def _source(table: HostFileTable | IniFileTable) -> HostFile | IniFile:
    return HostFile(table.path, table) if isinstance(table, HostFileTable) else IniFile(table.path, table)
