"""A plain word of a filter: a part of what people see of a node, its GPUs and their processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulse.fleet import matcher
from gpulse.fleet.model import Process
from gpulse.fleet.node import Node
from gpulse.fleet.node_facts import facts, visible_text
from gpulse.fleet.seeing import seen_texts
from gpulse.fleet.sight import Sight

if TYPE_CHECKING:
    from gpulse.fleet.fleet import Fleet


class Word:
    """Looks through one node at a time; most do not have the word, which is seen at one glance."""

    def __init__(self, word: str, sight: Sight):
        self._word = word
        self._sight = sight

    def __call__(self, fleet: Fleet, node: Node, /) -> bool | list[bool]:
        # Of all texts only the name of a process may come with an update.
        if not matcher.contains(visible_text(fleet, node, self._sight), self._word) and not node.mentions(b'"name"'):
            return False
        place = node.place
        if self._among(place.name, place.display_name, place.group, place.rack):
            return True
        kinds = {kind for kind in facts(node).kinds if self._among(*kind, fleet.model(kind[0]))}
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
        shown = seen_texts(process, name, self._sight)
        return self._among(*shown, fleet.people_names.called(shown.user) or "?")

    def _among(self, *texts: str | None) -> bool:
        return any(text is not None and matcher.contains(text.casefold(), self._word) for text in texts)
