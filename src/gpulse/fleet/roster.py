"""All GPUs of the fleet in natural order, and the nodes that have none: the rows on which a filter decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gpulse.fleet.node import Node

Kind = TypeVar("Kind", bound=np.generic)
Rows = NDArray[np.int64]


class Roster:
    """A row for each GPU, and one for each node without GPUs; as of one layout of the fleet."""

    def __init__(self, nodes: Sequence[Node]):
        self.nodes = nodes
        starts = np.array([node.start for node in nodes], np.int64)
        # How many GPUs each node had, whatever becomes of it while somebody goes through the rows.
        self.counts = np.array([node.count for node in nodes], np.int64)
        rows = np.maximum(self.counts, 1)
        # Where the rows of each node begin, and behind the last of them.
        self.first = np.concatenate([[0], np.cumsum(rows)])
        # By row, the number of its node and its place on that.
        self.node: Rows = np.repeat(np.arange(len(nodes)), rows)
        self.place: Rows = np.arange(len(self.node)) - self.first[self.node]
        self.has_gpu = self.counts[self.node] > 0
        # By row; of a node without GPUs any slot, as has_gpu tells.
        self.slot: Rows = np.where(self.has_gpu, starts[self.node] + self.place, 0)
        self._node_slot = np.array([node.slot for node in nodes], np.int64)

    def __len__(self) -> int:
        return len(self.node)

    def of_gpus(self, column: NDArray[Kind]) -> NDArray[Kind]:
        """A column of GPUs by row; only where `has_gpu`."""
        return column[self.slot] if len(column) else np.zeros(len(self), column.dtype)

    def of_nodes(self, column: NDArray[Kind]) -> NDArray[Kind]:
        """A column of nodes, in the order of `nodes`."""
        return column[self._node_slot]

    def by_node(self, rows: Rows) -> Iterator[tuple[Node, list[int]]]:
        """Nodes with the places of these rows, which are in order; the one row of a node without GPUs has none."""
        if not len(rows):
            return
        numbers = self.node[rows]
        starts = np.concatenate([[0], np.flatnonzero(np.diff(numbers)) + 1])
        ends = [*starts[1:].tolist(), len(rows)]
        places = self.place[rows].tolist()
        has_gpu = self.has_gpu[rows[starts]].tolist()
        for start, end, number, has in zip(starts.tolist(), ends, numbers[starts].tolist(), has_gpu, strict=True):
            yield self.nodes[number], places[start:end] if has else []
