"""Who holds what now, put together node by node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulse.fleet import state
from gpulse.fleet.node import Node
from gpulse.fleet.sight import Sight
from gpulse.fleet.views import PersonView

if TYPE_CHECKING:
    from gpulse.fleet.fleet import Fleet


class Holdings:
    """`add` every node, in natural order; then `people` tells of all that `sight` names."""

    def __init__(self, fleet: Fleet, sight: Sight):
        self._fleet = fleet
        self._sight = sight
        self._others: set[str] = set()
        self._found: dict[str, PersonView] = {}

    def add(self, node: Node) -> None:
        fleet, found, sight = self._fleet, self._found, self._sight
        if not node.processes or fleet.node_columns.state[node.slot] in (state.DOWN_NODE, state.NEW):
            # Of a node that is not there nobody knows who is on it now.
            return
        states = fleet.gpu_columns.state[node.start : node.start + node.count].tolist()
        busy = {gpu.uuid for gpu, code in zip(node.gpus, states, strict=True) if code == state.BUSY}
        called = fleet.people_names.called
        held: dict[str, set[str | None]] = {}
        # Another node of the same machine counts these, and who is on them.
        elsewhere = {gpu.uuid for gpu, is_there in zip(node.gpus, node.elsewhere, strict=True) if is_there}
        for process, size in zip(node.processes, node.held_memory(), strict=True):
            person = called(process.user)
            if not person or not process.gpus or (elsewhere and elsewhere.issuperset(use.uuid for use in process.gpus)):
                continue
            if not sight.names(process.user):
                self._others.add(person)
                continue
            view = found.get(person)
            if view is None:
                view = found[person] = PersonView(
                    person=person, gpus=0, busy_gpus=0, memory_bytes=None, processes=0, nodes=[]
                )
            view.processes += 1
            if size is not None:
                view.memory_bytes = (view.memory_bytes or 0) + size
            held.setdefault(person, set()).update(use.uuid for use in process.gpus)
        for person, uuids in held.items():
            found[person].gpus += len(uuids)
            found[person].busy_gpus += len(uuids & busy)
            found[person].nodes.append(node.place.name)

    def people(self) -> list[PersonView]:
        """Those with most GPUs first."""
        return sorted(self._found.values(), key=lambda view: (-view.gpus, -(view.memory_bytes or 0), view.person))

    @property
    def others(self) -> int:
        """How many there are beside them."""
        return len(self._others)
