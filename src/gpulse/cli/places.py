"""GPUs as people name them on the command line: gpu03:0-3, gpu[01-04], gpu03:0.2; and how they are named back."""

import re
from collections.abc import Iterable, Sequence

import msgspec

from gpulse.errors import GpulseError
from gpulse.fleet.names import natural
from gpulse.fleet.node_sets import NodeSet

_INDEX = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4})|\.([0-9]{1,4}))?", re.ASCII)
# Those inside brackets are of a set of nodes.
_COMMA = re.compile(r",(?![^\[]*\])")
_MOST = 10_000


class Gpu(msgspec.Struct):
    """A place, as the hub tells of it and takes it."""

    node: str
    index: str | None = None


def parse(words: Sequence[str]) -> list[Gpu]:
    """A node alone stands for all its GPUs. GpulseError where a word is no place."""
    found = [gpu for word in words for part in _parts(word) for gpu in _parse_one(part)]
    if len(found) > _MOST:
        raise GpulseError(f"{len(found)} GPUs are more than can be reserved at once")
    return found


def _parts(word: str) -> list[str]:
    """gpu03:0-3,gpu04:1 are two, as no index has a colon; gpu03,gpu04:1 is the same GPU of both nodes."""
    parts: list[str] = []
    for part in _COMMA.split(word):
        if parts and not (":" in part and ":" in parts[-1]):
            parts[-1] += f",{part}"
        else:
            parts.append(part)
    return parts


def _parse_one(word: str) -> list[Gpu]:
    nodes, colon, indexes = word.rpartition(":")
    if not colon:
        return [Gpu(node) for node in _nodes(word)]
    return [Gpu(node, index) for node in _nodes(nodes) for index in _indexes(word, indexes)]


def _nodes(text: str) -> list[str]:
    if "[" not in text and "," not in text and text:
        return [text]
    return sorted(NodeSet("", text).names(), key=natural)


def _indexes(word: str, text: str) -> list[str]:
    found: list[str] = []
    for part in text.split(","):
        match = _INDEX.fullmatch(part.strip())
        if match is None:
            example = "gpu03:0, gpu03:0-3, gpu03:0,2 or gpu03:0.2, with a blank before another node"
            raise GpulseError(f"{word!r} is no GPU; write it like {example}")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise GpulseError(f"{word!r}: {part} counts backwards; write it like gpu03:0-3")
        found += [f"{first}.{int(match[3])}"] if match[3] else [str(number) for number in range(first, last + 1)]
    return found


def text_of(gpus: Iterable[Gpu]) -> str:
    """gpu03:0-3 gpu04:0,2"""
    by_node: dict[str, list[str]] = {}
    for gpu in gpus:
        by_node.setdefault(gpu.node, []).append(gpu.index or "")
    return " ".join(f"{node}:{_ranges(indexes)}" for node, indexes in by_node.items())


def _ranges(indexes: list[str]) -> str:
    runs: list[list[int]] = []
    others: list[str] = []
    for index in indexes:
        if not index.isdecimal():
            others.append(index)
        elif runs and runs[-1][-1] + 1 == int(index):
            runs[-1].append(int(index))
        else:
            runs.append([int(index)])
    told = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return ",".join([*told, *others])
