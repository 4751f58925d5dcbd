"""The updates of one node since its last full Snapshot: merged when there are some, decoded when they are read."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec
from msgspec.json import Decoder

from gpulse.fleet.updates import MOST_COLUMNS, RawColumns, Update

Part = Literal["host", "gpus", "processes", "uses"]
_PARTS: tuple[Part, ...] = ("host", "gpus", "processes", "uses")
# Merging some at once is cheaper than one by one, as the node's data are then at hand.
_MOST_WAITING = 8
_decode = Decoder(RawColumns | None).decode


class History:
    """What the updates say now, and what they said before the last of them."""

    __slots__ = ("_lies", "_merged", "_waiting")

    def __init__(self, lies: Callable[[str], None]) -> None:
        """`lies` is told of what is not as the schema says."""
        self._merged: dict[Part, RawColumns] = {part: {} for part in _PARTS}
        self._waiting: list[Update] = []
        self._lies = lies

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, update: Update) -> None:
        if len(self._waiting) >= _MOST_WAITING:
            self._merge()
        self._waiting.append(update)

    def read(
        self, part: Part, decoders: Mapping[str, Decoder[Any]], count: int | None, before: bool = False
    ) -> dict[str, Any]:
        """The part's columns as of now, or as of the line before. `count` is how many values each must have.

        One that is not what the schema says is unknown.
        """
        self._merge()
        found = {}
        raw = self._merged[part]
        if not before and self._waiting:
            raw = {**raw, **self._columns(self._waiting[-1], part)}
        for name, column in raw.items():
            decoder = decoders.get(name)
            if decoder is None:
                continue
            try:
                value = decoder.decode(column)
                if count is not None and len(value) != count:
                    raise msgspec.ValidationError(f"{len(value)} values for {count}")
            except msgspec.MsgspecError as error:
                self._lies(f"{name}: {error}")
            else:
                found[name] = value
        return found

    def _merge(self) -> None:
        """Put all updates but the last together."""
        for update in self._waiting[:-1]:
            for part in _PARTS:
                merged = self._merged[part]
                merged.update(self._columns(update, part))
                if len(merged) > MOST_COLUMNS:
                    self._lies(f"more than {MOST_COLUMNS} fields of {part}")
                    merged.clear()
        del self._waiting[:-1]

    def _columns(self, update: Update, part: Part) -> RawColumns:
        try:
            return _decode(getattr(update, part)) or {}
        except msgspec.MsgspecError as error:
            self._lies(f"{part}: {error}")
            return {}
