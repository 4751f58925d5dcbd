"""Reservations beside a fleet: what is found little by little is what would be found by looking at all at once."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from gpulse.config.reservations import Reservations as Settings
from gpulse.errors import ReservationError
from gpulse.fleet.booked import Booked, Bookings
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.places import Place as NodePlace
from gpulse.reservations import reality
from gpulse.reservations.desk import Desk
from gpulse.reservations.model import Changes, Place, Reservation, Wanted
from gpulse.reservations.reality import Memory
from gpulse.reservations.rules import By
from gpulse.reservations.spots import AHEAD_SECONDS
from gpulse.reservations.table import Reservations
from gpulse.reservations.uses import Uses
from gpulse.store import Records
from tests.fleet.lines import GIB, gpu, process, snapshot

NOW = 1_800_000_000.0
ADMIN = By("root", admin=True)
NODES, GPUS = 6, 4


class World:
    def __init__(self, folder: Path) -> None:
        self.now = NOW
        self.records = Records(folder)
        self.table = Reservations(self.records, lambda: self.now)
        self.fleet = Fleet(clock=lambda: 5000.0, wall=lambda: self.now)
        for number in range(NODES):
            self.fleet.place(NodePlace(name=f"n{number}"))
            self.tell(number, {})
        self.desk = Desk(self.table, self.fleet, Settings(), lambda: self.now)

    def tell(self, number: int, people: dict[int, str], seq: int = 1) -> None:
        cards = [gpu(index, uuid=f"GPU-{number}-{index}") for index in range(GPUS)]
        there = [
            process(100 + index, f"GPU-{number}-{index}", user=user, start_time=self.now)
            for index, user in people.items()
        ]
        self.fleet.line(f"n{number}", snapshot(*cards, processes=there, seq=seq))

    def make(self, person: str, *places: Place, start: float, end: float) -> str:
        wanted = Wanted(person=person, places=places, start=start, end=end)
        return asyncio.run(self.table.make(wanted, ADMIN)).id


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.records.close()


@pytest.mark.parametrize("seed", range(4))
def test_the_same_as_all_at_once(world: World, seed: int):
    random = Random(seed)
    people = ["ann", "bob", "eve"]
    for _ in range(40):
        node = random.randrange(NODES)
        places = [Place(f"n{node}", str(index)) for index in random.sample(range(GPUS), random.randint(1, 3))]
        if random.random() < 0.3:
            places.append(Place(f"n{(node + 1) % NODES}", "0"))
        start = NOW + random.uniform(0, 6 * 3600)
        wanted = Wanted(person=random.choice(people), places=tuple(places), start=start, end=start + 3600)
        asyncio.run(world.table.make_many([wanted], ADMIN))
    for seq in range(2, 60):
        world.now += random.choice((1.0, 1.0, 60.0, 900.0))
        node = random.randrange(NODES)
        there = {index: random.choice(people) for index in range(GPUS) if random.random() < 0.5}
        world.tell(node, there, seq)
        if random.random() < 0.1:
            world.fleet.down(f"n{(node + 1) % NODES}", "unplugged")
        world.desk.look()
        nearby = world.table.between(world.now - reality.OVERRUN_SECONDS, world.now + 3600)
        uses = Uses(world.fleet)
        for name in {place.node for one in nearby for place in one.places}:
            uses.want(name, {place for one in nearby for place in one.places if place.node == name})
        uses.look(world.now)
        # Since when nobody came is remembered; the others are as they are.
        expected, _ = reality.findings(nearby, world.now, uses.by_place, Memory(world.now), Settings())

        def key(one: reality.Finding) -> tuple[str, str, str, str]:
            return one.kind, one.reservation, str(one.place), one.other or ""

        told = [one for one in world.desk.findings if one.kind != "no_show"]
        assert sorted(map(key, told)) == sorted(map(key, expected))


def booked(one: Reservation | None) -> Booked | None:
    return None if one is None else Booked(one.id, one.person, one.start, one.last, one.comment, one.hold)


@pytest.mark.parametrize("seed", range(4))
def test_booked_as_if_looked_at_all_of_them(world: World, seed: int):
    """Only what changed is looked at again: nothing is forgotten by that."""
    random = Random(seed)
    places = [Place(f"n{node}", index) for node in range(NODES) for index in ("0", "1", "1.0", "1.1")]
    made: list[str] = []
    for _ in range(80):
        world.now += random.choice((0.0, 1.0, 600.0, 3000.0, -500.0))
        start = world.now + random.choice((0.0, random.uniform(0, 20_000)))
        length = random.uniform(60, 9000)
        where = tuple(random.sample(places, random.randint(1, 3)))
        deed = random.choice((make_one, make_one, make_one, change_one, end_one))
        deed(world, made, random.choice(("ann", "bob", "eve")), where, start, start + length)
        world.desk.look()
        told = world.fleet.bookings
        until = world.now + AHEAD_SECONDS
        around = {place: world.table.around(place, world.now, until) for place in places}
        parts = [{place: booked(some[number]) for place, some in around.items()} for number in range(3)]
        now, later, after = ({place: one for place, one in part.items() if one is not None} for part in parts)
        assert told == Bookings.of(now, later, after)
    assert made


def make_one(world: World, made: list[str], person: str, places: tuple[Place, ...], start: float, end: float) -> None:
    with suppress(ReservationError):
        made.append(world.make(person, *places, start=start, end=end))


def change_one(world: World, made: list[str], person: str, places: tuple[Place, ...], start: float, end: float) -> None:
    del start
    with suppress(ReservationError, IndexError):
        change = Changes(person=person, places=places, end=end)
        asyncio.run(world.table.change(made[-1], change, ADMIN))


def end_one(world: World, made: list[str], person: str, places: tuple[Place, ...], start: float, end: float) -> None:
    del person, places, start, end
    with suppress(ReservationError, IndexError):
        asyncio.run(world.table.end(made[len(made) // 2], ADMIN))


def test_what_begins_and_ends_is_booked_at_its_moment(world: World):
    world.make("ann", Place("n0", "1"), start=NOW + 100, end=NOW + 200)

    def state() -> str:
        world.desk.look()
        world.fleet.tick()
        return world.fleet.gpus_of("n0")[1].state

    assert state() == "free"
    seen = world.fleet.reservations
    world.now = NOW + 99.5
    assert state() == "free"
    assert world.fleet.reservations == seen
    world.now = NOW + 100
    assert (state(), world.fleet.reservations) == ("reserved", seen + 1)
    world.now = NOW + 200
    assert (state(), world.fleet.reservations) == ("free", seen + 2)


def test_blocked_is_told_when_it_comes_near(world: World):
    world.tell(0, {1: "bob"}, 2)
    world.make("ann", Place("n0", "1"), start=NOW + 2 * 3600, end=NOW + 3 * 3600)
    world.desk.look()
    assert world.desk.findings == []
    world.now = NOW + 3600
    world.desk.look()
    assert [(one.kind, one.other) for one in world.desk.findings] == [("blocked", "bob")]
    world.now = NOW + 2 * 3600
    world.desk.look()
    assert [(one.kind, one.other) for one in world.desk.findings] == [("squatter", "bob")]


def test_what_another_process_made_is_seen(world: World, tmp_path: Path):
    with Records(tmp_path) as other:
        wanted = Wanted(person="ann", places=(Place("n0", "0"),), start=NOW, end=NOW + 60)
        asyncio.run(Reservations(other, lambda: NOW).make(wanted, ADMIN))
    assert asyncio.run(world.table.refresh()) == ""
    world.desk.look()
    world.fleet.tick()
    assert world.fleet.gpus_of("n0")[0].state == "reserved"


def test_who_is_on_a_place(world: World):
    fleet = world.fleet
    card = gpu(0, uuid="GPU-0", mig_enabled=True)
    part = gpu(0, uuid="MIG-1", parent_uuid="GPU-0", mig_index=1, memory_total_bytes=10 * GIB)
    other = gpu(1, uuid="GPU-1")
    processes = [
        process(7, "MIG-1", user="ann", start_time=NOW - 50),
        process(8, "MIG-1", user="ann", start_time=NOW - 90),
        process(9, "GPU-1", user=None),
        process(10, "GPU-1", user="bob", vanished=True),
    ]
    processes.append(process(11, "GPU-1", user="root", gpus=[{"uuid": "GPU-1", "kinds": ["graphics"]}]))
    fleet.line("n0", snapshot(card, part, other, processes=processes, seq=5))
    uses = Uses(fleet)
    uses.want("n0", [Place("n0", "0"), Place("n0", "0.1"), Place("n0", "1")])
    uses.want("gone", [Place("gone", "0")])
    assert uses.look(NOW) == ["n0", "gone"]
    assert uses.look(NOW) == []
    ann = reality.Seen("ann", NOW - 90, (7, 8))
    assert uses.by_place == {
        Place("n0", "0"): reality.Use(True, (ann,)),
        Place("n0", "0.1"): reality.Use(True, (ann,)),
        Place("n0", "1"): reality.Use(True, (), unknown=True),
        Place("gone", "0"): reality.Use(False, ()),
    }
    fleet.place(NodePlace(name="gone"))
    fleet.line("gone", snapshot(gpu(0, uuid="GPU-9"), processes=[process(1, "GPU-9", user="bob")]))
    assert uses.look(NOW) == ["gone"]
    # It does not tell when it began: since the hub saw it first.
    fleet.line("gone", snapshot(gpu(0, uuid="GPU-9"), processes=[process(1, "GPU-9", user="bob")], seq=2))
    assert uses.look(NOW + 10) == []


def test_gpus_that_are_not_there_or_broken(world: World):
    places = [Place("n0", index) for index in ("0", "1", "1.0", "2", "3")]
    uses = Uses(world.fleet)
    uses.want("n0", places)

    def told(*cards: object, seq: int, **people: str) -> list[reality.Use]:
        on = [process(7, uuid.replace("_", "-"), user=who, start_time=NOW) for uuid, who in people.items()]
        world.fleet.line("n0", snapshot(*cards, processes=on, seq=seq))
        world.fleet.tick()
        uses.look(NOW)
        return [uses.by_place[place] for place in places]

    whole, eve, gone = reality.Use(True), (reality.Seen("eve", NOW, (7,)),), reality.Use(False)
    # Two have fallen off the bus, one is broken, and of one an instance is reserved that was there once.
    cards = (gpu(0, uuid="GPU-0", fault="GPU is lost"), gpu(1, uuid="GPU-1"))
    assert told(*cards, seq=2) == [
        reality.Use(True, usable=False), whole, reality.Use(True, usable=False), gone, gone
    ]  # fmt: skip
    # Who is on a whole card is on its instances.
    assert told(*cards, seq=3, GPU_1="eve")[1:3] == [reality.Use(True, eve), reality.Use(True, eve, usable=False)]
    # The card has other instances now: who is on those is nowhere else.
    other = gpu(1, uuid="MIG-1", parent_uuid="GPU-1", mig_index=1, memory_total_bytes=10 * GIB)
    split = gpu(1, uuid="GPU-1", mig_enabled=True)
    assert told(split, other, seq=4, MIG_1="eve") == [gone, reality.Use(True, eve), gone, gone, gone]
    # Of a broken card the instances are, too.
    first = gpu(1, uuid="MIG-0", parent_uuid="GPU-1", mig_index=0, memory_total_bytes=10 * GIB)
    broken = gpu(1, uuid="GPU-1", mig_enabled=True, remapped_rows_failed=True)
    assert told(broken, first, seq=5)[1:3] == [reality.Use(True, usable=False)] * 2


def test_nobody_loses_what_has_fallen_off_the_bus(world: World):
    world.desk.settings = Settings(no_show_minutes=1, release_minutes=1, release_no_shows=True)
    for index in ("1", "3"):
        world.make("ann", Place("n0", index), start=NOW, end=NOW + 3600)
    world.fleet.line("n0", snapshot(*(gpu(index, uuid=f"GPU-0-{index}") for index in range(3)), seq=2))
    released = []
    for _ in range(200):
        world.now += 1
        world.desk.look()
        released += asyncio.run(world.desk.release_no_shows())
    assert [(one.places, one.last) for one in released] == [((Place("n0", "1"),), NOW + 120)]


def test_a_card_that_is_used_by_nobody_who_is_known(world: World):
    """Figures come more often than processes: what they tell is seen at once."""
    uses, place = Uses(world.fleet), Place("n0", "1")
    uses.want("n0", [place])
    world.fleet.tick()
    uses.look(NOW)
    assert uses.by_place == {place: reality.Use(True)}
    busy = {"utilization_ratio": [0.0, 0.99, 0.0, 0.0]}
    world.fleet.line("n0", json.dumps({"update": 1, "seq": 2, "time": 1002.0, "gpus": busy}).encode())
    world.fleet.tick()
    assert uses.look(NOW + 1) == ["n0"]
    assert uses.by_place == {place: reality.Use(True, unknown=True)}


def test_of_a_card_that_cannot_be_read_nothing_is_claimed(world: World):
    """Neither that nobody came, nor that somebody else is there."""
    world.desk.settings = Settings(no_show_minutes=1, release_minutes=1, release_no_shows=True)
    place = Place("n0", "0")
    world.make("ann", place, start=NOW, end=NOW + 3600)
    unread = gpu(0, uuid="GPU-0-0", failed_fields=["utilization_ratio"], utilization_ratio=None)
    for seq, people in ((2, []), (3, [process(9, "GPU-0-0", user="bob", start_time=NOW)])):
        world.fleet.line("n0", snapshot(unread, processes=people, seq=seq))
        for _ in range(200):
            world.now += 1
            world.fleet.tick()
            world.desk.look()
            assert asyncio.run(world.desk.release_no_shows()) == []
        assert list(world.desk.findings) == []
    uses = Uses(world.fleet)
    uses.want("n0", [place])
    uses.look(NOW)
    assert uses.by_place == {place: reality.Use(True, unknown=True)}
