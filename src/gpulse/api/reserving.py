"""What people send to reserve: read into times, places and wishes, or refused in words."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, NamedTuple
from zoneinfo import ZoneInfo

import msgspec
from msgspec import UNSET, Meta, UnsetType, field

from gpulse.api.hub import Hub
from gpulse.api.queries import Filtered
from gpulse.api.reservation_views import ids_by_index
from gpulse.api.selection import matching, select, unknown_node
from gpulse.errors import RequestError, ReservationError
from gpulse.fleet import state
from gpulse.fleet.booked import Spot, index_of
from gpulse.fleet.filter import LONGEST
from gpulse.fleet.finder import Wish
from gpulse.fleet.sight import Sight
from gpulse.fleet.sizes import parse_size
from gpulse.fleet.terms import fits_wish
from gpulse.fleet.views import GpuView
from gpulse.reservations.dates import parse_moment, parse_span, parse_until, shown
from gpulse.reservations.desk import Desk
from gpulse.reservations.model import Place, Reservation, in_order, wanted_places
from gpulse.reservations.picking import pick
from gpulse.reservations.rules import END_OF_TIME, check_overlap
from gpulse.reservations.writing import Choose
from gpulse.reservations.zones import zone_of

LONGEST_COMMENT = 2000
MOST_GPUS = 10_000
# Refusals in which it matters how a time was understood.
_OF_TIMES = ("in_the_past", "ends_before_start", "too_far", "too_long")
# So many are offered at most in place of what is taken.
_MOST_OFFERED = 2000

When = Annotated[
    float | str,
    Meta(description="Seconds since 1970, an ISO time, or as people write it: `friday 18:00`."),
]
Length = Annotated[str, Meta(max_length=120, description="For how long: `2d 4h`, `90m`.")]
Comment = Annotated[str, Meta(max_length=LONGEST_COMMENT)]
Person = Annotated[str, Meta(max_length=200, description="Whose it is; for others by admins.")]
Zone = Annotated[str, Meta(max_length=100, description="The zone of times without one: `Europe/Berlin`.")]


class WantedGpu(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A place; without an index all GPUs of the node."""

    node: Annotated[str, Meta(min_length=1, max_length=200)]
    index: Annotated[int | str | None, Meta(description="`0`, of a MIG instance `0.2`.")] = None


