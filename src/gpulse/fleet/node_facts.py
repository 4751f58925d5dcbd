"""What filters look for in a node's Snapshot, put together when first asked for; most nodes are read no further."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from gpulse.fleet import health
from gpulse.fleet.jobs import job_of
from gpulse.fleet.model import Gpu, Process
from gpulse.fleet.node import Node
from gpulse.fleet.seeing import seen_texts
from gpulse.fleet.sight import Level, Sight

if TYPE_CHECKING:
    from gpulse.fleet.fleet import Fleet


class NodeFacts(NamedTuple):
    """True until the next Snapshot, or until the node's place or the ids of its GPUs change."""

    # Names of the models there are, with the profile of MIG instances.
    kinds: frozenset[tuple[str | None, str | None]]
    # By level every text that strangers see there, casefolded; each is made when somebody with that level asks.
    texts: dict[Level, str]
    # Who has a process.
    logins: frozenset[str | None]
    # The lowest temperature at which one of its GPUs slows down.
    slowdown_celsius: int | None
    # What its records tell of, whatever the time is and whatever an update says since.
    flags: frozenset[str]


def facts(node: Node) -> NodeFacts:
    if node.facts is None:
        node.facts = _read(node)
    return node.facts


def visible_text(fleet: Fleet, node: Node, sight: Sight) -> str:
    """Return every text of the Snapshot that this sight shows, casefolded; what is not in it cannot be found."""
    known = facts(node)
    text = known.texts.get(sight.level)
    if text is None:
        text = known.texts[sight.level] = _joined([*_open(fleet, node, known), *_of_strangers(fleet, node, sight)])
    own = known.logins & sight.own if sight.level != "full" else None
    if own:
        theirs = (process for process in node.processes if process.user in own)
        text = f"{text}\n{_joined(_of(fleet, theirs, sight))}"
    return text


def _read(node: Node) -> NodeFacts:
    kinds = frozenset((gpu.name, gpu.mig_profile) for gpu in node.gpus)
    flags = {flag for gpu in node.gpus for flag in _lasting(gpu)}
    if any(process.vanished for process in node.processes):
        flags.add("vanished")
    limits = [gpu.temperature_slowdown_celsius for gpu in node.gpus if gpu.temperature_slowdown_celsius]
    logins = frozenset(process.user for process in node.processes)
    return NodeFacts(kinds, {}, logins, min(limits, default=None), frozenset(flags))


def _lasting(gpu: Gpu) -> list[str]:
    found = ["xid_program"] if gpu.xid_events else []
    return found + health.lasting_flags(gpu)


def _open(fleet: Fleet, node: Node, known: NodeFacts) -> list[str | None]:
    """Texts that everybody sees."""
    place = node.place
    texts: list[str | None] = [place.name, place.display_name, place.group, place.rack, *node.ids]
    for name, profile in known.kinds:
        texts += [name, profile, fleet.model(name)]
    return texts


def _of_strangers(fleet: Fleet, node: Node, sight: Sight) -> list[str | None]:
    return _of(fleet, node.processes, Sight(sight.level))


def _of(fleet: Fleet, processes: Iterable[Process], sight: Sight) -> list[str | None]:
    """Texts of processes as this sight shows them."""
    texts: list[str | None] = []
    users: set[str | None] = set()
    for process in processes:
        if sight.level == "full":
            # All of it, without a record of what is shown.
            users.add(process.user)
            texts += [process.command, process.name, job_of(process.cgroup)]
            continue
        shown = seen_texts(process, process.name, sight)
        users.add(shown.user)
        texts += [shown.command, shown.name, shown.job]
    for user in users:
        texts += [user, fleet.people_names.called(user) or "?"]
    return texts


def _joined(texts: list[str | None]) -> str:
    return "\n".join([text for text in texts if text]).casefold()
