"""The terms of a filter: a key with a value, a state or a plain word, each with how it is decided."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gpulse.errors import FilterError
from gpulse.fleet import flagged, matcher
from gpulse.fleet.booked import Booked, spot_of
from gpulse.fleet.figure_terms import FIGURES, at_least, compared
from gpulse.fleet.health import FLAGS
from gpulse.fleet.jobs import job_of
from gpulse.fleet.model import Process
from gpulse.fleet.names import is_model
from gpulse.fleet.node import Node
from gpulse.fleet.node_facts import facts, visible_text
from gpulse.fleet.node_sets import NodeSet
from gpulse.fleet.sight import Sight
from gpulse.fleet.state import NODE_STATES
from gpulse.fleet.views import GPU_STATES
from gpulse.fleet.word import Word

if TYPE_CHECKING:
    from gpulse.fleet.fleet import Fleet
    from gpulse.fleet.roster import Roster

_TERM = re.compile(r"([a-z_]+)(:|>=|<=|>|<|=)(.*)", re.DOTALL)

Mask = NDArray[np.bool_]
# Who asks, in place of a name.
_ME = "me"


class OfNode(Protocol):
    """Answers for the whole node, GPUs or not, or for each of its GPUs; it must not take long."""

    def __call__(self, fleet: Fleet, node: Node, /) -> bool | list[bool]: ...


class Term(NamedTuple):
    """Decided for all rows at once by columns, or node by node by what it told: one of the two is there."""

    by_columns: Callable[[Fleet, Roster], Mask] | None = None
    of_node: OfNode | None = None
    negated: bool = False
    # How many nodes it names.
    names: int = 0


def keyed(term: str, head: str, me: str | None, sight: Sight) -> Term | None:
    """A term with a key; None where `head`, what stands before any quote, has none."""
    match = _TERM.match(head)
    if match is None:
        return None
    key, sign, value = match[1], match[2], term[match.end(2) :]
    if key in FIGURES:
        return Term(by_columns=compared(term, key, sign, value))
    if key not in KEYS:
        raise FilterError(
            f'"{term}": there is no key "{key}"; allowed are {", ".join(f"{known}:" for known in KEYS)} and '
            f"{', '.join(f'{known}>' for known in FIGURES)}; put it in quotes to look for the text"
        )
    if sign != ":":
        raise FilterError(f'"{term}": {key} takes a colon, as in {key}:{value or "…"}')
    if not value:
        raise FilterError(f'"{term}" has nothing behind the colon; name what {key} shall be, as in {key}:…')
    if key == "reserved" and value == _ME:
        value = _known(term, me)
    return _OF_PEOPLE[key](value, sight) if key in _OF_PEOPLE else _MAKERS[key](term, value)


def plain(word: str, quoted: bool, me: str | None, sight: Sight) -> Term:
    """A state, `mine`, or any other word."""
    if not quoted and word in GPU_STATES:
        return _state(word, word)
    if not quoted and word == "mine":
        return _user(_known(word, me), sight)
    return Term(of_node=Word(word, sight))


def _known(term: str, me: str | None) -> str:
    if not me:
        raise FilterError(f'"{term}" needs to know who you are; give your name beside the filter, as in me=alice')
    return me.casefold()


def _state(term: str, value: str) -> Term:
    if value not in GPU_STATES:
        raise FilterError(f'"{term}": there is no state "{value}"; allowed are {", ".join(GPU_STATES)}')
    of_gpus = GPU_STATES.index(value)
    of_nodes = NODE_STATES.index(value) if value in NODE_STATES else -1

    def by_columns(fleet: Fleet, roster: Roster) -> Mask:
        gpus: Mask = roster.of_gpus(fleet.gpu_columns.state) == of_gpus
        nodes: Mask = roster.of_nodes(fleet.node_columns.state)[roster.node] == of_nodes
        return (gpus & roster.has_gpu) | (nodes & ~roster.has_gpu)

    return Term(by_columns=by_columns)


def _flag(term: str, value: str) -> Term:
    wanted = value.split(",")
    for flag in wanted:
        if flag not in FLAGS:
            raise FilterError(f'"{term}": there is no flag "{flag}"; allowed are {", ".join(FLAGS)}')
    any_of = frozenset(wanted)
    return Term(of_node=lambda fleet, node: flagged.having(fleet, node, any_of))


def _nodes(_term: str, value: str) -> Term:
    if "*" in value or "?" in value:
        return Term(of_node=lambda _, node: any(fnmatchcase(name, value) for name in _names(node)))
    named = NodeSet("node:", value)

    def of_node(_fleet: Fleet, node: Node) -> bool:
        name, shown = _names(node)
        return name in named or (shown is not name and shown in named)

    return Term(of_node=of_node, names=named.size)


def _names(node: Node) -> tuple[str, str]:
    name = node.place.name.casefold()
    return name, node.place.display_name.casefold() if node.place.display_name else name


def _group(_term: str, value: str) -> Term:
    return Term(of_node=lambda _, node: _same(node.place.group, value))


def _rack(_term: str, value: str) -> Term:
    return Term(of_node=lambda _, node: _same(node.place.rack, value))


def _same(told: str | None, wanted: str) -> bool:
    return told is not None and matcher.equals(told.casefold(), wanted)


def fits_wish(model: str | None, memory_bytes: int | None) -> list[Term]:
    """What somebody wants of a card, as terms."""
    found = [_model("", model)] if model is not None else []
    if memory_bytes is not None:
        found.append(Term(by_columns=at_least(memory_bytes)))
    return found


def _model(_term: str, value: str) -> Term:
    def of_node(fleet: Fleet, node: Node) -> bool | list[bool]:
        kinds = facts(node).kinds
        fitting = {kind for kind in kinds if is_model(value, *kind, fleet.model(kind[0]))}
        if len(kinds) == 1:
            return bool(fitting)
        return [(gpu.name, gpu.mig_profile) in fitting for gpu in node.gpus]

    return Term(of_node=of_node)


def _user(name: str, sight: Sight) -> Term:
    def of_node(fleet: Fleet, node: Node) -> bool | list[bool]:
        if not matcher.contains(visible_text(fleet, node, sight), name):
            return False
        called, login = fleet.people_names.called, sight.login
        # A person may go by an alias; the login counts as well.
        they = {
            user
            for user in {process.user for process in node.processes}
            if _same(login(user), name) or _same(called(login(user)) or "?", name)
        }
        return _on_gpus(node, [process for process in node.processes if process.user in they])

    return Term(of_node=of_node)


def _job(value: str, sight: Sight) -> Term:
    def of_node(fleet: Fleet, node: Node) -> bool | list[bool]:
        if not matcher.contains(visible_text(fleet, node, sight), value):
            return False
        named = (process for process in node.processes if sight.names(process.user))
        return _on_gpus(node, [process for process in named if matcher.equals(job_of(process.cgroup), value)])

    return Term(of_node=of_node)


def _reserved(name: str, sight: Sight) -> Term:
    """Whose it is now, used or not; who has reserved a card has all its MIG instances."""

    def theirs(fleet: Fleet, booked: Booked | None) -> bool:
        if booked is None:
            return False
        login = sight.login(booked.person)
        return _same(login, name) or _same(fleet.people_names.called(login), name)

    def of_node(fleet: Fleet, node: Node) -> bool | list[bool]:
        bookings, place = fleet.bookings, node.place.name
        if place not in bookings.nodes:
            return False
        counted = fleet.gpu_columns.counted[node.start : node.start + node.count].tolist()
        spots = ((spot_of(place, gpu), whole) for gpu, whole in zip(node.gpus, counted, strict=False))
        return [theirs(fleet, bookings.at(spot, whole)) for spot, whole in spots]

    return Term(of_node=of_node)


def _on_gpus(node: Node, processes: list[Process]) -> bool | list[bool]:
    """On which of the node's GPUs one of these is."""
    if not processes:
        return False
    held = {use.uuid for process in processes for use in process.gpus or ()}
    return [gpu.uuid in held for gpu in node.gpus]


_MAKERS: dict[str, Callable[[str, str], Term]] = {
    "model": _model,
    "node": _nodes,
    "group": _group,
    "rack": _rack,
    "state": _state,
    "flag": _flag,
}
# These look for no more than who asks is told.
_OF_PEOPLE: dict[str, Callable[[str, Sight], Term]] = {"user": _user, "reserved": _reserved, "job": _job}
KEYS = ("user", "reserved", "model", "node", "group", "rack", "job", "state", "flag")
