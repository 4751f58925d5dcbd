"""Whatever people book and change, through whichever process and in whichever order: no two ever have one GPU.

The model is a sheet of paper with a line for each GPU and a column for each hour, on which names are written.
"""

import asyncio
import math
from itertools import pairwise

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from sqlalchemy import delete

from gpulse.errors import ReservationError
from gpulse.reservations.model import Changes, Reservation
from gpulse.reservations.rules import By, Limits
from gpulse.reservations.table import Reservations
from gpulse.store import Records
from gpulse.store import reservations as tables
from tests.reservations.wanting import HOUR, NOW, place, wanted

# Two cards, of which one is whole and one may be split.
PLACES = ("a:0", "a:1", "a:1.0", "a:1.1", "b:0")
# The lines of the paper: what has one of them in common cannot be had by two.
LINES = {"a:0": {"a0"}, "a:1": {"a10", "a11"}, "a:1.0": {"a10"}, "a:1.1": {"a11"}, "b:0": {"b0"}}
LIMITS = Limits(ahead_days=1, longest_hours=12, most_gpus=3, most_reservations=4)
PEOPLE = {"ann": By("ann", limits=LIMITS), "bob": By("bob", limits=LIMITS), "root": By("root", admin=True)}
PROCESSES = 3
ROUNDS = 25

processes = st.integers(0, PROCESSES - 1)
names = st.sampled_from(sorted(PEOPLE))
some_places = st.lists(st.sampled_from(PLACES), min_size=1, max_size=3, unique=True)
hours = st.integers(-3, 30)
lengths = st.integers(-1, 14)
numbers = st.integers(0, 999)
seldom = st.sampled_from([False, False, False, False, True])


