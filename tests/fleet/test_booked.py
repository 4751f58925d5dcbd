"""What the fleet tells of reservations, and to whom."""

import pytest

from gpulse.fleet.booked import Booked
from gpulse.fleet.finder import Wish, find, place_of
from gpulse.fleet.fleet import Fleet, FleetSettings
from gpulse.fleet.frames import Frames
from gpulse.fleet.places import Place
from gpulse.fleet.sight import FULL, Sight
from tests.fleet.lines import GIB, gpu, process, snapshot

NOW = 1000.0
DAY = 86400.0
ANN = Booked("a1", "ann", NOW - 60, NOW + 3600, "thesis")
BOB = Booked("b1", "bob", NOW + 7200, NOW + 9000)


@pytest.fixture
def fleet() -> Fleet:
    fleet = Fleet(FleetSettings(people={"ann": "Ann Lee"}), clock=lambda: 5000.0, wall=lambda: NOW)
    fleet.place(Place(name="n1"))
    fleet.line("n1", snapshot(*(gpu(index, uuid=f"GPU-{index}") for index in range(3))))
    fleet.tick()
    return fleet


def states(fleet: Fleet) -> list[str]:
    fleet.tick()
    return [one.state for one in fleet.gpus()]


def test_reserved_now_and_next(fleet: Fleet):
    fleet.book({("n1", "1"): ANN}, {("n1", "1"): BOB, ("n1", "2"): BOB})
    assert states(fleet) == ["free", "reserved", "free"]
    none, both, later = fleet.gpus()
    assert none.reservation is None
    assert none.next_reservation is None
    assert both.reservation is not None
    assert (both.reservation.person, both.reservation.name, both.reservation.comment) == ("ann", "Ann Lee", "thesis")
    assert (both.reservation.start, both.reservation.end) == (ANN.start, ANN.end)
    assert later.reservation is None
    assert later.next_reservation is not None
    assert later.next_reservation.id == "b1"
    fleet.book({}, {})
    assert states(fleet) == ["free", "free", "free"]


def test_what_begins_in_weeks_is_not_told_with_the_gpu(fleet: Fleet):
    fleet.book({}, {("n1", "0"): BOB._replace(start=NOW + 8 * DAY, end=NOW + 9 * DAY)})
    assert fleet.gpus()[0].next_reservation is None


def test_a_card_that_is_replaced_stays_reserved(fleet: Fleet):
    fleet.book({("n1", "0"): ANN}, {})
    fleet.line("n1", snapshot(gpu(0, uuid="GPU-other"), gpu(1, uuid="GPU-1"), seq=2))
    assert states(fleet) == ["reserved", "free"]


def test_a_mig_instance_is_a_place_of_its_own(fleet: Fleet):
    card = gpu(0, uuid="GPU-0", mig_enabled=True)
    parts = [gpu(0, uuid=f"MIG-{n}", parent_uuid="GPU-0", mig_index=n, memory_total_bytes=10 * GIB) for n in (0, 1)]
    fleet.line("n1", snapshot(card, *parts, seq=2))
    fleet.book({("n1", "0.1"): ANN}, {})
    fleet.tick()
    assert [one.state for one in fleet.gpus() if one.counted] == ["free", "reserved"]


def test_a_card_of_which_an_instance_is_booked_is_not_free_once_it_is_whole_again(fleet: Fleet):
    fleet.book({("n1", "0.1"): ANN}, {("n1", "1.0"): BOB})
    assert states(fleet) == ["reserved", "free", "free"]
    first, second, _ = fleet.gpus()
    assert first.reservation is not None
    assert first.reservation.person == "ann"
    assert second.next_reservation is not None
    assert second.next_reservation.person == "bob"
    assert found(fleet, 2) == ["n1:1", "n1:2"]
    assert found(fleet, 3, "ann") == ["n1:0", "n1:1", "n1:2"]
    # A card that is split has none of that: its instances have.
    card = gpu(0, uuid="GPU-0", mig_enabled=True)
    part = gpu(0, uuid="MIG-1", parent_uuid="GPU-0", mig_index=1, memory_total_bytes=10 * GIB)
    fleet.line("n1", snapshot(card, part, seq=2))
    fleet.tick()
    assert [one.reservation and one.reservation.person for one in fleet.gpus()] == [None, "ann"]


def test_a_node_that_comes_later_finds_its_reservations(fleet: Fleet):
    fleet.book({("n2", "0"): ANN}, {})
    fleet.place(Place(name="n2"))
    fleet.line("n2", snapshot(gpu(0, uuid="GPU-9")))
    assert states(fleet)[-1] == "reserved"


