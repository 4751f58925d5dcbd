"""Columns in two layers, the last line's over all before it, so that every counter has a value before for nothing."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec.json import Decoder

from gpulse.fleet.updates import MOST_COLUMNS, RawColumns

_NOTHING: RawColumns = {}


class Layers:
    """Raw columns of one kind of thing: decoded and checked when they are read."""

    __slots__ = ("before", "newest")

    def __init__(self) -> None:
        self.newest: RawColumns = _NOTHING
        self.before: RawColumns = {}

    def add(self, changed: RawColumns | None) -> None:
        """The columns of a new line. The one before sinks into the rest."""
        if self.newest:
            self.before.update(self.newest)
        self.newest = changed or _NOTHING

    def too_many(self) -> bool:
        return len(self.newest) > MOST_COLUMNS or len(self.before) > MOST_COLUMNS

    def read(
        self,
        decoders: Mapping[str, Decoder[Any]],
        count: int | None,
        lies: Callable[[str], None],
        before: bool = False,
    ) -> dict[str, Any]:
        """All columns as of now, or as of the line before. `count` is how many values each must have.

        One that is not what the schema says is told to `lies`, once, and is unknown from then on.
        """
        layers = (self.before,) if before else (self.before, self.newest)
        found: dict[str, Any] = {}
        for layer in layers:
            bad = []
            for name, raw in layer.items():
                decoder = decoders.get(name)
                if decoder is None:
                    continue
                try:
                    value = decoder.decode(raw)
                    if count is not None and len(value) != count:
                        raise msgspec.ValidationError(f"{len(value)} values for {count}")
                except msgspec.MsgspecError as error:
                    bad.append(name)
                    lies(f"{name}: {error}")
                else:
                    found[name] = value
            for name in bad:
                del layer[name]
        return found
