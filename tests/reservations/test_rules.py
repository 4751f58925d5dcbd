"""The rules: what may be reserved, by whom, and what may become of a reservation."""

import math
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.errors import ReservationError
from gpulse.reservations.alternatives import alternatives
from gpulse.reservations.model import Place, Wanted, in_order, storable
from gpulse.reservations.rules import (
    By,
    Limits,
    begun,
    check_change,
    check_new,
    check_stop,
    may_change,
    may_stop,
    overlapping,
)
from tests.reservations.wanting import ANN, BOB, DAY, HOUR, NOW, ROOT, place, places, reservation, wanted

LIMITED = By("ann", limits=Limits(ahead_days=10, longest_hours=48, most_gpus=4, most_reservations=3))


def refused(code, check, *words):
    with pytest.raises(ReservationError) as caught:
        check(*words)
    assert caught.value.code == code
    assert caught.value.message
    assert caught.value.detail
    return caught.value


def changed(before, **fields):
    return msgspec.structs.replace(before, **fields)


@pytest.mark.parametrize(
    ("one", "other", "shares"),
    [
        ("a:0", "a:0", True),
        ("a:0", "a:1", False),
        ("a:0", "b:0", False),
        ("a:0", "a:0.1", True),
        ("a:0.1", "a:0", True),
        ("a:0.1", "a:0.1", True),
        ("a:0.1", "a:0.2", False),
        ("a:1", "a:10", False),
        ("a:2.3", "a:23", False),
        ("a:2", "a:23.1", False),
    ],
)
def test_who_has_a_card_has_its_instances(one, other, shares):
    assert place(one).shares(place(other)) is shares
    assert place(other).shares(place(one)) is shares
    there = reservation(other, 0, 2, "bob")
    assert overlapping(places(one), NOW, NOW + HOUR, [there]) == ([there] if shares else [])


@pytest.mark.parametrize(
    ("start", "end", "taken"),
    [(0, 1, False), (0, 1.001, True), (1, 2, True), (1.2, 1.4, True), (0, 5, True), (2, 3, False), (1.999, 3, True)],
)
def test_one_may_begin_when_another_ends(start, end, taken):
    there = [reservation("a:0", 1, 2, "bob")]
    if taken:
        error = refused("conflict", check_new, wanted("a:0 a:1", start, end), there, ANN, NOW)
        assert (error.status, error.conflicts) == (409, there)
        assert "a:0 is reserved" in error.message
        assert "bob" not in str(error)
    else:
        check_new(wanted("a:0 a:1", start, end), there, ANN, NOW)


def test_what_was_cancelled_or_ended_holds_nothing():
    cancelled = reservation("a:0", 5, 9, "bob", ended_at=NOW, ending="cancelled")
    ended = reservation("a:0", -2, 9, "bob", ended_at=NOW, ending="ended")
    assert (cancelled.state(NOW), ended.state(NOW)) == ("cancelled", "over")
    assert not cancelled.holds
    check_new(wanted("a:0", 0, 9), [cancelled, ended], ANN, NOW)


def test_a_start_of_a_moment_ago_is_now():
    assert begun(NOW - 60, NOW) == NOW
    assert begun(NOW - 61, NOW) == NOW - 61
    assert begun(NOW + 1, NOW) == NOW + 1
    check_new(wanted("a:0", -60 / 3600), [], ANN, NOW)
    # What ended in that moment is not in its way.
    check_new(wanted("a:0", -60 / 3600), [reservation("a:0", -2, 0, "bob")], ANN, NOW)
    refused("in_the_past", check_new, wanted("a:0", -61 / 3600), [], ANN, NOW)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"places": ()}, "no_gpus"),
        ({"end": NOW}, "ends_before_start"),
        ({"end": NOW - DAY}, "ends_before_start"),
        ({"start": NOW - DAY}, "in_the_past"),
        ({"start": NOW - 2 * DAY, "end": NOW - DAY}, "in_the_past"),
        ({"end": math.nan}, "too_far"),
        ({"start": math.nan}, "too_far"),
        ({"end": math.inf}, "too_far"),
        ({"end": 1e12}, "too_far"),
        ({"person": "bob"}, "not_yours"),
    ],
)
def test_what_cannot_be(fields, code):
    asked = msgspec.structs.replace(wanted("a:0"), **fields)
    refused(code, check_new, asked, [], ANN, NOW)
    if code == "not_yours":
        check_new(asked, [], ROOT, NOW)
    else:
        refused(code, check_new, asked, [], ROOT, NOW)


