"""The last two updates of a node, as they came; decoded when they are read."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec
from msgspec.json import Decoder

from gpulse.fleet.updates import Parts
from gpulse.fleet.weight import is_too_heavy

Part = Literal["host", "gpus", "processes", "uses"]
# On arrival the rest of a line was only skipped: that it is well-formed is seen when it is read.
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_decode = Decoder(Parts).decode


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

    def reader(self, before: bool = False) -> "Reader":
        """The columns of the last update, or of the one before it."""
        line = self._before if before else self._last
        if line is None:
            return Reader(Parts(), self._lies)
        try:
            return Reader(_decode(line), self._lies)
        except _UNREADABLE as error:
            self._lies(str(error))
            return Reader(Parts(), self._lies)


class Reader:
    """The columns of one update."""

    def __init__(self, parts: Parts, lies: Callable[[str], None]) -> None:
        self._parts = parts
        self._lies = lies

    def columns(self, part: Part, decoders: Mapping[str, Decoder[Any]], count: int | None) -> dict[str, Any]:
        """A part by field; `count` is how many values each must have. What is not as the schema says is left out."""
        found = {}
        for name, raw in getattr(self._parts, part).items():
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
