"""Reservations beside the fleet: books them there, and finds where what runs is not as it was reserved."""

import time
from collections.abc import Callable, Collection, Iterable
from itertools import islice

from gpulse.config.reservations import Reservations as Settings
from gpulse.errors import StoreError
from gpulse.fleet.fleet import Fleet
from gpulse.reservations import reality
from gpulse.reservations.model import Reservation
from gpulse.reservations.reality import Finding, Memory
from gpulse.reservations.spots import Spots
from gpulse.reservations.table import Reservations, Witness, unseen
from gpulse.reservations.uses import Uses
from gpulse.reservations.zones import own_zone_or_utc, zone_of

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
        self._spots = Spots(table)
        self._uses = Uses(fleet)
        self._memory = Memory(began=clock())
        # Those that something may be found about, by id and by node, and what was found about each.
        self._nearby: dict[str, Reservation] = {}
        self._on_nodes: dict[str, dict[str, Reservation]] = {}
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
        # A clock that was set back has things begin again.
        changed = self.table.revision != self._revision or now >= self._next_change or now < before
        due: set[str] = set(self._round())
        if changed:
            self._book(now)
        if changed or now >= self._next_gathering:
            due |= self._gather(before, now)
        for node in self._uses.look(now):
            due.update(self._on_nodes.get(node, ()))
        if self._compare(due, now) or changed:
            self._fleet.reservations += 1

    def rebook(self) -> None:
        """What was written this moment is in the fleet at once: nobody is to be offered what somebody has just got."""
        self._fleet.rebook(self._spots.bookings(self.clock()))
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
        """Those that nobody came for although it was told of, ended; none unless the settings say so."""
        now = self.clock()
        due = [one.reservation for one in self.findings if one.release_at is not None and one.release_at <= now]
        unused = [self._nearby[one] for one in due]
        # As it was looked at: who has just changed it means to come.
        released = [await self.table.release(one.id, revision=one.revision, witness=witness) for one in unused]
        if unused:
            self.look()
        return [one for one in released if one is not None]

    def _book(self, now: float) -> None:
        self._revision, self._next_change = self.table.revision, self.table.next_change(now)
        self._fleet.rebook(self._spots.bookings(now))

    def _gather(self, since: float, now: float) -> set[str]:
        """Those that something may be found about; told are the ids of those that it may be another for."""
        soon = self.settings.blocked_minutes * 60
        nearby = {one.id: one for one in self.table.between(now - reality.OVERRUN_SECONDS, now + soon + 1.0)}
        # Another comes near then, at the earliest.
        self._next_gathering = self.table.next_change(now + soon) - soon
        before, self._nearby = self._nearby, nearby
        moved = {one for one in before.keys() | nearby.keys() if before.get(one) is not nearby.get(one)}
        moved |= {one.id for one in nearby.values() if since < one.start <= now or since < one.last <= now}
        nodes = {
            place.node for known in (before, nearby) for one in moved if one in known for place in known[one].places
        }
        for one in moved:
            self._shift(one, before.get(one), nearby.get(one))
        for node in nodes:
            there = self._on_nodes.get(node, {}).values()
            self._uses.want(node, {place for one in there for place in one.places if place.node == node})
        if moved:
            idle = self._memory.idle
            self._memory = Memory(self._memory.began, {one: idle[one] for one in nearby if one in idle})
        # Their neighbours too: who has a GPU now makes a difference to who is next.
        return moved | {one for node in nodes for one in self._on_nodes.get(node, ())}

    def _shift(self, identity: str, before: Reservation | None, after: Reservation | None) -> None:
        """From the nodes where it was to those where it is."""
        if before is not None:
            for node in {place.node for place in before.places}:
                self._on_nodes[node].pop(identity)
                if not self._on_nodes[node]:
                    del self._on_nodes[node]
        if after is not None:
            for node in {place.node for place in after.places}:
                self._on_nodes.setdefault(node, {})[identity] = after

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
        beside = {one.id: one for node in nodes for one in self._on_nodes.get(node, {}).values()}
        found, memory = reality.findings(list(beside.values()), now, self._uses.by_place, self._memory, self.settings)
        self._memory = Memory(memory.began, {**self._memory.idle, **memory.idle})
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
