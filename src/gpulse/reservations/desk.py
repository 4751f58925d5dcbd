"""Reservations beside the fleet: books them there, and finds where what runs is not as it was reserved."""

import time
from collections.abc import Callable, Collection, Iterable
from itertools import islice

from gpulse.config.reservations import Reservations as Settings
from gpulse.errors import StoreError
from gpulse.fleet.booked import Booked, Spot
from gpulse.fleet.fleet import Fleet
from gpulse.reservations import reality
from gpulse.reservations.model import Reservation
from gpulse.reservations.reality import Finding, Memory
from gpulse.reservations.table import Reservations, Witness, unseen
from gpulse.reservations.uses import Uses
from gpulse.reservations.zones import own_zone_or_utc, zone_of

# What begins later than anybody may ask for free GPUs is not booked in the fleet yet.
_AHEAD_SECONDS = 366 * 86400.0
# What depends on the time alone may be seen so many looks later; so many are looked at once at least.
_ROUND, _LEAST_OF_ROUND = 60, 20


class Desk:
    """Call `look` every second: it does little where little is new, however many reservations there are."""

    def __init__(self, table: Reservations, fleet: Fleet, settings: Settings, clock: Callable[[], float] = time.time):
        self.table = table
        self.settings = settings
        self.clock = clock
        # What is to be said of it, where the machine's zone has no name.
        self.zone, self.trouble = own_zone_or_utc() if settings.zone is None else (zone_of(settings.zone), "")
        self._fleet = fleet
        self._uses = Uses(fleet)
        self._memory = Memory(began=clock())
        # Those that something may be found about, by id and by node, and what was found about each.
        self._nearby: dict[str, Reservation] = {}
        self._on_nodes: dict[str, list[Reservation]] = {}
        self._found: dict[str, list[Finding]] = {}
        self._turn = 0
        self._looked = clock()
        self._revision = -1
        self._next_change = float("-inf")
        self._next_gathering = float("-inf")

    @property
    def findings(self) -> list[Finding]:
        return [finding for found in self._found.values() for finding in found]

    def look(self) -> None:
        before, now = self._looked, self.clock()
        self._looked = now
        changed = self.table.revision != self._revision or now >= self._next_change
        due: set[str] = set(self._round())
        if changed:
            self._book(now)
        if changed or now >= self._next_gathering:
            due |= self._gather(before, now)
        for node in self._uses.look(now):
            due.update(one.id for one in self._on_nodes.get(node, ()))
        if self._compare(due, now) or changed:
            self._fleet.reservations += 1

    async def follow(self, witness: Witness = unseen) -> str:
        """Looks at what others wrote and what has changed; what could not be done, in words."""
        trouble = await self.table.refresh()
        self.look()
        try:
            await self.release_no_shows(witness)
        except StoreError as error:
            trouble = trouble or f"{error}; until then no-shows are not released"
        return trouble

    async def release_no_shows(self, witness: Witness = unseen) -> list[Reservation]:
        """Those that nobody came for, ended; none unless the settings say so."""
        if not self.settings.release_no_shows:
            return []
        unused = [one.reservation for one in self.findings if one.kind == "no_show"]
        released = [await self.table.release(one, witness=witness) for one in unused]
        if unused:
            self.look()
        return [one for one in released if one is not None]

    def _book(self, now: float) -> None:
        table = self.table
        self._revision, self._next_change = table.revision, table.next_change(now)
        current: dict[Spot, Booked] = {}
        for one in table.current(now):
            current.update(dict.fromkeys(one.places, _booked(one)))
        upcoming = table.upcoming(now, _AHEAD_SECONDS)
        booked = {one.id: _booked(one) for some in upcoming.values() for one in some}
        later: dict[Spot, Booked] = {place: booked[some[0].id] for place, some in upcoming.items()}
        after: dict[Spot, Booked] = {place: booked[some[1].id] for place, some in upcoming.items() if len(some) > 1}
        self._fleet.book(current, later, after)

    def _gather(self, since: float, now: float) -> set[str]:
        """Those that something may be found about; told are the ids of those that it may be another for."""
        soon = self.settings.blocked_minutes * 60
        nearby = {one.id: one for one in self.table.between(now - reality.OVERRUN_SECONDS, now + soon + 1.0)}
        # Another comes near then, at the earliest.
        self._next_gathering = self.table.next_change(now + soon) - soon
        before, self._nearby = self._nearby, nearby
        moved = {one for one in before.keys() | nearby.keys() if before.get(one) is not nearby.get(one)}
        moved |= {one.id for one in nearby.values() if since < one.start <= now or since < one.last <= now}
        if before.keys() != nearby.keys() or moved:
            self._on_nodes = {}
            for one in nearby.values():
                for node in {place.node for place in one.places}:
                    self._on_nodes.setdefault(node, []).append(one)
            self._uses.want({place for one in nearby.values() for place in one.places})
            used = self._memory.used
            self._memory = Memory(self._memory.began, {one: used[one] for one in nearby if one in used})
        # Their neighbours too: who has a GPU now makes a difference to who is next.
        nodes = {place.node for one in moved if one in nearby for place in nearby[one].places}
        return moved | {one.id for node in nodes for one in self._on_nodes[node]}

    def _round(self) -> Iterable[str]:
        """Some of them each time, all in turn: whether somebody came depends on the time as well."""
        count = max(_LEAST_OF_ROUND, len(self._nearby) // _ROUND + 1)
        first = self._turn if self._turn < len(self._nearby) else 0
        self._turn = first + count
        return islice(self._nearby, first, first + count)

    def _compare(self, wanted: Collection[str], now: float) -> bool:
        """Whether something else is found about these than before."""
        due = [self._nearby[one] for one in wanted if one in self._nearby]
        nodes = {place.node for one in due for place in one.places}
        beside = {one.id: one for node in nodes for one in self._on_nodes.get(node, ())}
        found, memory = reality.findings(list(beside.values()), now, self._uses.by_place, self._memory, self.settings)
        self._memory = Memory(memory.began, {**self._memory.used, **memory.used})
        by_id: dict[str, list[Finding]] = {}
        for finding in found:
            by_id.setdefault(finding.reservation, []).append(finding)
        changed = False
        for identity in wanted:
            told = by_id.get(identity, []) if identity in self._nearby else []
            if self._found.pop(identity, []) != told:
                changed = True
            if told:
                self._found[identity] = told
        return changed


def _booked(one: Reservation) -> Booked:
    return Booked(one.id, one.person, one.start, one.last, one.comment, one.hold)
