"""The reservations there are: those of today and of some weeks in memory, all in the database."""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from sqlalchemy import Connection

from gpulse.errors import ReservationError, StoreError
from gpulse.reservations import advice, writing
from gpulse.reservations.model import Change, Changes, Origin, Place, Reservation, Wanted
from gpulse.reservations.rules import By, overlapping
from gpulse.reservations.shelf import Around, Shelf
from gpulse.reservations.writing import Choose
from gpulse.store import Records, hub
from gpulse.store import reservations as table

T = TypeVar("T")
# Of what kind the GPUs are that may be offered; where it takes long to tell, how to.
Kinds = Mapping[Place, str] | Callable[[], Mapping[Place, str]]
# Is told of what a transaction has written, within it: when, and how the reservations are now.
Witness = Callable[[Connection, float, Sequence[Reservation]], None]
# How long what is over stays in memory, and how often it is looked whether it has to go.
MEMORY_SECONDS = 31 * 86400.0
_TIDY_SECONDS = 3600.0
_NO_KINDS: Mapping[Place, str] = {}


def unseen(connection: Connection, at: float, written: Sequence[Reservation]) -> None:
    """Nobody is told."""


class Reservations:
    """One thread's view. What is asked without waiting is as it was last read; `refresh` reads what others wrote.

    Each change is a transaction in which nobody else writes: of two who want one GPU one gets it, whichever processes
    they ask. A change that was not allowed is a ReservationError, and nothing is another then. Where the witness of a
    change fails, there is no change.
    """

    def __init__(self, records: Records, clock: Callable[[], float] = time.time) -> None:
        self._records = records
        self._clock = clock
        self._looking = asyncio.Lock()
        self._shelf = Shelf()
        self._version = records.version().result()
        self._tidied = clock()
        self._seen, rows = records.read(lambda one: writing.since(one, 0, clock() - MEMORY_SECONDS)).result()
        for row in rows:
            self._shelf.put(row)
        self._revision = self._seen

    @property
    def revision(self) -> int:
        """A higher number after each change of which this process knows."""
        return self._revision

    def current(self, now: float | None = None) -> list[Reservation]:
        """Those that hold GPUs now."""
        return self._shelf.current(self._clock() if now is None else now)

    def next_change(self, now: float) -> float:
        """The next moment after now at which others are current; infinite where there is none."""
        return self._shelf.next_change(now)

    def around(self, place: Place, now: float, until: float) -> Around:
        """What a place has now, and of what begins until before `until` the next, and the next of another person."""
        return self._shelf.around(place, now, until)

    def touched(self) -> set[Place]:
        """Where a reservation came, changed or went since this was asked for last."""
        return self._shelf.touched()

    def turning(self, one: float, other: float) -> set[Place]:
        """Where a reservation begins or ends between two moments, whichever is the later."""
        return self._shelf.turning(one, other)

    def between(
        self,
        start: float,
        end: float,
        *,
        places: Collection[Place] | None = None,
        node: str | None = None,
        person: str | None = None,
        cancelled: bool = False,
    ) -> list[Reservation]:
        """Those that hold GPUs at some time from `start` until before `end`, the first to start first.

        With `cancelled` also those that were meant for it and did not come to it. What was over a month ago is left
        out: `find` has it.
        """
        if cancelled:
            found = self._shelf.planned(start, end)
        elif places is not None:
            found = self._shelf.on_nodes({place.node for place in places}, start, end)
        elif node is not None:
            found = self._shelf.on_nodes([node], start, end)
        else:
            found = self._shelf.between(start, end)
        if places is not None:
            of_them = {one.id for one in overlapping(places, float("-inf"), float("inf"), found)}
            found = [one for one in found if one.id in of_them or (not one.holds and set(one.places) & set(places))]
        return [
            one
            for one in found
            if (node is None or any(place.node == node for place in one.places))
            and (person is None or one.person == person)
        ]

    def by_id(self, identity: str) -> Reservation | None:
        """None where it is not in memory."""
        return self._shelf.get(identity)

    async def refresh(self) -> str:
        """Reads what other processes wrote; what could not be done, in words."""
        try:
            await self._look()
        except StoreError as error:
            return f"{error}; reservations are as they were last read"
        now = self._clock()
        if now - self._tidied > _TIDY_SECONDS:
            self._tidied = now
            self._shelf.remove_before(now - MEMORY_SECONDS)
        return ""

    async def get(self, identity: str) -> Reservation:
        """However old; ReservationError where there is none."""
        found = self._shelf.get(identity)
        if found is not None:
            return found
        return await self._read(lambda one: writing.known(one, identity))

    async def find(
        self,
        start: float,
        end: float,
        *,
        node: str | None = None,
        person: str | None = None,
        before: str | None = None,
        limit: int = 1000,
    ) -> list[Reservation]:
        """Those meant for a span, however old and also cancelled, the last to start first.

        `before` is the id of the last one of the page before.
        """

        def work(connection: Connection) -> list[Reservation]:
            last = None if before is None else writing.known(connection, before)
            mark = None if last is None else (last.start, last.id)
            found = table.listed(connection, start, end, node=node, person=person, before=mark, limit=limit)
            return writing.read_all(found)

        return await self._read(work)

    async def history(self, identity: str) -> list[Change]:
        """What was done to it, the oldest first."""
        return await self._read(lambda one: writing.history(one, identity))

    async def imported(self, end_after: float) -> list[tuple[Origin, Reservation]]:
        """Entries of files that ended after a moment there, and what was made of them, however it is now."""
        return await self._read(lambda one: writing.imported(one, end_after))

    async def make(
        self,
        wanted: Wanted,
        by: By,
        *,
        choose: Choose | None = None,
        kinds: Kinds = _NO_KINDS,
        dry_run: bool = False,
        witness: Witness = unseen,
    ) -> Reservation:
        """The reservation made, or, in a dry run, as it would be made: without an id.

        `choose` names its GPUs once it is sure what is booked; it is called in the thread of the database.
        """

        def work(connection: Connection) -> list[Reservation]:
            return writing.make(connection, wanted, by, self._clock(), choose, dry_run)

        try:
            if dry_run:
                return (await self._read(work))[0]
            return (await asyncio.shield(self._written(work, lambda rows: rows, witness)))[0]
        except ReservationError as error:
            if error.code == "conflict":
                others, now = await self._near(wanted.places, wanted.start, wanted.end, wanted.person), self._clock()
                if choose is None:
                    error.alternatives = advice.for_new(wanted, others, _told(kinds), by, now)
                else:
                    error.alternatives = advice.allowed(error.alternatives, wanted.person, others, by, now)
            raise

    async def make_many(
        self, wanted: Sequence[Wanted], by: By, *, dry_run: bool = False, witness: Witness = unseen
    ) -> list[Reservation | ReservationError]:
        """Each by itself, in this order: the reservation, or why there is none."""

        def work(connection: Connection) -> list[Reservation | ReservationError]:
            return writing.make_many(connection, wanted, by, self._clock(), dry_run)

        if dry_run:
            return await self._read(work)
        return await asyncio.shield(self._written(work, _made_of, witness))

    async def change(
        self,
        identity: str,
        changes: Changes,
        by: By,
        *,
        revision: int | None = None,
        kinds: Kinds = _NO_KINDS,
        dry_run: bool = False,
        witness: Witness = unseen,
    ) -> Reservation:
        """How it is, or in a dry run would be, afterwards. With `revision` only if it is still as it was then."""

        def work(connection: Connection) -> Reservation:
            return writing.change(connection, identity, changes, by, self._clock(), revision, dry_run)

        try:
            return await (self._read(work) if dry_run else self._write(work, witness))
        except ReservationError as error:
            if error.code == "conflict":
                before, now = await self.get(identity), self._clock()
                after = writing.changed(before, changes, now)
                others = await self._near(after.places, after.start, after.end, after.person)
                error.alternatives = advice.for_change(before, after, error.conflicts, others, _told(kinds), by, now)
            raise

    async def end(self, identity: str, by: By, *, witness: Witness = unseen) -> Reservation:
        """Ended now; cancelled where it had not begun."""
        return await self._write(lambda one: writing.stop(one, identity, by, self._clock()), witness)

    async def release(self, identity: str, *, revision: int, witness: Witness = unseen) -> Reservation | None:
        """Ended by gpulse itself as nobody came; None where it does not hold its GPUs now, or was changed since."""

        def work(connection: Connection) -> Reservation | None:
            return writing.release(connection, identity, revision, self._clock())

        return await asyncio.shield(self._written(work, lambda made: [] if made is None else [made], witness))

    async def _read(self, work: Callable[[Connection], T]) -> T:
        return await asyncio.wrap_future(self._records.read(work))

    async def _write(self, work: Callable[[Connection], Reservation], witness: Witness) -> Reservation:
        # Who asked may go meanwhile: what reached the disk is taken all the same.
        return await asyncio.shield(self._written(work, lambda made: [made], witness))

    async def _written(
        self, work: Callable[[Connection], T], rows: Callable[[T], Sequence[Reservation]], witness: Witness
    ) -> T:
        def seen(connection: Connection) -> T:
            before = hub.revision(connection)
            made = work(connection)
            witness(connection, self._clock(), [row for row in rows(made) if row.revision > before])
            return made

        made = await asyncio.wrap_future(self._records.write(seen))
        self._take(rows(made))
        return made

    def _take(self, rows: Sequence[Reservation]) -> None:
        self._revision += sum(self._shelf.put(row) for row in rows)

    async def _look(self) -> None:
        async with self._looking:
            version = await asyncio.wrap_future(self._records.version())
            if version == self._version:
                return
            seen, since = self._seen, self._clock() - MEMORY_SECONDS
            # Rows of our own are taken earlier, but only here it is sure that there is none of others before them.
            self._seen, rows = await self._read(lambda one: writing.since(one, seen, since))
            self._take(rows)
            self._version = version

    async def _near(self, places: Collection[Place], start: float, end: float, person: str) -> list[Reservation]:
        """All that matters to what could be had instead, as it is now."""
        await self.refresh()
        now, forever = self._clock(), float("inf")
        # What is ahead on these nodes, at that time on all, and what else the person has.
        near = (
            *self._shelf.on_nodes({place.node for place in places}, now, forever),
            *self._shelf.between(start, end),
            *(one for one in self._shelf.between(now, forever) if one.person == person),
        )
        return list({one.id: one for one in near}.values())


def _told(kinds: Kinds) -> Mapping[Place, str]:
    return kinds() if callable(kinds) else kinds


def _made_of(outcomes: Sequence[Reservation | ReservationError]) -> list[Reservation]:
    return [one for one in outcomes if isinstance(one, Reservation)]
