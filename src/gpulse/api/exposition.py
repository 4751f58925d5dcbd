"""Figures as text for Prometheus: its own format 0.0.4, or OpenMetrics 1.0."""

import zlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from gpulse.api.turns import Turn

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_LONGEST_VALUE = 200
# So many samples are made into text and packed at once: a millisecond or two.
_AT_ONCE = 2000
_GZIP = 16 + zlib.MAX_WBITS


@dataclass(frozen=True, eq=False)
class Family:
    """A metric: its name as one queries it, what kind it is, and what it means."""

    name: str
    kind: Literal["gauge", "counter", "info"]
    help: str
    # The labels of its samples.
    labels: tuple[str, ...] = ()


class Samples:
    """The samples of one family, in little room: there may be a hundred thousand."""

    __slots__ = ("labels", "values")

    def __init__(self) -> None:
        self.labels: list[str] = []
        self.values = array("d")


class Sheet:
    """What is to be told, by family; families without samples are not told."""

    def __init__(self) -> None:
        self._samples: dict[Family, Samples] = {}

    def samples(self, family: Family) -> Samples:
        found = self._samples.get(family)
        if found is None:
            found = self._samples[family] = Samples()
        return found

    def add(self, family: Family, labels: str, value: float | None) -> None:
        """One sample; what is unknown, or larger than any number that can be told, is left out."""
        if value is None:
            return
        samples = self.samples(family)
        try:
            samples.values.append(value)
        except OverflowError:
            return
        samples.labels.append(labels)

    async def packed(self, media: str) -> bytes:
        """All of it, gzipped; plain it would be fifteen times as much. The sheet is empty after it."""
        squeezer = zlib.compressobj(1, wbits=_GZIP)
        turn = Turn()
        pieces = []
        for family in tuple(self._samples):
            # Let go of one at a time: to give back a million samples takes long, too.
            samples = self._samples.pop(family)
            if samples.values:
                pieces.append(squeezer.compress(_head(family, media == OPENMETRICS).encode()))
                for text in _texts(family, samples):
                    pieces.append(squeezer.compress(text.encode("utf-8", "replace")))
                    await turn.give()
        if media == OPENMETRICS:
            pieces.append(squeezer.compress(b"# EOF\n"))
        return b"".join([*pieces, squeezer.flush()])


def labels(**values: str | None) -> str:
    """As they stand behind a name; what is unknown is left out."""
    told = [f'{name}="{escaped(value)}"' for name, value in values.items() if value]
    return "{" + ",".join(told) + "}" if told else ""


def escaped(value: str) -> str:
    return value[:_LONGEST_VALUE].replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _head(family: Family, openmetrics: bool) -> str:
    name, kind = family.name, family.kind
    if openmetrics and kind in ("counter", "info"):
        name = name.removesuffix("_total").removesuffix("_info")
    elif kind == "info":
        kind = "gauge"
    return f"# HELP {name} {family.help}\n# TYPE {name} {kind}\n"


def _texts(family: Family, samples: Samples) -> Iterator[str]:
    pairs = zip(samples.labels, samples.values, strict=True)
    name = family.name
    while text := "".join([f"{name}{told} {value!r}\n" for told, value in islice(pairs, _AT_ONCE)]):
        yield text
