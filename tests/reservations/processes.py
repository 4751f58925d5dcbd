"""Several hubs on one database, each with a thread and a memory of its own, and what all of them have done."""

import asyncio
import math
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, func, select

from gpulse.errors import ReservationError
from gpulse.reservations.model import Change, Reservation, Wanted
from gpulse.reservations.rules import By
from gpulse.reservations.table import Reservations
from gpulse.store import Records, audit
from gpulse.store import reservations as tables
from tests.patience import PATIENCE_SECONDS
from tests.reservations.paper import Ask, Make, Outcome, Paper, Release, agrees, cells, order_of


class Process:
    """What a hub is as far as reservations go."""

    table: Reservations

    def __init__(self, folder: Path, url: str | None) -> None:
        self.records = Records(folder, url)
        self._thread = ThreadPoolExecutor(1)
        self._runner = asyncio.Runner()

    def begin(self, clock: Callable[[], float]) -> None:
        """Knows what is in the database, as when it was just started."""
        self.table = Reservations(self.records, clock)

    def start(self, work: Coroutine[Any, Any, Any], ready: threading.Barrier | None = None) -> "Future[Any]":
        def run() -> object:
            if ready is not None:
                ready.wait(PATIENCE_SECONDS)
            return self._runner.run(work)

        return self._thread.submit(run)

    def look(self) -> None:
        assert self.run(self.table.refresh()) == ""

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.start(work).result()

    def close(self) -> None:
        self._thread.submit(self._runner.close).result()
        self._thread.shutdown()
        self.records.close()


class Deed(NamedTuple):
    """A change that was acknowledged, and who made it."""

    by: str
    after: Reservation

    @property
    def action(self) -> str:
        if self.after.ending is None:
            return "made" if self.after.changed_at is None else "changed"
        return "released" if self.after.ending == "no_show" else self.after.ending


