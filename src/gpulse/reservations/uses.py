"""Who is on reserved GPUs: read from the fleet, and only of nodes that have told something else since."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np

from gpulse.fleet import state
from gpulse.fleet.booked import index_of
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.model import Process
from gpulse.fleet.node import Node
from gpulse.reservations.model import Place
from gpulse.reservations.reality import Seen, Use

_DOWN = Use(up=False, seen=())
_People = Mapping[str, list[tuple[str | None, Process]]]
# Of a card what matters here: worked on or held, by whomever; in no state to be worked on; or unknown.
_USED, _ILL, _UNKNOWN = 1, 2, 3
_KINDS = np.zeros(state.NOT_COUNTED + 1, np.uint8)
_KINDS[[state.BUSY, state.IDLE]] = _USED
# Of a node that is up these have values that are missing or old.
_KINDS[[state.UNKNOWN, state.STALE]] = _UNKNOWN


class _Watched:
    """A node with reserved places, and what it told when it was read last."""

    def __init__(self, name: str, places: Collection[Place], node: Node | None):
        self.name = name
        self.places = places
        self.node = node
        self.processes: object = None
        self.gpus: object = None
        self.kinds = b""
        self.state = -1


class Uses:
    """`by_place` is as of the last `look`."""

    def __init__(self, fleet: Fleet):
        self._fleet = fleet
        self._layout = -1
        self._watched: dict[str, _Watched] = {}
        self.by_place: dict[Place, Use] = {}

    def want(self, name: str, places: Collection[Place]) -> None:
        """Those of a node that are looked at from now on."""
        known = self._watched.pop(name, None)
        for place in set() if known is None else {*known.places} - {*places}:
            self.by_place.pop(place, None)
        if known is not None and {*known.places} == {*places}:
            self._watched[name] = known
        elif places:
            self._watched[name] = _Watched(name, sorted(places), self._node(name))

    def look(self, now: float) -> list[str]:
        """The nodes where something is another way than it was."""
        fleet, changed = self._fleet, []
        if fleet.layout != self._layout:
            self._layout = fleet.layout
            self._find_nodes()
        states = fleet.node_columns.state.tobytes()
        # Figures come between the times that processes are told of.
        kinds = _kinds(fleet)
        for one in self._watched.values():
            node = one.node
            code = state.DOWN_NODE if node is None else states[node.slot]
            own = b"" if node is None else kinds[node.start : node.start + node.count]
            # A node keeps its processes and its GPUs until it sends others.
            same = node is None or (node.processes is one.processes and node.gpus is one.gpus)
            if code == one.state and same and own == one.kinds:
                continue
            one.state, one.kinds = code, own
            if node is not None:
                one.processes, one.gpus = node.processes, node.gpus
            if self._take(one, code == state.UP, now):
                changed.append(one.name)
        return changed

    def _find_nodes(self) -> None:
        """A node that is as it was need not be read again."""
        for name, known in self._watched.items():
            node = self._node(name)
            if known.node is not node:
                self._watched[name] = _Watched(name, known.places, node)

    def _node(self, name: str) -> Node | None:
        return self._fleet.known(name) if self._fleet.has(name) else None

    def _take(self, watched: _Watched, up: bool, now: float) -> bool:
        changed = False
        node = watched.node if up else None
        told = None if node is None else _Told.of(node, watched.kinds)
        for place in watched.places:
            before = self.by_place.get(place)
            use = _DOWN if told is None else _use(place, told, before, now)
            if before != use:
                self.by_place[place] = use
                changed = True
        return changed


class _Told(NamedTuple):
    """What a node says of its GPUs: which there are, who is on them, and of which kind each is."""

    kinds: Mapping[str, int]
    people: _People

    @classmethod
    def of(cls, node: Node, kinds: bytes) -> "_Told":
        found = {index_of(gpu): kind for gpu, kind in zip(node.gpus, kinds, strict=False)}
        return cls({index: kind for index, kind in found.items() if index is not None}, people_on(node))

    def at(self, place: Place) -> set[int]:
        """The kinds of what is there: of a card that is split those of its instances, too."""
        return {kind for index, kind in self.kinds.items() if _is_at(index, place)}

    def is_split(self, card: Place) -> bool:
        return any(index != card.index and _is_at(index, card) for index in self.kinds)


def _kinds(fleet: Fleet) -> bytes:
    """By slot."""
    kinds = _KINDS[fleet.gpu_columns.state]
    # A card that is split has no state, but may be broken.
    kinds[fleet.gpu_columns.unhealthy] = _ILL
    return kinds.tobytes()


def _use(place: Place, told: _Told, before: Use | None, now: float) -> Use:
    at, kinds = place, told.at(place)
    is_there = bool(kinds)
    if not is_there:
        # An instance of a card that is whole again is a part of that.
        at, kinds = place.card, told.at(place.card)
        if not kinds or told.is_split(at):
            return _DOWN
    if _UNKNOWN in kinds:
        # Nobody can be blamed for what could not be read: anybody or nobody may be there.
        return Use(up=True, seen=(), unknown=True, usable=is_there)
    on_it = at_place(at, told.people)
    known = {one.login: one.since for one in before.seen} if before is not None else {}
    seen = tuple(_seen(login, on_it[login], known.get(login, now), now) for login in sorted(filter(None, on_it)))
    # Where processes are hidden from the probe, as in a container, only the card itself tells that it is used.
    unknown = None in on_it or (not seen and _USED in kinds)
    ill = _ILL in kinds or told.kinds.get(place.card.index) == _ILL
    return Use(up=True, seen=seen, unknown=unknown, usable=is_there and not ill)


def people_on(node: Node) -> _People:
    """By index the logins of who computes there, with their processes; a display on the card holds nobody up."""
    indexes = {gpu.uuid: index_of(gpu) for gpu in node.gpus if gpu.uuid}
    found: dict[str, list[tuple[str | None, Process]]] = {}
    for process in node.processes:
        for use in process.gpus or ():
            index = indexes.get(use.uuid or "")
            if index is not None and use.kinds != ["graphics"]:
                # Whose a process was that is gone nobody can tell any more.
                found.setdefault(index, []).append((None if process.vanished else process.user, process))
    return found


def at_place(place: Place, people: _People) -> dict[str | None, list[Process]]:
    there: dict[str | None, list[Process]] = {}
    for index, processes in people.items():
        if _is_at(index, place):
            for login, process in processes:
                there.setdefault(login, []).append(process)
    return there


def _is_at(index: str, place: Place) -> bool:
    """On a card that is split are its instances, and those who are on one of them."""
    return index == place.index or index.partition(".")[0] == place.index


def _seen(login: str, processes: list[Process], first: float, now: float) -> Seen:
    """`first`: when the hub saw them here first, for processes that do not tell when they began."""
    since = min(first if one.start_time is None else min(now, one.start_time) for one in processes)
    pids = sorted({one.pid for one in processes if one.pid is not None})
    return Seen(login=login, since=since, pids=tuple(pids))