class Bookings(RuleBasedStateMachine):
    """Each process looks when it likes; what it does goes by what is in the database."""

    tables_: list[Reservations]
    runner: asyncio.Runner
    clock: object

    def __init__(self):
        super().__init__()
        # All that there ever was, by id, as the model has it; the number of things done to each.
        self.known: dict[str, Reservation] = {}
        self.done: dict[str, list[str]] = {}

    @property
    def now(self):
        return self.clock.now

    def one_of_them(self, which):
        """Drawn by its number: how many there are depends on who came first when several asked at once."""
        return list(self.known.values())[which % len(self.known)]

    def does(self, work):
        """What came of it: the reservation, or the word for why not."""
        try:
            return self.runner.run(work)
        except ReservationError as error:
            return error

    def lines_of(self, one):
        return set().union(*(LINES[str(each)] for each in one.places))

    def hours_of(self, one):
        """The hours it has on the paper; a part of an hour counts as one, as all bookings begin on the hour."""
        return set(range(math.floor((one.start - NOW) / HOUR), math.ceil((one.last - NOW) / HOUR)))

    def cells(self, one):
        return {(line, hour) for line in self.lines_of(one) for hour in self.hours_of(one)}

    def standing(self):
        return [one for one in self.known.values() if one.ended_at is None and one.end > self.now]

    def in_the_way(self, one):
        mine = self.cells(one)
        return {other.id for other in self.known.values() if other.id != one.id and self.cells(other) & mine}

    def peak(self, one):
        """The most GPUs its person would have at one time."""
        own = [other for other in self.standing() if other.person == one.person and other.id != one.id]
        return max(
            sum(len(each.places) for each in (one, *own) if hour in self.hours_of(each)) for hour in self.hours_of(one)
        )

    def may_be_new(self, one, by):
        """As the words of the documentation say it."""
        if one.end <= one.start or one.start < self.now or (one.person != by.name and not by.admin):
            return False
        if not by.admin:
            own = [other for other in self.standing() if other.person == one.person]
            if (
                one.start > self.now + 24 * HOUR
                or one.end - one.start > 12 * HOUR
                or len(own) >= 4
                or self.peak(one) > 3
            ):
                return False
        return not self.in_the_way(one)

    def took(self, outcome, before=None):
        self.known[outcome.id] = outcome
        self.done.setdefault(outcome.id, []).append(outcome.ending or ("made" if before is None else "changed"))

    def meant(self, where, start, length, person):
        begins = self.now + start * HOUR
        return wanted(" ".join(where), (begins - NOW) / HOUR, (begins - NOW) / HOUR + length, person)

    def as_new(self, asked, by):
        return Reservation(
            id="new", person=asked.person, maker=by.name, places=asked.places, start=asked.start, end=asked.end,
            made_at=0, revision=0,
        )  # fmt: skip

    @rule(process=processes, name=names, person=names, where=some_places, start=hours, length=lengths, dry=seldom)
    def make(self, process, name, person, where, start, length, dry):
        by, asked = PEOPLE[name], self.meant(where, start, length, person)
        one = self.as_new(asked, by)
        outcome = self.does(self.tables_[process].make(asked, by, dry_run=dry))
        assert isinstance(outcome, Reservation) == self.may_be_new(one, by), outcome
        if isinstance(outcome, ReservationError):
            assert outcome.status in (403, 409, 422)
            if outcome.code == "conflict":
                assert {other.id for other in outcome.conflicts} == self.in_the_way(one)
                assert outcome.alternatives
        elif not dry:
            self.took(outcome)

    @rule(process=processes, asked=st.lists(st.tuples(names, some_places, hours, lengths), min_size=2, max_size=5))
    def at_once(self, process, asked):
        """Several ask several processes before anybody has an answer. Whoever is refused was refused for a reason."""
        works, meant = [], []
        for number, (name, where, start, length) in enumerate(asked):
            one = self.meant(where, start, length, name)
            meant.append(self.as_new(one, PEOPLE[name]))
            works.append(self.tables_[(process + number) % PROCESSES].make(one, PEOPLE[name]))

        async def all_of_them():
            return await asyncio.gather(*works, return_exceptions=True)

        outcomes = self.runner.run(all_of_them())
        for outcome in outcomes:
            if isinstance(outcome, Reservation):
                self.took(outcome)
            else:
                assert isinstance(outcome, ReservationError), outcome
        for one, outcome in zip(meant, outcomes, strict=True):
            if isinstance(outcome, ReservationError):
                assert not self.may_be_new(one, PEOPLE[one.person]), outcome

    @rule(
        which=numbers, process=processes, name=names, where=st.none() | some_places, start=st.none() | hours,
        length=st.none() | lengths, stranger=seldom, person=st.none() | st.none() | names,
        comment=st.sampled_from([None, "x", "y"]), stale=seldom,
    )  # fmt: skip
    def change(self, which, process, name, where, start, length, stranger, person, comment, stale):
        if not self.known:
            return
        before = self.one_of_them(which)
        by = PEOPLE[name if stranger else before.person]
        begins = before.start if start is None else self.now + start * HOUR
        changes = Changes(
            person=person,
            places=None if where is None else tuple(place(text) for text in where),
            start=None if start is None else begins,
            end=None if length is None else begins + length * HOUR,
            comment=comment,
        )
        revision = before.revision - 1 if stale else before.revision
        outcome = self.does(self.tables_[process].change(before.id, changes, by, revision=revision))
        given_ = {key: value for key, value in msgspec.structs.asdict(changes).items() if value is not None}
        after = msgspec.structs.replace(before, **given_)
        expected = not stale and self.may_become(before, after, by)
        assert isinstance(outcome, Reservation) == expected, outcome
        if isinstance(outcome, ReservationError):
            return
        assert (outcome.start, outcome.end, outcome.person) == (after.start, after.end, after.person)
        assert set(outcome.places) == set(after.places)
        if outcome != before:
            assert outcome.revision > before.revision
            self.took(outcome, before)

    def may_become(self, before, after, by):
        theirs = by.admin or by.name in (before.person, before.maker)
        if not theirs or before.ended_at is not None or before.end <= self.now:
            return False
        if after.person != before.person and not by.admin:
            return False
        if after.end <= max(after.start, self.now):
            return False
        if after.start != before.start and (before.start <= self.now or after.start < self.now):
            return False
        if self.in_the_way(after):
            return False
        return by.admin or self.within_limits(before, after)

    def within_limits(self, before, after):
        """What was there before need not be; what is added must."""
        added = self.hours_of(after) - (set() if set(after.places) - set(before.places) else self.hours_of(before))
        if not added:
            return True
        begins = after.start if after.start > before.start else before.end if after.end > before.end else self.now
        if begins > self.now + 24 * HOUR:
            return False
        if after.end - after.start > max(12 * HOUR, before.end - before.start):
            return False
        own = [one for one in self.standing() if one.person == after.person and one.id != after.id]
        there = [after, *own, *(one for one in self.known.values() if one.person == after.person and one not in own)]
        there = [one for one in there if one.id != after.id or one is after]
        return all(sum(len(one.places) for one in there if hour in self.hours_of(one)) <= 3 for hour in added)

    @rule(which=numbers, process=processes, name=names, how=st.sampled_from(["end", "cancel", "release"]))
    def stop(self, which, process, name, how):
        if not self.known:
            return
        before = self.one_of_them(which)
        by, table = PEOPLE[name], self.tables_[process]
        stands = before.ended_at is None and before.end > self.now
        runs = stands and before.start <= self.now
        if how == "release":
            outcome = self.does(table.release(before.id))
            assert (outcome is not None) == runs
        else:
            outcome = self.does(getattr(table, how)(before.id, by))
            theirs = by.admin or name in (before.person, before.maker)
            assert isinstance(outcome, Reservation) == (theirs and stands), outcome
        if isinstance(outcome, Reservation):
            assert outcome.ended_at == self.now
            assert outcome.ending == ("no_show" if how == "release" else "ended" if runs else "cancelled")
            self.took(outcome, before)

    @rule(process=processes)
    def refresh(self, process):
        assert self.runner.run(self.tables_[process].refresh()) == ""

    @rule(passed=st.integers(1, 8))
    def time_goes_on(self, passed):
        self.clock.now += passed * HOUR

    @invariant()
    def no_two_have_one_gpu(self):
        """Looked at as it is in the database, by minutes and lines rather than by the rules' own words."""
        kept = self.runner.run(self.tables_[0].find(-math.inf, math.inf, limit=10_000))
        assert {one.id: one for one in kept} == self.known
        taken = [cell for one in kept for cell in self.cells(one)]
        assert len(taken) == len(set(taken))

    def teardown(self):
        """Each knows in the end what all have done, and why everything is as it is."""
        for table in self.tables_:
            assert self.runner.run(table.refresh()) == ""
            told = {one.id: one for one in table.between(-math.inf, math.inf, cancelled=True)}
            assert told == self.known
            assert table.current() == sorted(
                (one for one in self.known.values() if one.start <= self.now < one.last),
                key=lambda one: (one.start, one.id),
            )
        for identity, words in self.done.items():
            history = self.runner.run(self.tables_[0].history(identity))
            assert [entry.after.ending or entry.action for entry in history] == words
            assert history[-1].after == self.known[identity]
            assert history[0].before is None
            assert all(one.after == following.before for one, following in pairwise(history))
            assert [entry.at for entry in history] == sorted(entry.at for entry in history)


def test_no_two_ever_have_one_gpu(tmp_path, records_url, clock):
    # A server takes longer to ask than a file.
    rounds = ROUNDS if records_url is None else ROUNDS // 2
    opened = [Records(tmp_path, records_url) for _ in range(PROCESSES)]
    try:
        with asyncio.Runner() as runner:

            def machine():
                # A database is slow to make and quick to empty.
                opened[0].write(empty).result()
                clock.now = NOW
                made = Bookings()
                made.runner, made.clock = runner, clock
                made.tables_ = [Reservations(records, clock) for records in opened]
                return made

            run_state_machine_as_test(
                machine,
                settings=settings(
                    max_examples=rounds,
                    stateful_step_count=30,
                    deadline=None,
                    suppress_health_check=list(HealthCheck),
                ),
            )
    finally:
        for records in opened:
            records.close()


def empty(connection):
    for one in (tables.changes, tables.places, tables.reservations):
        connection.execute(delete(one))