class GpuWish(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """So many GPUs, whichever: the hub picks."""

    n: Annotated[int, Meta(ge=1, le=MOST_GPUS)] = 1
    memory: Annotated[str, Meta(max_length=40, description="Of each card at least: `40GB`.")] | None = None
    model: Annotated[str, Meta(max_length=200)] | None = None
    same_node: bool = False
    q: Annotated[str, Meta(max_length=LONGEST, description="A filter they must match.")] = ""


class NewReservation(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What to reserve: `gpus` or a `wish`; until `end` or `for` so long."""

    gpus: Annotated[list[WantedGpu], Meta(max_length=MOST_GPUS)] | None = None
    wish: GpuWish | None = None
    # Left out: now.
    start: When | None = None
    end: When | None = None
    for_: Length | None = field(default=None, name="for")
    comment: Comment = ""
    person: Person | None = None
    hold: bool = False
    zone: Zone | None = None
    # Nothing is saved; the answer is what would be.
    dry_run: bool = False


class ChangedReservation(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What is to be another way; what is left out stays."""

    gpus: Annotated[list[WantedGpu], Meta(max_length=MOST_GPUS)] | UnsetType = UNSET
    start: When | UnsetType = UNSET
    end: When | UnsetType = UNSET
    extend: Annotated[Length, Meta(description="So much longer than now.")] | UnsetType = UNSET
    comment: Comment | UnsetType = UNSET
    person: Person | UnsetType = UNSET
    zone: Zone | None = None
    # Of the reservation as it was seen; it is refused where it has changed since.
    revision: int | None = None
    dry_run: bool = False


class Times:
    """Reads what people write as a time, in their zone or else in the hub's."""

    def __init__(self, desk: Desk, zone: str | None):
        self.now = desk.clock()
        self.zone: ZoneInfo = desk.zone if zone is None else zone_of(zone)

    def start(self, given: float | str | None) -> float:
        if given is None:
            return self.now
        return given if isinstance(given, float) else self._exact(parse_moment(given, self.local(self.now)).at)

    def told(self, error: ReservationError, start: float, end: float) -> ReservationError:
        """With the moments that were understood, where it is about those."""
        if error.code in _OF_TIMES and min(start, end) >= 0 and max(start, end) < END_OF_TIME:
            from_, until = (shown(self.local(math.floor(moment))) for moment in (start, end))
            meant = f"understood: from {from_} until {until}"
            error.detail = f"{error.detail}; {meant}"
        return error

    def end(self, given: float | str, start: float) -> float:
        if isinstance(given, float):
            return given
        return self._exact(parse_until(given, self.local(start), self.local(self.now)).at)

    def local(self, moment: float) -> datetime:
        try:
            return datetime.fromtimestamp(moment, self.zone)
        except (ValueError, OverflowError, OSError):
            raise ReservationError(422, "too_far", "there is no such date", "take one before the year 10000") from None

    def _exact(self, moment: datetime) -> float:
        return moment.timestamp()


def span_of(wanted: NewReservation, times: Times) -> tuple[float, float]:
    """When it starts and ends."""
    start = times.start(wanted.start)
    if (wanted.end is None) == (wanted.for_ is None):
        what = "no end" if wanted.end is None else "both an end and a length"
        raise RequestError(422, "when_unclear", f"{what} is given", 'give one of "end" and "for"')
    if wanted.for_ is not None:
        return start, start + parse_span(wanted.for_).total_seconds()
    return start, times.end(wanted.end if wanted.end is not None else "", start)


def check_hold(desk: Desk, start: float, end: float) -> None:
    longest = desk.settings.hold_longest_minutes
    if end - start > longest * 60:
        message = f"GPUs can be held for {longest:g} minutes at most"
        raise ReservationError(422, "too_long", message, "hold them for less, or reserve them")


async def places_of(hub: Hub, gpus: Sequence[WantedGpu], had: Collection[Place] = ()) -> tuple[Place, ...]:
    """ReservationError where there is no such GPU; those that somebody `had` may be gone meanwhile."""
    found: list[Place] = []
    for one in gpus:
        place = Place(one.node, str(one.index))
        if place in had:
            found.append(place)
            continue
        if not hub.fleet.has(one.node):
            near = await unknown_node(hub.fleet, one.node)
            raise ReservationError(422, "gpu_unknown", near.message, near.detail)
        there = ids_by_index(hub.fleet, one.node)
        _check_name(hub, [place] if one.index is not None else [Place(one.node, index) for index in there])
        if one.index is None:
            found += whole_node(hub, one.node)
        elif place.index in there:
            found.append(place)
        else:
            has = f"{one.node} has {', '.join(list(there)[:64])}" if there else f"{one.node} has told of no GPU yet"
            raise ReservationError(422, "gpu_unknown", f"there is no GPU {one.node}:{one.index!s:.40}", has)
    return in_order(found)


def _check_name(hub: Hub, places: Iterable[Place]) -> None:
    counted = {place: hub.fleet.counted_places[place] for place in places if place in hub.fleet.counted_places}
    for place, (node, index) in counted.items():
        message = f"{place.node} is the same machine as {node}"
        raise ReservationError(422, "same_machine", message, f"reserve {node}:{index} instead of {place}")


def check_other_names(
    hub: Hub, desk: Desk, places: Collection[Place], start: float, end: float, own: str | None = None
) -> None:
    """Raise ReservationError where a GPU is reserved under another name of its machine, but by `own`."""
    wanted = set(places)
    others = [Place(*spot) for spot, counted in hub.fleet.counted_places.items() if wanted.intersection([counted])]
    found = desk.table.between(start, end, places=others) if others else []
    check_overlap(others, start, end, [one for one in found if one.id != own])


def whole_node(hub: Hub, name: str) -> tuple[Place, ...]:
    """All its GPUs; of a card that is split the card, or its instances where only those are told of."""
    return wanted_places(Place(name, index) for index in ids_by_index(hub.fleet, name))


class Choice(NamedTuple):
    """Those a wish may be met with."""

    gpus: list[GpuView]
    ids: set[str]
    wish: Wish
    # By the place of a GPU under a second name of its machine, its place under the first.
    counted_places: Mapping[Spot, Spot] = {}

    def choose(self, start: float, end: float, now: float) -> Choose:
        def among(others: Sequence[Reservation], held: Sequence[Reservation]) -> tuple[Place, ...]:
            others = [under_all_names(one, self.counted_places) for one in others]
            return pick(self.gpus, self.wish, start, end, others, now, self.ids, held)

        return Choose(self.wish.n, among)


def under_all_names(one: Reservation, counted_places: Mapping[Spot, Spot]) -> Reservation:
    """Return the reservation with the places of its GPUs under the names that are counted."""
    more = tuple(Place(*counted_places[place]) for place in one.places if place in counted_places)
    return msgspec.structs.replace(one, places=(*one.places, *more)) if more else one


async def choice_of(hub: Hub, wanted: GpuWish, me: str, sight: Sight) -> Choice:
    memory = None if wanted.memory is None else parse_size(wanted.memory)
    if wanted.memory is not None and memory is None:
        raise RequestError(422, "bad_memory", f'"{wanted.memory:.40}" is not an amount of memory', "write it like 40GB")
    wish = Wish(n=wanted.n, memory_bytes=memory, model=wanted.model or None, same_node=wanted.same_node, me=me)
    filter_ = Filtered(q=wanted.q, me=me).filter(sight)
    fitting = filter_._replace(terms=[*filter_.terms, *fits_wish(wish.model, wish.memory_bytes)])
    roster, rows = await select(hub.fleet, fitting)
    gpus: list[GpuView] = []
    ids: set[str] = set()
    async for node, found in matching(hub.fleet, roster, rows, sight):
        ids.update(gpu.id for gpu in found)
        gpus += node.gpus
    return Choice(gpus, ids, wish, hub.fleet.counted_places)


def kinds_of(hub: Hub, places: Sequence[Place], now: bool) -> Callable[[], Mapping[Place, str]]:
    """What may be offered in place of these: GPUs of the same models that are well, and for now free."""
    fleet = hub.fleet
    nodes = fleet.roster().nodes
    states = fleet.gpu_columns.state.copy()
    well = {state.FREE} if now else {state.FREE, state.BUSY, state.IDLE, state.RESERVED}

    # Called only where something is in the way.
    def kinds() -> Mapping[Place, str]:
        by_node = {node.place.name: node for node in nodes}
        own: dict[Place, str] = {}
        for place in places:
            gpus = by_node[place.node].gpus if place.node in by_node else []
            own.update((place, gpu.name or "") for gpu in gpus if index_of(gpu) == place.index)
        models, found = set(own.values()), dict(own)
        for node in nodes:
            if not any((gpu.name or "") in models for gpu in node.gpus):
                continue
            for gpu, code in zip(node.gpus, states[node.start : node.start + node.count].tolist(), strict=False):
                index = index_of(gpu)
                if index is not None and code in well and (gpu.name or "") in models:
                    found[Place(node.place.name, index)] = gpu.name or ""
            if len(found) >= _MOST_OFFERED:
                break
        return found

    return kinds
