"""Who has reserved which GPUs, as far as the fleet must know: those of now, and the next one of each place."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from gpulse.fleet.model import Gpu

# The name of a node, and the index of a GPU there: "0", of a MIG instance "0.2".
Spot = tuple[str, str]
# A reservation that begins later than this is not told of with its GPU.
SOON_SECONDS = 7 * 86400.0


class Booked(NamedTuple):
    """A reservation of one GPU; `person` is a login."""

    id: str
    person: str
    start: float
    end: float
    comment: str = ""
    hold: bool = False


class BookedView(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A reservation of a GPU, as it is told with that."""

    id: str
    # Whose it is: a login, and what people call them.
    person: str
    name: str
    # Seconds since 1970.
    start: float
    end: float
    comment: str = ""
    # Whether it is a short one, made by who looked for free GPUs.
    hold: bool = False


class Bookings(NamedTuple):
    """By place; `nodes` and `people` are those that are named."""

    now: Mapping[Spot, Booked] = {}
    later: Mapping[Spot, Booked] = {}
    # The first after that one which is another person's.
    after: Mapping[Spot, Booked] = {}
    nodes: frozenset[str] = frozenset()
    people: frozenset[str] = frozenset()
    # By card its MIG instances that are named.
    parts: Mapping[Spot, frozenset[Spot]] = {}

    @classmethod
    def of(cls, now: Mapping[Spot, Booked], later: Mapping[Spot, Booked], after: Mapping[Spot, Booked]) -> "Bookings":
        nodes = frozenset(node for part in (now, later) for node, _ in part)
        people = frozenset(one.person for part in (now, later, after) for one in part.values())
        parts: dict[Spot, set[Spot]] = {}
        for spot in (*now, *later):
            if "." in spot[1]:
                parts.setdefault(card_of(spot), set()).add(spot)
        return cls(now, later, after, nodes, people, {card: frozenset(some) for card, some in parts.items()})

    def also_at(self, places: Mapping[Spot, Spot]) -> "Bookings":
        """Return these bookings where each key of `places` is also its value: one GPU of a machine with two names."""
        if self.nodes.isdisjoint(node for node, _ in places):
            return self
        now, later, after = dict(self.now), dict(self.later), dict(self.after)
        for spot, place in places.items():
            running = self.now.get(spot)
            if running is not None:
                now.setdefault(place, running)
            both = (part.get(where) for part in (self.later, self.after) for where in (spot, place))
            coming = sorted((one for one in both if one is not None), key=_start)
            if coming:
                later[place] = coming[0]
                others = [one for one in coming if one.person != coming[0].person]
                after.update({place: others[0]} if others else {})
        return Bookings.of(now, later, after)

    def at(self, spot: Spot, whole: bool = True) -> Booked | None:
        """The reservation of now; who has reserved a card has all its MIG instances.

        Of a card that is whole again an instance may be booked still. `whole` is false of one that is split: what is
        reserved of its instances is theirs alone.
        """
        found = self.now.get(spot) or self.now.get(card_of(spot))
        return found or max(self._in_parts(self.now, spot, whole), key=_end, default=None)

    def next_at(self, spot: Spot, whole: bool = True) -> Booked | None:
        found = [one for one in (self.later.get(spot), self.later.get(card_of(spot))) if one is not None]
        return min((*found, *self._in_parts(self.later, spot, whole)), key=_start, default=None)

    def _in_parts(self, booked: Mapping[Spot, Booked], spot: Spot, whole: bool) -> list[Booked]:
        parts = self.parts.get(spot, ()) if whole else ()
        return [booked[part] for part in parts if part in booked]

    def kept(self, spot: Spot, me: str | None, until: float) -> bool:
        """Whether somebody else than `me` has it now, or will before `until`; what is held was found by somebody."""
        # An instance of a card that is whole again is booked still.
        shared = {spot, card_of(spot), *self.parts.get(spot, ())}
        running = (self.now.get(where) for where in shared)
        # A second program of the same person must not find what the first is about to start on.
        if any(one is not None and (one.hold or one.person != me) for one in running):
            return True
        coming = (part.get(where) for part in (self.later, self.after) for where in shared)
        return any(one is not None and one.person != me and one.start < until for one in coming)

    def own(self, spot: Spot, me: str | None) -> bool:
        """Whether it is reserved for `me` now, and not only held."""
        now = self.at(spot)
        return now is not None and now.person == me and not now.hold


NOTHING_BOOKED = Bookings()
NOBODY_AFTER: Mapping[Spot, Booked] = {}


def card_of(spot: Spot) -> Spot:
    """The card itself, of one of its MIG instances."""
    return spot[0], spot[1].partition(".")[0]


def _start(booked: Booked) -> float:
    return booked.start


def _end(booked: Booked) -> float:
    return booked.end


def index_of(gpu: Gpu) -> str | None:
    """A GPU's index as people write it: 0, of a MIG instance 0.2; None where it has told none."""
    if gpu.index is None:
        return None
    instance = gpu.parent_uuid is not None and gpu.mig_index is not None
    return f"{gpu.index}.{gpu.mig_index}" if instance else str(gpu.index)


def spot_of(node: str, gpu: Gpu) -> Spot:
    return node, index_of(gpu) or ""
