"""Whatever people book and change, through whichever process and in whichever order: no two ever have one GPU."""

from contextlib import ExitStack, closing
from itertools import combinations, combinations_with_replacement

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from gpulse.errors import ReservationError
from gpulse.reservations.model import Changes, Reservation
from gpulse.reservations.rules import By
from tests.reservations.paper import LIMITS, Change, Make, Release, Stop
from tests.reservations.processes import Process, Site, empty
from tests.reservations.wanting import HOUR, NOW, place, wanted

# Two cards, of which one is whole and one may be split, and one of another node.
PLACES = ("a:0", "a:1", "a:1.0", "a:1.1", "b:0")
PEOPLE = {"ann": By("ann", limits=LIMITS), "bob": By("bob", limits=LIMITS), "root": By("root", admin=True)}
PROCESSES = 3
ROUNDS = 14

some_processes = st.integers(0, PROCESSES - 1)
names = st.sampled_from(sorted(PEOPLE))
some_places = st.lists(st.sampled_from(PLACES), min_size=1, max_size=3, unique=True)
# Mostly what may be; now and then what may not.
some_hours = st.integers(0, 8) | st.integers(-3, 30)
lengths = st.integers(1, 4) | st.integers(-1, 14)
numbers = st.integers(0, 999)
seldom = st.sampled_from([False, False, False, False, True])
# What is asked for in a race: near to now, short and of few, so that they get into each other's way.
racing = st.tuples(
    st.sampled_from(["make", "extend", "longer", "shorten", "move", "shift", "comment", "stop", "release"]),
    some_processes,
    st.integers(0, 2),
    names,
    st.lists(st.sampled_from(PLACES), min_size=1, max_size=2, unique=True),
    st.integers(0, 5),
    st.integers(1, 5),
    seldom,
)


class Bookings(RuleBasedStateMachine):
    """Each process looks when it likes; what it does goes by what is in the database."""

    site: Site
    processes: list[Process]
    clock: object

    def one_of(self, some, which):
        """Drawn by its number: how many there are depends on who came first when several asked at once."""
        return list(some)[which % len(some)]

    def meant(self, where, start, length, person):
        begins = (self.clock.now - NOW) / HOUR + start
        return wanted(" ".join(where), begins, begins + length, person)

    @rule(
        process=some_processes, name=names, person=names, where=some_places, start=some_hours, length=lengths,
        dry=seldom,
    )  # fmt: skip
    def make(self, process, name, person, where, start, length, dry):
        ask = Make(PEOPLE[name], self.meant(where, start, length, person), dry)
        outcome = self.site.ask(process, ask)
        if isinstance(outcome, ReservationError):
            assert outcome.status in (403, 409, 422)
            if outcome.code == "conflict":
                assert {other.id for other in outcome.conflicts} == self.site.paper.in_the_way(ask.as_new())
                self.is_good_advice(ask, outcome.alternatives)

    def is_good_advice(self, ask, offers):
        """What is offered may be had; nothing is, only where they may not have the same when it is free next."""
        paper, asked = self.site.paper, ask.as_new()
        for offer in offers:
            instead = msgspec.structs.replace(asked, start=offer.start, end=offer.end, places=offer.places)
            assert paper.may_be_new(instead, ask.by)
        if not offers:
            ends = sorted(one.last for one in paper.known.values() if one.last > asked.start)
            later = (msgspec.structs.replace(asked, start=end, end=end + asked.end - asked.start) for end in ends)
            assert not paper.may_be_new(next(one for one in later if not paper.in_the_way(one)), ask.by)

    @rule(
        which=numbers, process=some_processes, name=names, where=st.none() | some_places, start=st.none() | some_hours,
        length=st.none() | lengths, stranger=seldom, person=st.one_of(st.none(), st.none(), names),
        comment=st.sampled_from([None, "x", "y"]), stale=seldom, over=seldom,
    )  # fmt: skip
    def change(self, which, process, name, where, start, length, stranger, person, comment, stale, over):
        there = self.site.known.values() if over else self.site.paper.standing()
        if not there:
            return
        before = self.one_of(there, which)
        begins = before.start if start is None else self.clock.now + start * HOUR
        changes = Changes(
            person=person,
            places=None if where is None else tuple(place(text) for text in where),
            start=None if start is None else begins,
            end=None if length is None else begins + length * HOUR,
            comment=comment,
        )
        by = PEOPLE[name if stranger else before.person]
        self.site.ask(process, Change(by, before.id, changes, before.revision - 1 if stale else before.revision))

    @rule(which=numbers, process=some_processes, name=names)
    def stop(self, which, process, name):
        if self.site.known:
            self.site.ask(process, Stop(PEOPLE[name], self.one_of(self.site.known, which)))

    @rule(which=numbers, process=some_processes, stale=seldom)
    def release(self, which, process, stale):
        if self.site.known:
            before = self.one_of(self.site.known.values(), which)
            self.site.ask(process, Release(By("root"), before.id, before.revision - 1 if stale else before.revision))

    @rule(asked=st.lists(racing, min_size=2, max_size=4))
    def at_once(self, asked):
        """Several ask several processes before anybody has an answer."""
        there = self.site.paper.standing()
        self.site.race([(each[1], self.in_a_race(there, *each)) for each in asked])
        self.all_know()

    def in_a_race(self, there, kind, _process, which, name, where, start, length, seen):
        if kind == "make" or not there:
            return Make(PEOPLE[name], self.meant(where, start, length, name))
        before = self.one_of(there, which)
        # Mostly who may.
        by = PEOPLE[name if seen else before.person]
        if kind == "stop":
            return Stop(by, before.id)
        if kind == "release":
            return Release(by, before.id, before.revision)
        begins = self.clock.now + start * HOUR
        changes = {
            "extend": Changes(end=before.end + length * HOUR),
            "longer": Changes(longer=length * HOUR),
            "shorten": Changes(end=before.end - length * HOUR),
            "move": Changes(places=tuple(map(place, where))),
            "shift": Changes(start=begins, end=begins + length * HOUR),
            "comment": Changes(comment=f"{length}"),
        }
        return Change(by, before.id, changes[kind], before.revision if seen else None)

    @rule(process=some_processes)
    def refresh(self, process):
        self.processes[process].look()

    @rule(passed=st.integers(1, 8))
    def time_goes_on(self, passed):
        self.clock.now += passed * HOUR

    @invariant()
    def no_two_have_one_gpu(self):
        self.site.check_database()

    def teardown(self):
        if self.site.agreed:
            self.all_know()

    def all_know(self):
        for process in self.processes:
            process.look()
        self.site.check_memory()
        self.site.check_histories()