class Site:
    """Asks its processes for something, and compares what came of it with the paper."""

    def __init__(self, processes: Sequence[Process], clock: Any) -> None:
        self._processes = processes
        self._clock = clock
        self.known: dict[str, Reservation] = {}
        # Until something else came of an ask than had to: from then on everything is another.
        self.agreed = True
        self._deeds: dict[str, list[Deed]] = {}

    @property
    def paper(self) -> Paper:
        return Paper(self.known, self._clock.now)

    def ask(self, process: int, ask: Ask) -> Outcome:
        """What came of it, which is what had to."""
        outcome = self._asked({process: [ask]})[0]
        if isinstance(ask, Make) and ask.dry_run:
            assert isinstance(outcome, Reservation) == (ask.meant(self.paper) is not None), outcome
        else:
            self.agreed = agrees(ask, outcome, self.paper)
            assert self.agreed, (ask, outcome)
            self._took(ask, outcome)
        return outcome

    def ask_many(self, process: int, by: By, wanted: Sequence[Wanted]) -> list[Reservation]:
        """What nobody else has anything of, in one go."""
        asked = self._processes[process]
        made: list[Reservation] = asked.run(asked.table.make_many(wanted, by, witness=_noted))
        for one in made:
            self._keep(by.name, one)
        return made

    def race(self, asked: Sequence[tuple[int, Ask]]) -> list[Outcome]:
        """All at once, each of its process: there is an order in which each would have come out so.

        A process that nobody asks looks meanwhile at what the others do.
        """
        by_process: dict[int, list[Ask]] = {}
        for process, ask in asked:
            by_process.setdefault(process, []).append(ask)
        asks = [ask for some in by_process.values() for ask in some]
        outcomes = self._asked(by_process, looking=True)
        order = order_of(asks, outcomes, self.paper)
        self.agreed = order is not None
        assert order is not None, (asks, outcomes, self.known)
        for number in order:
            self._took(asks[number], outcomes[number])
        return outcomes

    def part(self, *identities: str) -> "Site":
        """Of these alone: where nothing else can be in their way, less has to be looked at."""
        part = Site(self._processes, self._clock)
        part.known = {one: self.known[one] for one in identities}
        part._deeds = {one: self._deeds[one] for one in identities}
        return part

    def take(self, part: "Site") -> None:
        self.known |= part.known
        self._deeds |= part._deeds

    def check_database(self) -> None:
        """What is there is what was acknowledged; looked at by hours and lines, not by the rules' own words."""
        process = self._processes[0]
        kept = process.run(process.table.find(-math.inf, math.inf, limit=10_000))
        assert {one.id: one for one in kept} == self.known
        taken = [cell for one in kept for cell in cells(one)]
        assert len(taken) == len(set(taken))
        # Of what was refused nothing is there.
        deeds = sum(map(len, self._deeds.values()))
        rows = process.records.read(_counted).result()
        assert rows == (len(kept), sum(len(one.places) for one in kept), deeds, deeds)

    def check_memory(self) -> None:
        """Each process that has looked knows what all have done."""
        now = self._clock.now
        current = [one for one in self.known.values() if one.start <= now < one.last]
        for process in self._processes:
            told = process.table.between(-math.inf, math.inf, cancelled=True)
            assert {one.id: one for one in told} == self.known
            assert process.table.current() == sorted(current, key=lambda one: (one.start, one.id))

    def check_histories(self) -> None:
        """Each acknowledged change once, in order, with what was there before it."""
        process = self._processes[-1]
        for identity, history in process.run(_histories(process.table, list(self._deeds))):
            deeds = self._deeds[identity]
            assert [(entry.by, entry.action, entry.after) for entry in history] == [
                (deed.by, deed.action, deed.after) for deed in deeds
            ]
            assert history[0].before is None
            assert all(one.after == following.before for one, following in pairwise(history))
            assert history[-1].after == self.known[identity]

    def _asked(self, by_process: dict[int, list[Ask]], *, looking: bool = False) -> list[Outcome]:
        others = [one for number, one in enumerate(self._processes) if number not in by_process] if looking else []
        ready = threading.Barrier(len(by_process) + len(others))
        started = [
            self._processes[number].start(_all(self._processes[number].table, asks), ready)
            for number, asks in by_process.items()
        ]
        looks = [one.start(one.table.refresh(), ready) for one in others]
        assert [one.result() for one in looks] == [""] * len(looks)
        outcomes = [outcome for one in started for outcome in one.result()]
        for outcome in outcomes:
            if isinstance(outcome, BaseException) and not isinstance(outcome, ReservationError):
                raise outcome
        return outcomes

    def _keep(self, by: str, one: Reservation) -> None:
        self.known[one.id] = one
        self._deeds.setdefault(one.id, []).append(Deed(by, one))

    def _took(self, ask: Ask, outcome: Outcome) -> None:
        if isinstance(outcome, Reservation) and self.known.get(outcome.id) != outcome:
            self._keep("gpulse" if isinstance(ask, Release) else ask.by.name, outcome)


async def _all(table: Reservations, asks: Sequence[Ask]) -> list[Any]:
    return await asyncio.gather(*(ask.work(table, _noted) for ask in asks), return_exceptions=True)


async def _histories(table: Reservations, identities: Sequence[str]) -> list[tuple[str, list[Change]]]:
    return [(identity, await table.history(identity)) for identity in identities]


def _noted(connection: Connection, at: float, written: Sequence[Reservation]) -> None:
    """In the transaction of the change, as the audit log is written."""
    about = {"at": at, "who": "x", "way": "local", "address": "", "action": "x", "detail": "{}"}
    for one in written:
        audit.add(connection, [{**about, "target": one.id}])


_TABLES = (tables.reservations, tables.places, tables.changes, audit.audit)


def _counted(connection: Connection) -> tuple[int, ...]:
    return tuple(connection.execute(select(func.count()).select_from(one)).scalar_one() for one in _TABLES)


def empty(connection: Connection) -> None:
    """A database is slow to make and quick to empty."""
    # What refers to others first.
    for one in (tables.changes, tables.places, tables.reservations, audit.audit):
        connection.execute(delete(one))
