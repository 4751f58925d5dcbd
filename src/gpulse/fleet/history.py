"""The last two updates of a node, as they came; decoded when they are read."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec.json import Decoder

from gpulse.fleet.updates import PART_DECODERS, Part
from gpulse.fleet.weight import is_too_heavy

# On arrival the rest of a line was only skipped: that it is well-formed is seen when it is read.
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class History:
    """What the last update says, and the one before it, by which rates are made."""

    __slots__ = ("_before", "_last", "_lies")

    def __init__(self, lies: Callable[[str], None]) -> None:
        """`lies` is told of what is not as the schema says."""
        self._last: bytes | None = None
        self._before: bytes | None = None
        self._lies = lies

    def __bool__(self) -> bool:
        return self._last is not None

    def add(self, line: bytes) -> None:
        self._before, self._last = self._last, line

    def mentions(self, *words: bytes) -> bool:
        """Whether the last update may have one of these; cheaper than to read it. Any letter may be written as \\u…"""
        line = self._last
        return line is not None and (b"\\u" in line or any(word in line for word in words))

    def columns(
        self, part: Part, decoders: Mapping[str, Decoder[Any]], count: int | None, before: bool = False
    ) -> dict[str, Any]:
        """A part of the last update, or of the one before it, by field; `count` is how many values each must have.

        What is not as the schema says is left out.
        """
        line = self._before if before else self._last
        if line is None:
            return {}
        try:
            told = PART_DECODERS[part].decode(line)
        except _UNREADABLE as error:
            self._lies(str(error))
            return {}
        found = {}
        for name, raw in getattr(told, part).items():
            decoder = decoders.get(name)
            if decoder is None:
                continue
            try:
                if count is not None and is_too_heavy(bytes(raw), count):
                    raise msgspec.ValidationError(f"far more values than {count}")
                value = decoder.decode(raw)
                if count is not None and len(value) != count:
                    raise msgspec.ValidationError(f"{len(value)} values for {count}")
            except _UNREADABLE as error:
                self._lies(f"{name}: {error}")
            else:
                found[name] = value
        return found
