"""gpulse picks: which GPUs, and what is said when there are too few."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.errors import ReservationError
from gpulse.fleet.booked import Booked, Bookings
from gpulse.fleet.finder import Wish, find
from gpulse.fleet.views import GpuView
from gpulse.reservations.picking import pick
from gpulse.reservations.rules import overlapping
from tests.reservations.wanting import HOUR, NOW, places, reservation

GIB = 2**30
STATES = {
    "f": "free",
    "b": "busy",
    "i": "idle",
    "r": "reserved",
    "d": "down",
    "u": "unhealthy",
    "s": "stale",
    "n": "unknown",
}


def gpu(node, index, state="free", gigabytes=80, **more):
    return GpuView(
        node=node, id=f"{node}/{index}", index=index, state=state, memory_total_bytes=gigabytes * GIB,
        model=f"H100 {gigabytes}G", **more,
    )  # fmt: skip


def fleet(gigabytes=80, **states):
    return [gpu(node, at, STATES[state], gigabytes) for node, word in states.items() for at, state in enumerate(word)]


def picked(gpus, others=(), start=5.0, end=6.0, ids=None, held=(), **wish):
    chosen = pick(gpus, Wish(**wish), NOW + start * HOUR, NOW + end * HOUR, [*others, *held], NOW, ids, held)
    return " ".join(map(str, chosen))


def refused(code, *words, **named):
    with pytest.raises(ReservationError) as caught:
        picked(*words, **named)
    assert caught.value.code == code
    return caught.value


@pytest.mark.parametrize(
    ("gpus", "wish", "chosen"),
    [
        (fleet(a="ff", b="ffff"), {"n": 2}, "a:0 a:1"),
        (fleet(a="ffff", b="fbff"), {"n": 2}, "b:0 b:1"),
        (fleet(a="ff", b="ff"), {"n": 3}, "a:0 a:1 b:0"),
        (fleet(a="ff", b="ffff"), {"n": 3, "same_node": True}, "b:0 b:1 b:2"),
        ([*fleet(40, a="ff"), *fleet(80, b="ff")], {"n": 2, "memory_bytes": 60 * GIB}, "b:0 b:1"),
        (fleet(a="fduf"), {"n": 2}, "a:0 a:3"),
        (fleet(a="bis"), {"n": 3}, "a:0 a:1 a:2"),
        (fleet(a="nfnf"), {"n": 2}, "a:1 a:3"),
    ],
)
def test_for_later_whoever_is_there_now(gpus, wish, chosen):
    assert picked(gpus, **wish) == chosen


def test_for_now_only_what_is_free_now():
    assert picked(fleet(a="bisfr"), start=0, n=2) == "a:3 a:4"
    assert picked(fleet(a="bf"), start=1 / 60, n=1) == "a:1"
    assert picked(fleet(a="bf"), start=1.1 / 60, n=1) == "a:0"
    error = refused("conflict", fleet(a="bisf"), start=-0.01, n=2)
    assert error.message == "1 of 2 such GPUs are free now and not reserved at that time"
    assert error.alternatives == []


def test_not_what_is_reserved_then():
    others = [reservation("a:0 a:1", 0, 5.5, "bob"), reservation("a:2", 6, 9, "bob"), reservation("a:3", 0, 5, "bob")]
    assert picked(fleet(a="ffff"), others, n=2) == "a:2 a:3"
    assert picked(fleet(a="ffff"), others, start=5.5, end=6, n=4) == "a:0 a:1 a:2 a:3"


def test_what_is_held_for_who_wishes_comes_first_and_as_a_whole():
    held = [reservation("b:1 b:2", 0, 1, "ann", id="h", hold=True)]
    gpus = fleet(a="ff", b="frrf")
    assert picked(gpus, start=0, n=2, held=held) == "b:1 b:2"
    assert picked(gpus, start=0, n=3, held=held) == "b:0 b:1 b:2"
    assert picked(gpus, start=0, n=5, held=held) == "a:0 b:0 b:1 b:2 b:3"
    # Of less than is held nothing: the rest would be lost.
    assert picked(gpus, start=0, n=1, held=held) == "b:0"
    assert refused("conflict", fleet(b="brrb"), start=0, n=1, held=held)
    # They have begun to use a part of it.
    assert picked(fleet(a="ff", b="fbrf"), start=0, n=2, held=held) == "b:0 b:3"
    # Two holds, of which both can be had, or on one node one.
    held.append(reservation("a:0", 0, 1, "ann", id="g", hold=True))
    gpus = fleet(a="rf", b="frrf")
    assert picked(gpus, start=0, n=3, held=held) == "a:0 b:1 b:2"
    assert picked(gpus, start=0, n=3, same_node=True, held=held) == "b:0 b:1 b:2"
    assert picked(gpus, start=0, n=1, held=held) == "a:0"
    assert picked(
        fleet(a="r", b="rr"), start=0, n=3, held=[*held[1:], reservation("b:0 b:1", 0, 1, id="k", hold=True)]
    ) == ("a:0 b:0 b:1")
    # The one that fits, whichever has the lower number; and two that do together.
    held = [reservation("a:0", 0, 1, id="g", hold=True), reservation("a:1 a:2", 0, 1, id="h", hold=True)]
    assert picked(fleet(a="rrrff"), start=0, n=2, held=held) == "a:1 a:2"
    assert picked(fleet(a="rrr"), start=0, n=2, held=held) == "a:1 a:2"
    assert picked(fleet(a="rrr"), start=0, n=3, held=held) == "a:0 a:1 a:2"
    held += [reservation("b:0 b:1 b:2", 0, 1, id="k", hold=True), reservation("c:0 c:1", 0, 1, id="l", hold=True)]
    assert picked(fleet(a="rrr", b="rrr", c="rr"), start=0, n=4, held=held) == "a:0 b:0 b:1 b:2"
    assert picked(fleet(a="brr", b="rrr", c="rr"), start=0, n=4, held=held[1:]) == "a:1 a:2 c:0 c:1"
    assert picked(fleet(a="rrr", b="rrr", c="rr"), start=0, n=3, same_node=True, held=held) == "b:0 b:1 b:2"
    assert refused("conflict", fleet(a="rrr", b="rrrb", c="rr"), start=0, n=4, same_node=True, held=held)
    # One that can never be had as a whole keeps none from being picked.
    held = [reservation("a:0 a:1 a:2", 0, 1, id="h", hold=True), reservation("b:0 b:1", 0, 1, id="g", hold=True)]
    assert picked(fleet(a="rrb", b="rr", c="f"), start=0, n=3, held=held) == "b:0 b:1 c:0"
    apart = [reservation("a:0 b:0", 0, 1, id="h", hold=True)]
    assert picked(fleet(a="rf", b="rf", c="ff"), start=0, n=2, same_node=True, held=apart) == "c:0 c:1"
    held = [reservation("b:1 b:2", 0, 1, "ann", id="h", hold=True)]
    # Somebody else has it soon after.
    others = [reservation("b:2", 0.5, 2, "bob", id="o")]
    assert picked(fleet(a="ff", b="brrb"), others, start=0, n=2, held=held[:1]) == "a:0 a:1"


def test_a_hold_that_is_not_there_as_it_was_held_keeps_nothing_else_away():
    """A card that is split by now, and an instance of one that is whole again."""
    parts = [gpu("a", 0, "reserved", parent_uuid="GPU-0", mig_index=index) for index in (0, 1)]
    card = gpu("a", 0, "reserved", counted=False)
    whole = [reservation("a:0", 0, 1, "ann", id="h", hold=True)]
    assert picked([card, *parts, *fleet(b="f")], start=0, n=1, held=whole) == "b:0"
    part = [reservation("a:0.1", 0, 1, "ann", id="h", hold=True)]
    assert picked(fleet(a="r", b="f"), start=0, n=1, held=part) == "b:0"
    assert picked([card, *parts, *fleet(b="f")], start=0, n=1, held=part) == "a:0.1"


def test_split_cards_and_their_instances():
    mig = [
        gpu("a", 0, counted=False, uuid="GPU-0", mig_enabled=True),
        gpu("a", 0, uuid="MIG-0", parent_uuid="GPU-0", mig_index=0),
        gpu("a", 0, uuid="MIG-1", parent_uuid="GPU-0", mig_index=1),
        gpu("a", 1, uuid="GPU-1"),
    ]
    assert picked(mig, n=3) == "a:0.0 a:0.1 a:1"
    assert picked(mig, [reservation("a:0.1", 0, 9, "bob")], n=2) == "a:0.0 a:1"
    # Whoever booked the card before it was split has all of it; one that was split then is not whole for others.
    assert picked(mig, [reservation("a:0", 0, 9, "bob")], n=1) == "a:1"
    assert picked(mig, [reservation("a:1.3", 0, 9, "bob")], n=2) == "a:0.0 a:0.1"


def test_a_card_of_which_somebody_has_an_instance_is_for_nobody_else():
    """It was split when it was booked, and is whole again: neither now nor within the time it is free for others."""
    card = gpu("a", 0, uuid="GPU-0")
    instance = Booked("x", "bob", NOW, NOW + HOUR)
    soon = instance._replace(start=NOW + HOUR, end=NOW + 2 * HOUR)
    for bookings, seconds, there in [
        (Bookings.of({("a", "0.1"): instance}, {}, {}), 0.0, 0),
        (Bookings.of({}, {("a", "0.1"): soon}, {}), 2 * HOUR, 0),
        (Bookings.of({}, {("a", "0.1"): soon}, {}), HOUR, 1),
        (Bookings.of({("a", "1.1"): instance}, {}, {}), 0.0, 1),
        (Bookings.of({("b", "0.1"): instance}, {}, {}), 0.0, 1),
    ]:
        wish = Wish(n=1, me="ann", for_seconds=seconds)
        assert len(find([card], wish, bookings=bookings, now=NOW).gpus) == there
        own = Wish(n=1, me="bob", for_seconds=seconds)
        assert find([card], own, bookings=bookings, now=NOW).found
    for others in ([reservation("a:0.1", 0, 9, "bob")], [reservation("a:0.1", 5.5, 9, "bob")]):
        refused("conflict", [card], others, n=1)


def test_only_those_that_a_filter_leaves():
    assert picked(fleet(a="ff", b="ff"), n=1, ids={"b/1"}) == "b:1"


def test_what_the_fleet_has_not():
    assert "there are 2 such GPUs, and 3 are wanted" in refused("no_gpus", fleet(a="ff"), n=3).message
    assert "of the others 1 down" in refused("no_gpus", fleet(a="fd"), n=2).message
    assert "of the others 1 down, 2 unknown" in refused("no_gpus", fleet(a="fndn"), n=2, start=0).message
    error = refused("no_gpus", fleet(a="ff", b="ff"), n=3, same_node=True)
    assert (error.status, error.message) == (422, "no node has 3 such GPUs; the most on one is 2")
    assert refused("no_gpus", fleet(a="f"), n=2).message == "there is 1 such GPU, and 2 are wanted"
    assert refused("no_gpus", fleet(a="d"), n=1).message == "there is no such GPU that can be given to anybody: 1 down"
    error = refused("no_gpus", [], n=1)
    assert (error.message, error.detail) == ("there is no such GPU", "ask for another model, or for less memory")
    refused("no_gpus", [GpuView(node="a", id="a", state="free")], n=1)


def test_the_next_time_there_are_enough():
    others = [reservation("a:0", 5, 7, "bob"), reservation("a:1", 5, 8, "bob"), reservation("a:1", 8.5, 20, "bob")]
    error = refused("conflict", fleet(a="ff", b="f"), others, n=2, same_node=True)
    assert error.message == "1 of 2 such GPUs are not reserved at that time"
    (later,) = error.alternatives
    # Half an hour between the two is not enough for an hour.
    assert (later.start, later.end, later.places) == (NOW + 20 * HOUR, NOW + 21 * HOUR, places("a:0 a:1"))


SPANS = st.tuples(st.integers(0, 15), st.integers(1, 5), st.sampled_from(["a:0", "a:1", "b:0", "b:1", "b:2"]))


@given(st.lists(SPANS, max_size=15), st.integers(0, 10), st.integers(1, 5), st.integers(1, 5), st.booleans())
def test_what_is_picked_can_be_had_and_nothing_sooner(spans, start, length, count, same_node):
    others = []
    for number, (begins, hours, where) in enumerate(spans):
        one = reservation(where, begins, begins + hours, "bob", id=str(number))
        if not overlapping(one.places, one.start, one.end, others):
            others.append(one)
    gpus = fleet(a="ff", b="fff")
    wish = {"n": count, "same_node": same_node}

    def possible(at):
        free = [
            place for place in places("a:0 a:1 b:0 b:1 b:2")
            if not overlapping([place], NOW + at * HOUR, NOW + (at + length) * HOUR, others)
        ]  # fmt: skip
        most = max(sum(place.node == node for place in free) for node in "ab")
        return (most if same_node else len(free)) >= count

    try:
        chosen = places(picked(gpus, others, start, start + length, **wish))
    except ReservationError as error:
        assert not possible(start)
        if error.code == "conflict":
            (later,) = error.alternatives
            hours = (later.start - NOW) / HOUR
            assert not any(possible(at) for at in range(start, int(hours)))
            assert not overlapping(later.places, later.start, later.end, others)
            assert len(set(later.places)) == count
        return
    assert len(set(chosen)) == count
    assert not overlapping(chosen, NOW + start * HOUR, NOW + (start + length) * HOUR, others)
    assert not same_node or len({place.node for place in chosen}) == 1
