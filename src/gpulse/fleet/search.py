"""A filter on its way through the fleet: columns decide on all rows at once, then node by node what they cannot."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gpulse.fleet.filter import Filter
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.roster import Rows
from gpulse.fleet.terms import Mask, OfNode


class Search:
    """Take its steps, then read `rows`; between steps others may have the loop and the fleet may change."""

    def __init__(self, fleet: Fleet, filter_: Filter):
        self._fleet = fleet
        self._filter = filter_
        self.roster = fleet.roster()
        self._found: Mask = np.ones(len(self.roster), np.bool_)

    @property
    def rows(self) -> Rows:
        """Those of the roster that match, in its order."""
        return np.flatnonzero(self._found)

    def steps(self) -> Iterator[None]:
        roster, fleet = self.roster, self._fleet
        if self._filter.about_states:
            counted = roster.of_gpus(fleet.gpu_columns.counted)
            self._found &= counted | ~roster.has_gpu
        for term in self._filter.terms:
            if term.by_columns is not None:
                self._found &= term.by_columns(fleet, roster) ^ term.negated
        yield
        slow = [(term.of_node, term.negated) for term in self._filter.terms if term.of_node is not None]
        if slow:
            yield from self._look(slow)

    def all(self) -> Rows:
        """The rows, at one go."""
        for _ in self.steps():
            continue
        return self.rows

    def _look(self, terms: list[tuple[OfNode, bool]]) -> Iterator[None]:
        """Node by node; arrays are touched once at the end, as each time takes longer than most decisions."""
        roster = self.roster
        whole = np.zeros(len(roster.nodes), np.bool_)
        in_part: list[tuple[int, list[bool]]] = []
        counts = roster.counts.tolist()
        for number in np.unique(roster.node[self._found]).tolist():
            node, count = roster.nodes[number], counts[number]
            verdict: bool | list[bool] = True
            for of_node, negated in terms:
                # A node may have megabytes of text, so that even one takes several steps.
                yield
                # It may have got other GPUs meanwhile: whoever asks again finds them. Without GPUs none can hold.
                fits = len(node.gpus) == count
                told = (of_node(self._fleet, node) if fits else False) or False
                if told is negated or not fits:
                    verdict = False
                    break
                if isinstance(told, list):
                    holds = [one is not negated for one in told]
                    both = zip(verdict, holds, strict=True) if isinstance(verdict, list) else None
                    verdict = holds if both is None else [a and b for a, b in both]
            if verdict is True:
                whole[number] = True
            elif verdict is not False:
                in_part.append((number, verdict))
        found = whole[roster.node]
        for number, places in in_part:
            found[roster.first[number] : roster.first[number + 1]] = places
        self._found &= found