@pytest.fixture
def processes(tmp_path, records_url):
    with ExitStack() as stack:
        yield [stack.enter_context(closing(Process(tmp_path, records_url))) for _ in range(PROCESSES)]


def test_no_two_ever_have_one_gpu(processes, records_url, clock):
    # A server takes longer to ask than a file.
    rounds = ROUNDS if records_url is None else ROUNDS // 2

    def machine():
        processes[0].records.write(empty).result()
        clock.now = NOW
        for process in processes:
            process.begin(clock)
        made = Bookings()
        made.site, made.processes, made.clock = Site(processes, clock), processes, clock
        return made

    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=rounds,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            # What depends on who came first is not made smaller by trying it again.
            phases=(Phase.reuse, Phase.generate),
        ),
    )


# Ann's is of now, on one card, and Bob's begins when it ends, on the other.
RACES = {
    "make": lambda _now, _next, there: Make(PEOPLE["root"], wanted(f"{there}:0", 2, 4, "eve")),
    "extend": lambda now, _next, _there: Change(By("ann"), now.id, Changes(end=NOW + 3 * HOUR)),
    # Of two who ask for an hour more, both get one.
    "longer": lambda now, _next, _there: Change(By("ann"), now.id, Changes(longer=HOUR)),
    "shorten": lambda now, _next, _there: Change(By("ann"), now.id, Changes(end=NOW + HOUR)),
    "move": lambda _now, next_, there: Change(By("bob"), next_.id, Changes(places=(place(f"{there}:0"),))),
    "earlier": lambda _now, next_, _there: Change(By("bob"), next_.id, Changes(start=NOW + HOUR)),
    "move earlier": lambda _now, next_, there: Change(
        By("bob"), next_.id, Changes(places=(place(f"{there}:0"), place(f"{there}:1")), start=NOW + HOUR)
    ),
    "end": lambda now, _next, _there: Stop(By("ann"), now.id),
    "cancel": lambda _now, next_, _there: Stop(By("bob"), next_.id),
    "release": lambda now, _next, _there: Release(By("root"), now.id, now.revision),
}


def test_every_two_and_three_at_once(processes, clock):
    """Each race on a node of its own."""
    several = [*combinations_with_replacement(RACES, 2), *combinations(RACES, 3)]
    nodes = [f"n{number}" for number in range(len(several))]
    for process in processes:
        process.begin(clock)
    site, won = Site(processes, clock), set()
    running = site.ask_many(0, By("ann"), [wanted(f"{node}:0", 0, 2) for node in nodes])
    coming = site.ask_many(1, By("bob"), [wanted(f"{node}:1", 2, 4, "bob") for node in nodes])
    for kinds, node, now, next_ in zip(several, nodes, running, coming, strict=True):
        part = site.part(now.id, next_.id)
        outcomes = part.race([(at, RACES[kind](now, next_, node)) for at, kind in enumerate(kinds)])
        won |= {kind for kind, outcome in zip(kinds, outcomes, strict=True) if isinstance(outcome, Reservation)}
        site.take(part)
    # Who always loses proves nothing.
    assert won == set(RACES)
    for process in processes:
        process.look()
    site.check_database()
    site.check_memory()
    site.check_histories()