@pytest.mark.parametrize(
    ("asked", "others", "code"),
    [
        (wanted("a:0", 240, 241), [], None),
        (wanted("a:0", 240.1, 241), [], "too_far"),
        (wanted("a:0", 0, 48), [], None),
        (wanted("a:0", 0, 48.1), [], "too_long"),
        (wanted("a:0 a:1 a:2 a:3"), [], None),
        (wanted("a:0 a:1 a:2 a:3 a:4"), [], "too_many_gpus"),
        (wanted("a:0 a:1", 0, 9), [reservation("b:0 b:1", 1, 2), reservation("b:2 b:3", 2, 3)], None),
        (wanted("a:0 a:1", 0, 9), [reservation("b:0 b:1", 1, 2.1), reservation("b:2 b:3", 2, 3)], "too_many_gpus"),
        (wanted("a:0 a:1", 0, 9), [reservation("b:0 b:1 b:2 b:3", 1, 2, "bob")], None),
        (wanted("a:0"), [reservation("b:0", at, at + 1) for at in (2, 3)], None),
        (wanted("a:0"), [reservation("b:0", at, at + 1) for at in (2, 3, 4)], "too_many"),
        (wanted("a:0"), [reservation("b:0", at, at + 1) for at in (-5, -3, -1)], None),
        (wanted("a:0"), [reservation("b:0", at, at + 1, "bob") for at in (2, 3, 4)], None),
    ],
)
def test_limits(asked, others, code):
    if code is None:
        check_new(asked, others, LIMITED, NOW)
    else:
        assert refused(code, check_new, asked, others, LIMITED, NOW).status == 422
    admin = LIMITED._replace(admin=True)
    if code is not None:
        refused(code, check_new, asked, others, admin, NOW)
    check_new(asked, others, admin._replace(name="root"), NOW)
    check_new(msgspec.structs.replace(asked, imported=True), others, admin, NOW)
    check_new(asked, others, By("ann"), NOW)


def test_days_are_those_of_the_clocks():
    """From nine to nine a fortnight later is a fortnight, though the clocks went back; an hour more is too long."""
    berlin = ZoneInfo("Europe/Berlin")
    now = datetime(2026, 10, 17, 9, tzinfo=berlin)
    ann = By("ann", limits=Limits(longest_hours=336), zone=berlin)
    for hour, code in ((9, None), (10, "too_long")):
        end = datetime(2026, 10, 31, hour, tzinfo=berlin).timestamp()
        asked = Wanted(person="ann", places=places("a:0"), start=now.timestamp(), end=end)
        if code is None:
            check_new(asked, [], ann, now.timestamp())
            refused("too_long", check_new, asked, [], ann._replace(zone=UTC), now.timestamp())
        else:
            refused(code, check_new, asked, [], ann, now.timestamp())
    # In spring it is an hour less that passes, and 336 hours are 336 hours all the same.
    now = datetime(2027, 3, 20, 9, tzinfo=berlin).timestamp()
    check_new(Wanted(person="ann", places=places("a:0"), start=now, end=now + 336 * HOUR), [], ann, now)


def test_who_may_change_it():
    one = reservation("a:0", 1, 2, "ann", maker="carl")
    assert [may_change(one, By(name)) for name in ("ann", "carl", "bob")] == [True, True, False]
    assert may_change(one, ROOT)


def test_who_may_not_reserve_any_more_lets_go_of_what_is_theirs():
    """And not of what they made for others when they were an admin."""
    one = reservation("a:0", 0, 1, "ann", maker="carl")
    ann, carl = By("ann", member=False), By("carl", member=False)
    assert [may_change(one, ann), may_stop(one, ann), may_change(one, carl), may_stop(one, carl)] == [
        False, True, False, False
    ]  # fmt: skip
    check_stop(one, ann, NOW)
    after = msgspec.structs.replace(one, end=one.end + HOUR)
    assert refused("not_yours", check_stop, one, carl, NOW).status == 403
    assert refused("not_yours", check_change, one, after, [], ann, NOW).status == 403
    assert refused("not_yours", check_stop, one, BOB, NOW).status == 403
    refused("not_yours", check_change, one, changed(one, comment="mine"), [], BOB, NOW)
    refused("not_yours", check_change, one, changed(one, person="bob"), [], ANN, NOW)
    check_change(one, changed(one, person="bob"), [], ROOT, NOW)


