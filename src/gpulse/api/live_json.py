"""Live frames as JSON: the first nodes that match a filter, then what changed of them."""

import re
import time

import msgspec
import numpy as np

from gpulse.api.hub import Hub
from gpulse.api.selection import each_node, matching, select
from gpulse.fleet.filter import Filter
from gpulse.fleet.sight import Sight
from gpulse.fleet.views import NodeView, Summary

_GROWS = re.compile(rb'"(?:devices_age|age|idle)_seconds":[^,}]*')
_encode = msgspec.json.Encoder().encode


class FullFrame(msgspec.Struct, kw_only=True, tag_field="type", tag="full"):
    """Everything; the first frame, and the next one for a listener that was too slow."""

    generation: int
    time: float
    title: str
    notices: list[str]
    summary: Summary
    # Grows when reservations change, or what is found about them.
    reservations: int
    # How many nodes match; `nodes` has the first of them.
    total: int
    nodes: list[msgspec.Raw]


class DeltaFrame(msgspec.Struct, kw_only=True, tag_field="type", tag="delta"):
    """What changed since the frame before. Nodes that are not in it are as they were, only older."""

    generation: int
    time: float
    notices: list[str]
    summary: Summary
    reservations: int
    total: int
    nodes: list[msgspec.Raw]
    removed: list[str]


class JsonSource:
    """Frames of the nodes that match, each with its GPUs that match."""

    def __init__(self, hub: Hub, filter_: Filter, text: str, limit: int, sight: Sight):
        self._hub = hub
        self._filter = filter_
        self._everything = not text.strip()
        self._limit = limit
        self._sight = sight
        self._told: dict[str, tuple[int, float]] = {}
        self._nodes: dict[str, bytes] = {}
        self._total = 0
        self._full: str | None = None
        self._delta: str | None = None

    async def step(self) -> None:
        nodes: dict[str, bytes] = {}
        told: dict[str, tuple[int, float]] = {}
        changed: list[str] = []
        for node in await self._take():
            text = _encode(node)
            # Every node grows older with every tick: that alone is no news. In JSON a key cannot occur in a string.
            content = hash(_GROWS.sub(b"", text))
            age = node.age_seconds or 0.0
            earlier = self._told.get(node.name)
            if earlier is None or earlier[0] != content or age < earlier[1]:
                changed.append(node.name)
            nodes[node.name] = text
            told[node.name] = (content, age)
        removed = [name for name in self._told if name not in told]
        self._nodes, self._told = nodes, told
        self._full = None
        delta = DeltaFrame(
            generation=self._hub.fleet.generation,
            time=round(time.time(), 3),
            notices=list(self._hub.notices()),
            summary=self._hub.fleet.summary(),
            reservations=self._hub.fleet.reservations,
            total=self._total,
            nodes=[msgspec.Raw(nodes[name]) for name in changed],
            removed=removed,
        )
        self._last = delta
        self._delta = _encode(delta).decode()

    def full(self) -> str:
        if self._full is None:
            last = self._last
            frame = FullFrame(
                generation=last.generation,
                time=last.time,
                title=self._hub.title,
                notices=last.notices,
                summary=last.summary,
                reservations=last.reservations,
                total=last.total,
                nodes=[msgspec.Raw(text) for text in self._nodes.values()],
            )
            self._full = _encode(frame).decode()
        return self._full

    def delta(self) -> str | None:
        return self._delta

    async def _take(self) -> list[NodeView]:
        fleet = self._hub.fleet
        if self._everything:
            names = fleet.names()
            self._total = len(names)
            return [node async for node in each_node(fleet, names[: self._limit], self._sight)]
        roster, rows = await select(fleet, self._filter)
        numbers = roster.node[rows]
        first = np.unique(numbers)[: self._limit]
        self._total = len(np.unique(numbers))
        shown = rows[np.isin(numbers, first)]
        found = matching(fleet, roster, shown, self._sight)
        return [msgspec.structs.replace(node, gpus=gpus) async for node, gpus in found]
