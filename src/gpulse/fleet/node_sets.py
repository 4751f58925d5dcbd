"""Sets of nodes as HPC people type them, gpu[01-16,20]: written out, within limits."""

import re

from ClusterShell.NodeSet import (  # type: ignore[import-untyped]  # ClusterShell has no types
    RESOLVER_NOGROUP,
    NodeSet,
    NodeSetException,
)

from gpulse.errors import FilterError

# ClusterShell keeps every name of a range in memory.
MOST_NODES = 100_000
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})(?:/[0-9]{1,9})?)?", re.ASCII)


def expand(key: str, value: str) -> frozenset[str]:
    """The names; FilterError tells what is wrong with them, `key` is what stands before them: "node:", "nodes="."""
    term = key + value
    size = 0
    # Commas inside brackets list ranges, those outside list patterns.
    for pattern in re.split(r",(?![^\[]*\])", value):
        of_pattern = 1
        for inside in re.findall(r"\[([^\]]*)\]", pattern):
            of_pattern *= sum(_length(term, part) for part in inside.split(","))
        size += of_pattern
    if size > MOST_NODES:
        raise FilterError(f'"{term}" names more than {MOST_NODES:,} nodes; write a smaller range')
    try:
        names = frozenset(str(name) for name in NodeSet(value, resolver=RESOLVER_NOGROUP))
    except NodeSetException as error:
        raise FilterError(f'"{term}" is not a set of nodes ({error}); write it like {key}gpu[01-16,20]') from error
    if not names:
        raise FilterError(f'"{term}" names no node; write it like {key}gpu[01-16,20]')
    return names


def _length(term: str, part: str) -> int:
    match = _RANGE.fullmatch(part)
    if match is None:
        raise FilterError(f'"{term}": "{part}" is not a number or a range of at most nine digits, such as 01-16')
    first, last = match[1], match[2] or match[1]
    return max(0, int(last) - int(first)) + 1