@pytest.mark.parametrize(
    "one",
    [
        reservation("a:0", -2, 0),
        reservation("a:0", -2, 5, ended_at=NOW - 5, ending="ended"),
        reservation("a:0", 1, 5, ended_at=NOW - 5, ending="cancelled"),
    ],
)
def test_what_is_over_stays_as_it_was(one):
    assert refused("over", check_stop, one, ANN, NOW).status == 409
    refused("over", check_change, one, changed(one, end=NOW + DAY), [], ROOT, NOW)


def test_one_that_runs():
    one = reservation("a:0", -1, 5)
    check_change(one, changed(one, end=NOW + 9 * HOUR), [], ANN, NOW)
    check_change(one, changed(one, end=NOW + 1), [], ANN, NOW)
    refused("in_the_past", check_change, one, changed(one, end=NOW), [], ANN, NOW)
    refused("in_the_past", check_change, one, changed(one, end=math.nan), [], ANN, NOW)
    refused("too_far", check_change, one, changed(one, end=math.inf), [], ANN, NOW)
    refused("in_the_past", check_change, one, changed(one, start=NOW + HOUR), [], ROOT, NOW)
    refused("no_gpus", check_change, one, changed(one, places=()), [], ANN, NOW)


def test_one_to_come():
    one = reservation("a:0", 1, 5)
    check_change(one, changed(one, start=NOW, end=NOW + HOUR), [], ANN, NOW)
    refused("in_the_past", check_change, one, changed(one, start=NOW - 1), [], ANN, NOW)
    refused("ends_before_start", check_change, one, changed(one, end=one.start), [], ANN, NOW)


def test_changes_are_in_nobodys_way():
    one, other = reservation("a:0", 1, 5), reservation("a:0 b:0", 6, 7, "bob")
    check_change(one, changed(one, end=other.start), [one, other], ANN, NOW)
    error = refused("conflict", check_change, one, changed(one, end=other.start + 1), [one, other], ROOT, NOW)
    assert error.conflicts == [other]
    later = changed(one, start=NOW + 5.5 * HOUR, end=NOW + 6.5 * HOUR)
    refused("conflict", check_change, one, later, [one, other], ANN, NOW)
    check_change(one, changed(later, places=places("a:1")), [one, other], ANN, NOW)
    there = changed(other, start=one.start, end=one.end, places=places("a:1.3"))
    refused("conflict", check_change, one, changed(one, places=places("a:0 a:1")), [one, there], ANN, NOW)


def test_what_others_had_before_cannot_be_added_to_one_that_runs():
    """It would have been theirs and ours at once: another reservation is what is wanted."""
    mine, over = reservation("a:0", -3, 5), reservation("a:1", -2, -1, "bob")
    error = refused("conflict", check_change, mine, changed(mine, places=places("a:0 a:1")), [mine, over], ANN, NOW)
    assert (error.detail, error.conflicts) == ("make another reservation for that", [over])
    check_change(mine, changed(mine, places=places("a:0 a:2")), [mine, over], ANN, NOW)


def test_limits_are_for_what_is_added():
    """Who has more than the limits of today may keep it, or have less."""
    one = reservation("a:0 a:1 a:2 a:3 a:4 a:5", 1, 100)
    far = reservation("b:0", 300, 310)
    for shorter in ({"end": NOW + 90 * HOUR}, {"start": NOW + 2 * HOUR}, {"places": one.places[:5]}, {"comment": "x"}):
        check_change(one, changed(one, **shorter), [one, far], LIMITED, NOW)
    refused("too_long", check_change, one, changed(one, end=NOW + 101 * HOUR), [one], LIMITED, NOW)
    refused("too_far", check_change, far, changed(far, start=NOW + 301 * HOUR, end=NOW + 311 * HOUR), [], LIMITED, NOW)
    refused("too_far", check_change, far, changed(far, end=NOW + 311 * HOUR), [], LIMITED, NOW)
    small, big = reservation("a:0", 1, 5), reservation("b:0 b:1 b:2 b:3", 5, 6)
    check_change(small, changed(small, end=big.start), [small, big], LIMITED, NOW)
    refused("too_many_gpus", check_change, small, changed(small, end=big.start + 1), [small, big], LIMITED, NOW)
    more = changed(small, places=places("a:0 a:1 a:2 a:3 a:4"))
    refused("too_many_gpus", check_change, small, more, [small, big], LIMITED, NOW)
    refused("too_many_gpus", check_change, small, more, [small, big], LIMITED._replace(admin=True), NOW)
    check_change(small, more, [small, big], LIMITED._replace(name="root", admin=True), NOW)
    # There were too many at that time before; the part that is added is at another.
    crowd = [small, reservation("b:0 b:1 b:2 b:3", 2, 3)]
    check_change(small, changed(small, end=NOW + 6 * HOUR), crowd, LIMITED, NOW)


