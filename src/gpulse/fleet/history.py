"""The updates of one node since its last full Snapshot: kept as they came, decoded when they are read."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec
from msgspec.json import Decoder

from gpulse.fleet.updates import MOST_COLUMNS, RawColumns, Update

Part = Literal["host", "gpus", "processes", "uses"]
_PARTS: tuple[Part, ...] = ("host", "gpus", "processes", "uses")


class History:
    """What the updates say now, and what they said before the last of them.

    The last one is kept apart from all before it, so that every counter has its value of the line before.
    """

    __slots__ = ("_last", "_lies", "gpus", "host", "processes", "uses")

    def __init__(self, lies: Callable[[str], None]) -> None:
        """`lies` is told of what is not as the schema says."""
        self.host: RawColumns = {}
        self.gpus: RawColumns = {}
        self.processes: RawColumns = {}
        self.uses: RawColumns = {}
        self._last: Update | None = None
        self._lies = lies

    def __bool__(self) -> bool:
        return self._last is not None

    def add(self, update: Update) -> None:
        # Written out: this runs for every line of every node.
        last = self._last
        if last is not None:
            if last.host:
                self.host.update(last.host)
            if last.gpus:
                self.gpus.update(last.gpus)
            if last.processes:
                self.processes.update(last.processes)
            if last.uses:
                self.uses.update(last.uses)
            for part in _PARTS:
                if len(getattr(self, part)) > MOST_COLUMNS:
                    self._lies(f"more than {MOST_COLUMNS} fields of {part}")
                    setattr(self, part, {})
        self._last = update

    def read(
        self, part: Part, decoders: Mapping[str, Decoder[Any]], count: int | None, before: bool = False
    ) -> dict[str, Any]:
        """The part's columns as of now, or as of the line before. `count` is how many values each must have.

        One that is not what the schema says is unknown.
        """
        found = {}
        raw: RawColumns = getattr(self, part)
        if not before and self._last is not None:
            raw = {**raw, **(getattr(self._last, part) or {})}
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
