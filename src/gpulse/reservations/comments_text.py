"""The text of a comments.json: bytes of any origin made text, // comments left out, each slot with its line."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from gpulse.errors import RequestError

# A quoted text, up to the end of the file where it is not closed; or the beginning of a comment. Neither is read again
# once it was read: the time grows with the file, whatever is in it.
_QUOTED_OR_COMMENT = re.compile(r'"(?:[^"\\]++|\\.)*+|//|/\*', re.DOTALL)
# More GPUs than such files are kept for. The answer has a hundred times as many bytes as the shortest entry.
MOST_SLOTS = 50_000
_BLANK = re.compile(r"[\s,]*")
_SPACE = re.compile(r"\s*")


class Slot(NamedTuple):
    """What stands for one GPU: of a list the index is the position."""

    node: str
    index: str  # type: ignore[assignment]  # it hides tuple.index, which nobody asks of a slot
    # Of the file, counted from one.
    line: int
    value: Any


class Twice(NamedTuple):
    """A value whose keys were not each given once; the first of them."""

    key: str


def decode(data: bytes) -> str:
    """UTF-8, line by line what is not is Windows' or plain Latin-1: files grow under many hands."""
    return "\n".join(_decoded(line) for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n"))


def _decoded(line: bytes) -> str:
    for encoding in ("utf-8", "cp1252"):
        try:
            return line.decode(encoding)
        except UnicodeDecodeError:
            continue
    return line.decode("latin-1")


def without_comments(text: str) -> str:
    """Put blanks in their place, so everything else stays where it is. A comment without an end is a mistake."""
    pieces: list[str] = []
    at = 0
    while found := _QUOTED_OR_COMMENT.search(text, at):
        if found[0].startswith('"'):
            # With its closing quote, or the rest of the file.
            end = found.end() + 1
            pieces.append(text[at:end])
        else:
            end = _end_of_comment(text, found)
            pieces += [text[at : found.start()], _blank(text[found.start() : end])]
        at = end
    return "".join([*pieces, text[at:]])


def _end_of_comment(text: str, opening: re.Match[str]) -> int:
    if opening[0] == "//":
        end = text.find("\n", opening.end())
        return len(text) if end < 0 else end
    end = text.find("*/", opening.end())
    if end < 0:
        raise _bad(text.count("\n", 0, opening.start()) + 1, "a comment begins here, /*, and */ is missing")
    return end + 2


def _blank(comment: str) -> str:
    return "\n".join([" " * len(line) for line in comment.split("\n")])


def slots(text: str) -> list[Slot]:
    """In the order of the file; RequestError names the line where it is not as it should be."""
    found: list[Slot] = []
    for slot in _Walk(without_comments(text.removeprefix("\ufeff"))).slots():
        if len(found) == MOST_SLOTS:
            raise _bad(slot.line, f"the file has more than {MOST_SLOTS:,} entries; split it")
        found.append(slot)
    return found


class _Walk:
    """Goes through hosts and slots itself, so that it knows where each begins; what is in them json reads."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._decoder = json.JSONDecoder(strict=False, object_pairs_hook=_once)
        # Lines that have been counted, and up to where.
        self._counted = (0, 1)

    def slots(self) -> Iterator[Slot]:
        self._skip(_SPACE)
        if not self._take("{"):
            raise self._wrong("a dictionary of hosts should begin here: {")
        while not self._ended("}"):
            line, node = self._line(), self._key("the name of a host")
            if self._take("["):
                yield from self._list(node)
            elif self._take("{"):
                yield from self._dictionary(node)
            else:
                yield Slot(node, "", line, self._value())
        self._skip(_SPACE)
        if self._at < len(self._text):
            raise self._wrong("nothing should follow here")

    def _list(self, node: str) -> Iterator[Slot]:
        index = 0
        while not self._ended("]"):
            yield Slot(node, str(index), self._line(), self._value())
            index += 1

    def _dictionary(self, node: str) -> Iterator[Slot]:
        while not self._ended("}"):
            line, index = self._line(), self._key("the index of a GPU")
            yield Slot(node, index, line, self._value())

    def _ended(self, bracket: str) -> bool:
        """Also where a comma stands before it, as in files that people edit."""
        self._skip(_BLANK)
        if self._at == len(self._text):
            raise self._wrong(f"the file ends before a {bracket}")
        return self._take(bracket)

    def _key(self, what: str) -> str:
        if not self._text.startswith('"', self._at):
            raise self._wrong(f"{what} should stand here, in quotes")
        key = str(self._value())
        self._skip(_SPACE)
        if not self._take(":"):
            raise self._wrong(f"a colon should follow {what}")
        self._skip(_SPACE)
        return key

    def _value(self) -> Any:
        try:
            value, self._at = self._decoder.raw_decode(self._text, self._at)
        except json.JSONDecodeError as error:
            self._at = max(error.pos, self._at)
            raise self._wrong(error.msg[:1].lower() + error.msg[1:]) from None
        except (ValueError, RecursionError):
            raise self._wrong("no reservation looks like this") from None
        return value

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self._text, self._at)
        self._at = match.end() if match else self._at

    def _take(self, token: str) -> bool:
        if not self._text.startswith(token, self._at):
            return False
        self._at += len(token)
        return True

    def _line(self) -> int:
        at, line = self._counted
        self._counted = (self._at, line + self._text.count("\n", at, self._at))
        return self._counted[1]

    def _wrong(self, what: str) -> RequestError:
        return _bad(self._line(), what)


def _bad(line: int, what: str) -> RequestError:
    return RequestError(
        422, "bad_comments", f"line {line} of the file: {what}", "nothing was changed; mend it and try again"
    )


def _once(pairs: list[tuple[str, Any]]) -> Any:
    told = dict(pairs)
    if len(told) == len(pairs):
        return told
    counts = Counter(key for key, _ in pairs)
    return Twice(next(key for key, count in counts.items() if count > 1))
