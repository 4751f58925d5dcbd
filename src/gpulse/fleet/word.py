"""A plain word of a filter: a part of what people see of a node, its GPUs and their processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpulse.fleet.jobs import job_of
from gpulse.fleet.model import Process
from gpulse.fleet.node import Node
from gpulse.fleet.node_facts import facts
from gpulse.fleet.seeing import seen_one
from gpulse.fleet.sight import SOMEBODY, Sight

if TYPE_CHECKING:
    from gpulse.fleet.fleet import Fleet


class Word:
    """Looks through one node at a time; most do not have the word, which is seen at one glance."""

    def __init__(self, word: str, sight: Sight):
        self._word = word
        self._sight = sight
        # Not of what nodes tell, but of what is told instead.
        self._of_somebody = sight.level == "anonymous" and word in SOMEBODY

    def __call__(self, fleet: Fleet, node: Node, /) -> bool | list[bool]:
        known = facts(fleet, node)
        # Of all texts only the name of a process may come with an update.
        if self._word not in known.text and not self._of_somebody and not node.mentions(b'"name"'):
            return False
        place = node.place
        if self._among(place.name, place.display_name, place.group, place.rack):
            return True
        kinds = {kind for kind in known.kinds if self._among(*kind, fleet.model(kind[0]))}
        held = self._held(fleet, node)
        return [
            (gpu.name, gpu.mig_profile) in kinds or gpu.uuid in held or self._among(identity)
            for gpu, identity in zip(node.gpus, node.ids, strict=True)
        ]

    def _held(self, fleet: Fleet, node: Node) -> set[str | None]:
        """The UUIDs of GPUs with a process that has the word."""
        return {
            use.uuid
            for process, name in zip(node.processes, node.process_names(), strict=True)
            if self._is_in(fleet, process, name)
            for use in process.gpus or ()
        }

    def _is_in(self, fleet: Fleet, process: Process, name: str | None) -> bool:
        if self._sight.level != "full":
            process = seen_one(msgspec.structs.replace(process, name=name), self._sight)
            name = process.name
        if self._among(process.command, name, process.user):
            return True
        return self._among(fleet.people_names.person(process) or "?", job_of(process.cgroup))

    def _among(self, *texts: str | None) -> bool:
        return any(text is not None and self._word in text.casefold() for text in texts)
