"""Places in short, as in commands: gpu03:0-3,5 gpu04:0.2."""

from collections.abc import Iterable
from itertools import groupby

from gpulse.reservations.model import Place, in_order


def places_text(places: Iterable[Place]) -> str:
    return " ".join(node_texts(places))


def node_texts(places: Iterable[Place]) -> list[str]:
    """A text for each node."""
    by_node = groupby(in_order(places), key=lambda place: place.node)
    return [f"{node}:{_ranges([place.index for place in some])}" for node, some in by_node]


def _ranges(indices: list[str]) -> str:
    told: list[list[str]] = []
    for index in indices:
        last = told[-1][-1] if told else ""
        if index.isdecimal() and last.isdecimal() and int(index) == int(last) + 1:
            told[-1].append(index)
        else:
            told.append([index])
    return ",".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in told)