def test_who_is_hidden_has_neither_name_nor_comment(fleet: Fleet):
    fleet.book({("n1", "0"): ANN}, {("n1", "0"): BOB})

    def seen(sight: Sight) -> tuple[str, str, str]:
        view = fleet.gpus_of("n1", sight)[0].reservation
        assert view is not None
        return view.person, view.name, view.comment

    assert seen(FULL) == seen(Sight("names")) == ("ann", "Ann Lee", "thesis")
    assert seen(Sight("anonymous")) == ("somebody", "somebody", "")
    assert seen(Sight("anonymous", frozenset({"ann"}))) == ("ann", "Ann Lee", "thesis")
    # What is kept for those who see the same is not shared with who has a reservation.
    assert fleet.narrowed(Sight("anonymous", frozenset({"ann"}))).own == {"ann"}
    assert fleet.narrowed(Sight("anonymous", frozenset({"eve"}))).own == frozenset()


def found(fleet: Fleet, n: int = 1, me: str | None = None, seconds: float = 0.0) -> list[str]:
    wish = Wish(n=n, me=me, for_seconds=seconds)
    return [place_of(one) for one in find(fleet.gpus(), wish, bookings=fleet.bookings, now=NOW).gpus]


def test_free_leaves_out_what_others_have_within_the_time(fleet: Fleet):
    fleet.book({("n1", "0"): ANN}, {("n1", "1"): BOB})
    fleet.tick()
    assert found(fleet, 2) == ["n1:1", "n1:2"]
    assert found(fleet, 2, seconds=7200.0) == ["n1:1", "n1:2"], "one may begin when another ends"
    assert found(fleet, 2, seconds=7201.0) == []
    assert found(fleet, 1, seconds=7201.0) == ["n1:2"]
    assert found(fleet, 2, "bob", 7201.0) == ["n1:1", "n1:2"]
    missing = find(fleet.gpus(), Wish(n=2, for_seconds=7201.0), bookings=fleet.bookings, now=NOW)
    assert missing.explanation.endswith("; 1 is reserved; 1 is free now but reserved within the time")


def test_what_is_mine_next_does_not_hide_who_comes_after(fleet: Fleet):
    mine = BOB._replace(person="ann")
    after = BOB._replace(start=BOB.start + 3600, end=BOB.end + 3600)
    for spot in (("n1", "0"), ("n1", "1"), ("n1", "2")):
        fleet.book({}, {spot: mine}, {spot: after})
        fleet.tick()
        assert len(found(fleet, 3, "ann", after.start - NOW)) == 3
        assert found(fleet, 3, "ann", after.start - NOW + 1) == []
        assert found(fleet, 3, None, mine.start - NOW + 1) == []


def test_what_is_reserved_for_me_is_free_for_me_and_taken_first(fleet: Fleet):
    fleet.book({("n1", "1"): ANN}, {})
    fleet.tick()
    assert found(fleet, 1, "ann") == ["n1:1"]
    assert found(fleet, 2, "ann") == ["n1:0", "n1:1"]
    assert found(fleet, 3, "bob") == []
    fleet.line("n1", snapshot(*(gpu(n, uuid=f"GPU-{n}") for n in range(3)), processes=[process(1, "GPU-1")], seq=2))
    fleet.tick()
    assert found(fleet, 1, "ann") == ["n1:0"], "somebody is on it"


def test_what_is_held_is_found_by_nobody_else_not_even_by_the_same_person(fleet: Fleet):
    """Of two programs of one person that look for GPUs each gets its own."""
    fleet.book({("n1", "0"): ANN._replace(hold=True)}, {})
    fleet.tick()
    assert found(fleet, 1, "ann") == ["n1:1"]
    assert found(fleet, 3, "ann") == []


def test_who_has_a_card_has_its_instances(fleet: Fleet):
    card = gpu(0, uuid="GPU-0", mig_enabled=True)
    parts = [gpu(0, uuid=f"MIG-{n}", parent_uuid="GPU-0", mig_index=n, memory_total_bytes=10 * GIB) for n in (0, 1)]
    fleet.line("n1", snapshot(card, *parts, seq=2))
    fleet.book({("n1", "0"): ANN}, {("n1", "0.1"): BOB})
    fleet.tick()
    assert [one.state for one in fleet.gpus() if one.counted] == ["reserved", "reserved"]
    assert found(fleet, 2, "ann") == ["n1:0.0", "n1:0.1"]
    assert found(fleet, 2, "ann", 7201.0) == []


def test_frames_say_that_reservations_changed(fleet: Fleet):
    frames = Frames(fleet)
    frames.step(NOW)
    assert b'"reservations":0' in frames.full()
    fleet.reservations += 1
    fleet.tick()
    frames.step(NOW)
    delta = frames.delta()
    assert delta is not None
    assert b'"reservations":1' in delta