def test_alternatives():
    others = [
        reservation("a:0", 0, 3, "bob"),
        reservation("a:1", 4, 5, "bob"),
        reservation("a:0", 6, 7, "bob"),
        reservation("b:0 c:0", 0, 1, "bob"),
    ]
    kinds = {place(f"{node}:{index}"): "H100" for node in "abc" for index in range(3)} | {place("d:0"): "A100"}
    later, elsewhere = alternatives(wanted("a:0 a:1", 0, 1), others, kinds, NOW)
    assert (later.start, later.end, later.places) == (NOW + 3 * HOUR, NOW + 4 * HOUR, places("a:0 a:1"))
    assert (elsewhere.start, elsewhere.end, elsewhere.places) == (NOW, NOW + HOUR, places("a:1 a:2"))
    # For longer there is less room; and two that stand on two nodes may be anywhere.
    later, elsewhere = alternatives(wanted("a:0 b:0", 0, 4), others, kinds, NOW)
    assert (later.start, elsewhere.places) == (NOW + 7 * HOUR, places("a:1 a:2"))
    # None of that kind, and a kind that nobody knows.
    assert len(alternatives(wanted("d:0"), [reservation("d:0", 0, 9)], kinds, NOW)) == 1
    assert len(alternatives(wanted("e:0"), [reservation("e:0", 0, 9)], kinds, NOW)) == 1
    # A card of which an instance is taken is taken.
    (only,) = alternatives(
        wanted("d:0"), [reservation("d:0", 0, 9), reservation("d:1.2", 0, 9)], kinds | {place("d:1"): "A100"}, NOW
    )
    assert only.places == places("d:0")


def test_what_is_offered_can_be_written():
    """Somebody reserved "now, for two hours" at an odd moment: the offer is a whole minute, after it."""
    odd = reservation("a:0", 0, 2.01, "bob")
    (later,) = alternatives(wanted("a:0", 1, 2), [odd], {}, NOW)
    assert later.start % 60 == 0
    assert odd.end < later.start <= odd.end + 60
    check_new(wanted("a:0", (later.start - NOW) / HOUR, (later.end - NOW) / HOUR), [odd], ANN, NOW)


SPANS = st.tuples(st.integers(0, 20), st.integers(1, 6), st.sampled_from(["a:0", "a:1", "a:0.1", "a:0.2", "b:0"]))


@given(st.lists(SPANS, max_size=12), SPANS)
def test_the_first_alternative_can_be_had_and_nothing_sooner(spans, asked):
    others = []
    for number, (start, length, where) in enumerate(spans):
        one = reservation(where, start, start + length, "bob", id=str(number))
        if not overlapping(one.places, one.start, one.end, others):
            others.append(one)
    start, length, where = asked
    one = wanted(where, start, start + length)
    later = alternatives(one, others, {}, NOW)[0]
    hours = (later.start - NOW) / HOUR
    assert later.end - later.start == length * HOUR
    check_new(wanted(where, hours, hours + length), others, ANN, NOW)
    for sooner in range(start, int(hours)):
        refused("conflict", check_new, wanted(where, sooner, sooner + length), others, ANN, NOW)


def test_as_people_count():
    given_ = [Place("b", "0"), *(Place("a", index) for index in ("10", "2", "1.10", "1.2", "1", "2"))]
    assert [str(one) for one in in_order(given_)] == ["a:1", "a:1.2", "a:1.10", "a:2", "a:10", "b:0"]


@given(st.text())
def test_text_that_databases_take(text):
    told = storable(text + "\0\ud800")
    assert told.encode()
    assert "\0" not in told
    assert storable(told) == told
