"""Nodes of a config.ini with `user`, `hosts` and `key_filename` in [common], as Web-GPU-Monitor has it."""

import configparser
import re
from pathlib import Path

import msgspec

from gpulse.config.files import read_bytes, reason
from gpulse.config.sections import Reach
from gpulse.discovery.marks import Mark, file_mark
from gpulse.discovery.targets import NOTHING, Problem, Target, expand
from gpulse.errors import DiscoveryError, HostsError

_KEYS = ("user", "hosts", "key_filename")


class IniFile:
    """What the file says wins over the defaults of its table."""

    def __init__(self, path: Path, defaults: Reach = NOTHING) -> None:
        self._path = path
        self._defaults = defaults

    def targets(self, problem: Problem) -> list[Target]:
        try:
            text = read_bytes(self._path).decode("utf-8-sig", "replace")
        except OSError as error:
            raise DiscoveryError(f"{self._path}: cannot be read: {reason(error)}") from error
        common = self._common(text)
        for key in common:
            if key not in _KEYS:
                problem(f"{self._at(text, key)}: [common] {key}: is not used; known are {', '.join(_KEYS)}")
        if "hosts" not in common:
            raise DiscoveryError(f"{self._path}: [common] hosts: is missing; it names the nodes")
        defaults = self._defaults
        if common.get("user"):
            defaults = msgspec.structs.replace(defaults, user=common["user"])
        if common.get("key_filename"):
            defaults = msgspec.structs.replace(defaults, identity_files=(self._key(common["key_filename"], text),))
        try:
            return expand(common["hosts"], defaults)
        except HostsError as error:
            raise DiscoveryError(f"{self._at(text, 'hosts')}: [common] hosts: {error}") from error

    def mark(self) -> Mark:
        return file_mark(self._path)

    def close(self) -> None:
        """Nothing goes on."""

    def _common(self, text: str) -> dict[str, str]:
        # Without interpolation: a % in a path is a %.
        parser = configparser.RawConfigParser()
        try:
            parser.read_string(text)
            return dict(parser.items("common"))
        except configparser.NoSectionError as error:
            raise DiscoveryError(f"{self._path}: [common] is missing; it has {', '.join(_KEYS)}") from error
        except configparser.Error as error:
            errors = getattr(error, "errors", None)
            line = errors[0][0] if errors else getattr(error, "lineno", None)
            place = f"{self._path}:{line}" if line else str(self._path)
            raise DiscoveryError(f"{place}: is no INI file: {_first_words(error)}") from error

    def _key(self, written: str, text: str) -> Path:
        try:
            if "\0" in written:
                raise RuntimeError("is no path")
            return self._path.absolute().parent / Path(written).expanduser()
        except RuntimeError as error:
            raise DiscoveryError(f"{self._at(text, 'key_filename')}: [common] key_filename: {error}") from error

    def _at(self, text: str, key: str) -> str:
        for number, line in enumerate(text.split("\n"), 1):
            if re.match(rf"\s*{re.escape(key)}\s*[=:]", line, re.IGNORECASE):
                return f"{self._path}:{number}"
        return str(self._path)


def _first_words(error: configparser.Error) -> str:
    if isinstance(error, configparser.MissingSectionHeaderError):
        return "text stands before the first [section]"
    if isinstance(error, configparser.DuplicateOptionError):
        return f"{error.option} stands there twice"
    if isinstance(error, configparser.DuplicateSectionError):
        return f"[{error.section}] stands there twice"
    return "this line is neither [section] nor key = value"
