"""On which line of a TOML text each key and list item stands; tomllib reads values, not places."""

import re
import tomllib
from bisect import bisect_right
from itertools import accumulate

Path = tuple[str | int, ...]

_SKIP = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BLANKS = re.compile(r"[ \t]*")
_KEY = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'""")
_SCALAR = re.compile(
    r'''"""(?:[^\\"]|\\.|"{1,2}(?!"))*"{3,5}'''
    r"""|'''(?:[^']|'{1,2}(?!'))*'{3,5}"""
    r"""|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s,\]}#][^,\]}#\n]*""",
    re.DOTALL,
)


def find_lines(text: str) -> dict[Path, int]:
    """The line of every table, key and item; the text is one that tomllib has read without complaint."""
    return _Scan(text).lines


class _Scan:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
        self._counts: dict[Path, int] = {}
        self.lines: dict[Path, int] = {}
        table: Path = ()
        self._skip()
        while self._at < len(text):
            if self._take("[["):
                table = self._header(many=True)
            elif self._take("["):
                table = self._header(many=False)
            else:
                self._pair(table)
            self._skip()

    def _skip(self) -> None:
        match = _SKIP.match(self._text, self._at)
        self._at = match.end() if match else self._at

    def _take(self, token: str) -> bool:
        if not self._text.startswith(token, self._at):
            return False
        self._at += len(token)
        return True

    def _mark(self, path: Path) -> None:
        self.lines.setdefault(path, bisect_right(self._starts, self._at))

    def _keys(self) -> list[str]:
        keys: list[str] = []
        while True:
            self._blanks()
            match = _KEY.match(self._text, self._at)
            if match is None:
                return keys
            written = match[0]
            keys.append(tomllib.loads("k=" + written)["k"] if written[0] in "\"'" else written)
            self._at = match.end()
            self._blanks()
            if not self._take("."):
                return keys

    def _blanks(self) -> None:
        match = _BLANKS.match(self._text, self._at)
        self._at = match.end() if match else self._at

    def _header(self, many: bool) -> Path:
        keys = self._keys()
        path: Path = ()
        for number, key in enumerate(keys, 1):
            path += (key,)
            if many and number == len(keys):
                self._mark(path)
                self._counts[path] = self._counts.get(path, 0) + 1
            if path in self._counts:
                # A header speaks of the newest table of a list.
                path += (self._counts[path] - 1,)
            self._mark(path)
        self._at = self._text.find("]", self._at) + (2 if many else 1)
        return path

    def _pair(self, table: Path) -> None:
        path = table
        for key in self._keys():
            path += (key,)
            self._mark(path)
        self._blanks()
        if not self._take("="):
            # Nothing tomllib accepts leads here; without this a mistake of ours would turn for ever.
            self._at = len(self._text)
            return
        self._blanks()
        self._value(path)

    def _value(self, path: Path) -> None:
        if self._take("["):
            number = 0
            self._skip()
            while self._at < len(self._text) and not self._take("]"):
                self._mark((*path, number))
                self._value((*path, number))
                number += 1
                self._skip()
                self._take(",")
                self._skip()
        elif self._take("{"):
            self._skip()
            while self._at < len(self._text) and not self._take("}"):
                self._pair(path)
                self._skip()
                self._take(",")
                self._skip()
        else:
            match = _SCALAR.match(self._text, self._at)
            self._at = match.end() if match else len(self._text)
