"""What filters look for in a node's Snapshot, put together when first asked for; most nodes are read no further."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpulse.fleet import health
from gpulse.fleet.jobs import job_of
from gpulse.fleet.model import Gpu
from gpulse.fleet.node import Node

if TYPE_CHECKING:
    from gpulse.fleet.fleet import Fleet


class NodeFacts(NamedTuple):
    """True until the next Snapshot, or until the node's place or the ids of its GPUs change."""

    # Names of the models there are, with the profile of MIG instances.
    kinds: frozenset[tuple[str | None, str | None]]
    # Every text a filter may ask for, casefolded; what is not in it is not on the node.
    text: str
    # The lowest temperature at which one of its GPUs slows down.
    slowdown_celsius: int | None
    # What its records tell of, whatever the time is and whatever an update says since.
    flags: frozenset[str]


def facts(fleet: Fleet, node: Node) -> NodeFacts:
    if node.facts is None:
        node.facts = _read(fleet, node)
    return node.facts


def _read(fleet: Fleet, node: Node) -> NodeFacts:
    kinds = frozenset((gpu.name, gpu.mig_profile) for gpu in node.gpus)
    flags = {flag for gpu in node.gpus for flag in _lasting(gpu)}
    if any(process.vanished for process in node.processes):
        flags.add("vanished")
    limits = [gpu.temperature_slowdown_celsius for gpu in node.gpus if gpu.temperature_slowdown_celsius]
    return NodeFacts(kinds, _text(fleet, node, kinds), min(limits, default=None), frozenset(flags))


def _lasting(gpu: Gpu) -> list[str]:
    found = ["xid_program"] if gpu.xid_events else []
    return found + health.lasting_flags(gpu)


def _text(fleet: Fleet, node: Node, kinds: frozenset[tuple[str | None, str | None]]) -> str:
    place = node.place
    texts: list[str | None] = [place.name, place.display_name, place.group, place.rack, *node.ids]
    for name, profile in kinds:
        texts += [name, profile, fleet.model(name)]
    for user in {process.user for process in node.processes}:
        texts += [user, fleet.people_names.called(user) or "?"]
    for process in node.processes:
        texts += [process.command, process.name, job_of(process.cgroup)]
    return "\n".join([text for text in texts if text]).casefold()
