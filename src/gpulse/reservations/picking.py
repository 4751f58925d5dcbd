"""Picks the GPUs for a wish such as "any 4 with 40 GB on one node" that nobody has reserved in a span; pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from gpulse.errors import ReservationError
from gpulse.fleet.finder import Wish, fits
from gpulse.fleet.views import GpuState, GpuView
from gpulse.reservations.alternatives import free_places, offered
from gpulse.reservations.model import Alternative, Place, Reservation, in_order, place_of
from gpulse.reservations.rules import LATE_SECONDS, begun

# A card in one of these states is given to nobody, whenever that may be; in the order in which they are named.
_NEVER: tuple[GpuState, ...] = ("down", "unhealthy", "unknown")
# What can be had now; one that was reserved a moment ago may be free again, and the reservations say.
_NOW = frozenset({"free", "reserved"})
# By node the places that can be had, in their order.
_Free = Mapping[str, Sequence[Place]]


def pick(
    gpus: Sequence[GpuView],
    wish: Wish,
    start: float,
    end: float,
    others: Sequence[Reservation],
    now: float,
    ids: Collection[str] | None = None,
    held: Sequence[Reservation] = (),
) -> tuple[Place, ...]:
    """Places for the wish from `start` until `end`, chosen from `gpus` in natural order, where given only of `ids`.

    `others` are all reservations that hold something from `start` on. Those of them that are `held` for who wishes come
    first, each as a whole or not at all. ReservationError where there are not enough, with the next time at which there
    will be.
    """
    start = begun(start, now)
    fitting = [gpu for gpu in gpus if gpu.counted and (ids is None or gpu.id in ids) and fits(gpu, wish)]
    able = [gpu for gpu in fitting if gpu.state not in _NEVER]
    there = _by_node(able)
    if not _enough(there, wish):
        less = "ask for fewer, or for less of them" if able else "ask for another model, or for less memory"
        raise ReservationError(422, "no_gpus", _missing(fitting, there, wish), less)
    # Who starts now needs what is free now; a moment ahead of the hub's clock is still now.
    at_once = start <= now + LATE_SECONDS
    can_be = _by_node([gpu for gpu in able if gpu.state in _NOW]) if at_once else there
    used = {gpu.node for gpu in gpus if gpu.counted and gpu.state != "free"}
    free = _unbooked(can_be, start, end, others)
    if held:
        unheld = _unbooked(can_be, start, end, [one for one in others if one not in held])
        chosen = _with_held(free, unheld, wish, held, used)
        if chosen is not None:
            return chosen
    if not _enough(free, wish):
        raise ReservationError(
            409,
            "conflict",
            _taken(free, wish, at_once),
            "take another time, or ask for fewer",
            alternatives=_later(there, wish, start, end, others),
        )
    return _chosen(free, wish.n, used)


def _by_node(gpus: Sequence[GpuView]) -> dict[str, list[Place]]:
    found: dict[str, list[Place]] = {}
    for gpu in gpus:
        place = place_of(gpu)
        if place is not None:
            found.setdefault(gpu.node, []).append(place)
    return found


def _unbooked(there: _Free, start: float, end: float, others: Sequence[Reservation]) -> dict[str, list[Place]]:
    is_free = free_places(start, end, others)
    free = {node: [place for place in places if is_free(place)] for node, places in there.items()}
    return {node: places for node, places in free.items() if places}


def _enough(free: _Free, wish: Wish) -> bool:
    counts = [len(places) for places in free.values()]
    return (max(counts, default=0) if wish.same_node else sum(counts)) >= wish.n


def _chosen(free: _Free, count: int, used: Collection[str]) -> tuple[Place, ...]:
    order = {node: at for at, node in enumerate(free)}
    enough = [node for node, places in free.items() if len(places) >= count]
    if enough:
        # Whole nodes stay whole, and big gaps stay big, for those who need them.
        best = min(enough, key=lambda node: (node not in used, len(free[node]), order[node]))
        return tuple(free[best][:count])
    chosen: list[Place] = []
    for node in sorted(free, key=lambda node: (-len(free[node]), node not in used, order[node])):
        chosen += free[node][: count - len(chosen)]
    return in_order(chosen)


def _with_held(
    free: _Free, unheld: _Free, wish: Wish, held: Sequence[Reservation], used: Collection[str]
) -> tuple[Place, ...] | None:
    """Places with holds among them, the largest that can be had first; None where there are none with any of them.

    A hold of which something is in use by now, or is not there as it was held, cannot be had as a whole.
    """
    reachable = {place for places in unheld.values() for place in places}
    whole = [hold.places for hold in held if len(hold.places) <= wish.n and reachable.issuperset(hold.places)]
    whole.sort(key=len, reverse=True)
    for first in whole:
        chosen = list(first)
        for places in whole:
            if places is not first and len(chosen) + len(places) <= wish.n and _together(wish, [*first, *places]):
                chosen += places
        rest = _beside(free, chosen, wish, used) if _together(wish, chosen) else None
        if rest is not None:
            return in_order([*chosen, *rest])
    return None


def _together(wish: Wish, places: Iterable[Place]) -> bool:
    return not wish.same_node or len({place.node for place in places}) == 1


def _beside(free: _Free, chosen: Sequence[Place], wish: Wish, used: Collection[str]) -> Sequence[Place] | None:
    """What is still wanted, on the nodes of what is chosen before others; None where there is not enough."""
    count, nodes = wish.n - len(chosen), dict.fromkeys(place.node for place in chosen)
    near = [place for node in nodes for place in free.get(node, ())][:count]
    elsewhere = {} if wish.same_node else {node: places for node, places in free.items() if node not in nodes}
    missing = count - len(near)
    if missing > sum(map(len, elsewhere.values())):
        return None
    return [*near, *_chosen(elsewhere, missing, used)] if missing else near


def _later(there: _Free, wish: Wish, start: float, end: float, others: Sequence[Reservation]) -> list[Alternative]:
    """The next time at which enough are not reserved for as long."""
    length = end - start
    moment = _next_time(there, wish, start, length, others)
    if moment is None:
        return []
    free = _unbooked(there, moment, moment + length, others)
    chosen = _chosen(free, wish.n, ())
    return [Alternative(start=moment, end=moment + length, places=chosen)] if _enough(free, wish) else []


def _next_time(there: _Free, wish: Wish, start: float, length: float, others: Sequence[Reservation]) -> float | None:
    booked: dict[Place, list[tuple[Place, Reservation]]] = {}
    for one in others:
        for place in one.places:
            booked.setdefault(place.card, []).append((place, one))
    # The moments from which on, and after which, one more of a node's could be had for so long.
    steps: list[tuple[float, int, str]] = []
    for node, places in there.items():
        for place in places:
            free_from = start
            near = [one for other, one in booked.get(place.card, ()) if other.shares(place)]
            for one in sorted(near, key=lambda one: one.start):
                if one.start - free_from >= length:
                    steps += [(free_from, 0, node), (one.start - length, 1, node)]
                free_from = max(free_from, offered(one.last))
            steps.append((free_from, 0, node))
    counts: Counter[str] = Counter()
    total = 0
    for moment, closes, node in sorted(steps):
        more = -1 if closes else 1
        counts[node] += more
        total += more
        # Only a node that gets one more can be the first that has enough.
        if not closes and moment > start and (counts[node] if wish.same_node else total) >= wish.n:
            return moment
    return None


def _missing(fitting: Sequence[GpuView], there: _Free, wish: Wish) -> str:
    if wish.same_node and sum(map(len, there.values())) >= wish.n:
        return f"no node has {wish.n} such GPUs; the most on one is {max(map(len, there.values()))}"
    able = sum(map(len, there.values()))
    counts = Counter(gpu.state for gpu in fitting)
    away = ", ".join(f"{counts[state]} {state}" for state in _NEVER if counts[state])
    if not able:
        return "there is no such GPU" + (f" that can be given to anybody: {away}" if away else "")
    told = f"there {'is 1 such GPU' if able == 1 else f'are {able} such GPUs'}, and {wish.n} are wanted"
    return told + (f"; of the others {away}" if away else "")


def _taken(free: _Free, wish: Wish, at_once: bool) -> str:
    count = sum(map(len, free.values()))
    why = "free now and not reserved" if at_once else "not reserved"
    where = " on one node" if wish.same_node and count >= wish.n else ""
    most = max(map(len, free.values()), default=0) if where else count
    return f"{most} of {wish.n} such GPUs are {why} at that time{where}"
