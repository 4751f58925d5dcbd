"""Reservations as they are kept: on each database, and as several processes see them."""

import asyncio
import multiprocessing
import time

import pytest

from gpulse.errors import ReservationError, StoreError
from gpulse.reservations.model import Changes, Place, Reservation, wanted_places
from gpulse.reservations.rules import By, Limits
from gpulse.reservations.table import MEMORY_SECONDS, Reservations
from gpulse.reservations.writing import Choose
from gpulse.store import Records
from tests.patience import PATIENCE_SECONDS
from tests.reservations.wanting import ANN, BOB, DAY, HOUR, NOW, ROOT, place, places, reservation, wanted


def refused(doing, code, work):
    with pytest.raises(ReservationError) as caught:
        doing(work)
    assert caught.value.code == code
    return caught.value


def test_made_and_told(table, doing, clock):
    before = table.revision
    made = doing(table.make(wanted("a:10 a:2 a:2", 0, 5, comment="für Ärger: 'x'; \0 🙂"), ANN))
    assert made.places == places("a:2 a:10")
    assert made.comment == "für Ärger: 'x'; � 🙂"
    assert (made.person, made.maker, made.made_at, made.hold, made.imported) == ("ann", "ann", NOW, False, False)
    assert len(made.id) == 12
    assert table.revision > before
    assert table.by_id(made.id) == doing(table.get(made.id)) == made
    assert table.current(NOW) == table.current(NOW + 5 * HOUR - 1) == [made]
    assert table.current(NOW + 5 * HOUR) == table.current(NOW - 1) == []
    later = doing(table.make(wanted("a:2", 5, 6, "bob", hold=True), BOB))
    assert table.around(place("a:2"), NOW, NOW + 9 * HOUR) == (made, later, None)
    assert table.around(place("a:10"), NOW, NOW + 9 * HOUR) == (made, None, None)
    assert table.next_change(NOW) == later.start
    clock.now = later.start
    assert (table.current(), table.next_change(clock.now)) == ([later], later.end)
    assert table.around(place("a:2"), clock.now, clock.now + 9 * HOUR) == (later, None, None)
    assert table.around(place("a:2"), later.end, later.end + 9 * HOUR) == (None, None, None)


def test_who_comes_next_and_who_is_the_next_other_one(table, doing):
    first = doing(table.make(wanted("a:0", 1, 2), ANN))
    doing(table.make(wanted("a:0", 3, 4), ANN))
    where = place("a:0")
    assert table.around(where, NOW, NOW + 9 * HOUR) == (None, first, None)
    other = doing(table.make(wanted("a:0", 5, 6, "bob"), BOB))
    assert table.around(where, NOW, NOW + 9 * HOUR) == (None, first, other)
    assert table.around(where, NOW, NOW + 4 * HOUR) == (None, first, None)


def test_where_something_changes(table, doing):
    made = doing(table.make(wanted("a:0 b:1", 1, 2), ANN))
    assert table.touched() == set(places("a:0 b:1"))
    assert table.touched() == set()
    doing(table.change(made.id, Changes(places=places("a:0 c:2")), ANN))
    assert table.touched() == set(places("a:0 b:1 c:2"))
    both = set(places("a:0 c:2"))
    assert table.turning(NOW, made.start - 1) == set()
    assert table.turning(NOW, made.start) == table.turning(made.start, NOW) == both
    assert table.turning(made.start, made.end) == both
    assert table.turning(made.end, made.end + HOUR) == set()


def test_a_start_of_a_moment_ago_is_now(table, doing):
    assert doing(table.make(wanted("a:0", -0.01), ANN)).start == NOW


def test_a_conflict_tells_of_all_that_helps(table, others, doing):
    there = doing(others.make(wanted("a:0 a:1", 0, 5, "bob"), BOB))
    kinds = {place(f"a:{index}"): "H100" for index in range(4)}
    error = refused(doing, "conflict", table.make(wanted("a:1", 1, 2), ANN, kinds=lambda: kinds))
    assert error.conflicts == [there]
    assert [(one.start, one.places) for one in error.alternatives] == [
        (there.end, places("a:1")),
        (NOW + HOUR, places("a:2")),
    ]
    mine = doing(table.make(wanted("a:1", 6, 7), ANN))
    error = refused(doing, "conflict", table.change(mine.id, Changes(start=NOW + 4 * HOUR), ANN, kinds=kinds))
    assert [one.places for one in error.alternatives] == [places("a:1"), places("a:2")]
    assert table.by_id(mine.id) == mine


def test_a_dry_run_changes_nothing(table, others, doing):
    shown = doing(table.make(wanted("a:0", 0, 5), ANN, dry_run=True))
    assert (shown.id, shown.revision, shown.start) == ("", 0, NOW)
    assert doing(table.find(NOW, NOW + DAY)) == table.current() == []
    made = doing(table.make(wanted("a:0", 0, 5), ANN))
    assert doing(table.change(made.id, Changes(comment="x"), ANN, dry_run=True)).comment == "x"
    refused(doing, "conflict", table.make(wanted("a:0", 1, 2), ROOT, dry_run=True))
    assert doing(others.get(made.id)) == doing(table.get(made.id)) == made


def test_changed_ended_and_cancelled_with_its_history(table, others, doing, clock):
    made = doing(table.make(wanted("a:0", 0, 5), ANN))
    coming = doing(table.make(wanted("a:0", 5, 6), ANN))
    clock.now += HOUR
    longer = Changes(end=NOW + 4 * HOUR, places=places("a:1 a:0"), comment="more")
    changed = doing(others.change(made.id, longer, ROOT, revision=made.revision))
    assert (changed.places, changed.start, changed.end, changed.comment) == (places("a:0 a:1"), NOW, longer.end, "more")
    assert changed.revision > made.revision
    # This process has not seen it, and what it does goes by what is.
    assert table.by_id(made.id) == made
    error = refused(doing, "changed_meanwhile", table.change(made.id, Changes(comment=""), ANN, revision=made.revision))
    assert error.status == 409
    refused(doing, "not_yours", table.change(made.id, Changes(comment=""), BOB, revision=made.revision))
    refused(doing, "not_yours", table.end(made.id, BOB))
    ended = doing(table.end(made.id, ANN))
    assert (ended.ended_at, ended.ending, ended.last, ended.end) == (clock.now, "ended", clock.now, longer.end)
    cancelled = doing(table.end(coming.id, ROOT))
    assert (cancelled.ending, cancelled.holds, cancelled.state(clock.now)) == ("cancelled", False, "cancelled")
    for again in (table.end(made.id, ANN), table.end(coming.id, ANN), others.change(made.id, Changes(), ANN)):
        refused(doing, "over", again)
    told = doing(table.history(made.id))
    assert [(one.by, one.action, one.before, one.after) for one in told] == [
        ("ann", "made", None, made),
        ("root", "changed", made, changed),
        ("ann", "ended", changed, ended),
    ]
    assert [one.at for one in told] == [NOW, clock.now, clock.now]
    assert [one.action for one in doing(others.history(coming.id))] == ["made", "cancelled"]
    assert table.current() == []
    assert doing(others.refresh()) == ""
    assert (others.by_id(made.id), others.by_id(coming.id)) == (ended, cancelled)


def test_what_stays_as_it_is_is_no_change(table, doing, clock):
    made = doing(table.make(wanted("a:0", 0, 5), ANN))
    clock.now += 30
    assert doing(table.change(made.id, Changes(start=made.start, places=made.places), ANN)) == made
    assert len(doing(table.history(made.id))) == 1


def test_released(table, doing, clock):
    made = doing(table.make(wanted("a:0", 0, 5), ANN))
    coming = doing(table.make(wanted("a:0", 6, 7), ANN))
    clock.now += HOUR
    released = doing(table.release(made.id, revision=made.revision))
    assert (released.ending, released.last) == ("no_show", clock.now)
    for over in (made, released, coming):
        assert doing(table.release(over.id, revision=over.revision)) is None
    last = doing(table.history(made.id))[-1]
    assert (last.by, last.action, last.after) == ("gpulse", "released", released)
    assert doing(table.make(wanted("a:0", 1, 5, "bob"), BOB)).start == clock.now


def test_what_was_changed_since_it_was_looked_at_is_not_released(table, others, doing, clock):
    made = doing(table.make(wanted("a:0", 0, 5), ANN))
    clock.now += HOUR
    longer = doing(others.change(made.id, Changes(longer=HOUR), ANN))
    assert doing(table.release(made.id, revision=made.revision)) is None
    doing(table.refresh())
    assert table.by_id(made.id) == longer
    assert doing(table.release(made.id, revision=longer.revision)).ending == "no_show"


def test_none_of_that_name(table, doing):
    for work in (
        table.get("0" * 12),
        table.end("", ROOT),
        table.change("x", Changes(), ROOT),
        table.history("x"),
        table.release("x", revision=1),
        table.find(NOW, NOW + 1, before="x"),
    ):
        assert refused(doing, "reservation_unknown", work).status == 404


def test_chosen_when_it_is_sure_what_is_booked(table, others, doing):
    """Also what this process has not read yet."""
    doing(others.make(wanted("a:0", 3, 5, "bob"), BOB))
    seen = []

    def choose(booked, held):
        seen.append((booked, held))
        return [place("a:1")]

    made = doing(table.make(wanted("", 0, 9), ANN, choose=Choose(1, choose)))
    assert made.places == places("a:1")
    assert [one.person for one in seen[0][0]] == ["bob"]
    assert seen[0][1] == []
    refused(doing, "no_gpus", table.make(wanted("", 0, 9), ANN, choose=Choose(1, lambda _booked, _held: [])))


def test_many_at_once_each_by_itself(table, others, doing):
    asked = [
        wanted("a:0", 0, 5, imported=True),
        wanted("a:0 a:1", 2, 3, "bob", imported=True),
        wanted("a:1", 2, 3, "bob", imported=True),
        wanted("", 2, 3, imported=True),
    ]
    dry = doing(table.make_many(asked, ROOT, dry_run=True))
    assert table.current() == doing(table.find(NOW, NOW + DAY)) == []
    outcomes = doing(table.make_many(asked, ROOT))
    for told in (dry, outcomes):
        assert [one.code if isinstance(one, ReservationError) else one.person for one in told] == [
            "ann", "conflict", "bob", "no_gpus",
        ]  # fmt: skip
    assert table.current() == [outcomes[0]]
    assert [one.action for one in doing(table.history(outcomes[0].id))] == ["imported"]
    assert doing(others.refresh()) == ""
    assert others.by_id(outcomes[2].id) == outcomes[2]


def test_limits_go_by_what_is_in_the_database(table, others, doing):
    few = By("ann", limits=Limits(most_reservations=2, most_gpus=3))
    doing(others.make(wanted("a:0 a:1", 0, 5), few))
    refused(doing, "too_many_gpus", table.make(wanted("b:0 b:1", 1, 2), few))
    doing(table.make(wanted("b:0", 1, 2), few))
    refused(doing, "too_many", others.make(wanted("c:0", 8, 9), few))


def test_found_by_span_node_person_and_place(table, doing):
    one = doing(table.make(wanted("a:0 b:0", 0, 2), ANN))
    two = doing(table.make(wanted("a:1.2", 1, 4, "bob"), BOB))
    three = doing(table.make(wanted("b:0", 5, 9), ANN))
    gone = doing(table.end(doing(table.make(wanted("c:0", 3, 4), ANN)).id, ANN))
    end = NOW + DAY
    assert table.between(NOW, end) == [one, two, three]
    assert table.between(NOW + 2 * HOUR, NOW + 5 * HOUR) == [two]
    assert table.between(NOW, end, node="a") == [one, two]
    assert table.between(NOW, end, node="b", person="ann") == [one, three]
    assert table.between(NOW, end, places=places("a:1")) == [two]
    assert table.between(NOW, end, places=places("b:0 a:1.3")) == [one, three]
    assert table.between(NOW, end, cancelled=True) == [one, two, gone, three]
    assert table.between(NOW, end, places=places("c:0"), cancelled=True) == [gone]
    assert doing(table.find(NOW, end)) == [three, gone, two, one]
    assert doing(table.find(NOW, end, limit=2)) == [three, gone]
    assert doing(table.find(NOW, end, limit=2, before=gone.id)) == [two, one]
    assert doing(table.find(NOW, end, node="b", person="ann")) == [three, one]
    # Several that start at a moment all have their turn.
    same = {doing(table.make(wanted(f"d:{index}", 0, 1), ANN)).id for index in range(5)}
    found, last = [], three.id
    while page := doing(table.find(NOW, end, before=last, limit=2)):
        found += [each.id for each in page]
        last = found[-1]
    assert len(found) == len(set(found)) == 8
    assert same < set(found)


def test_what_was_over_long_ago_is_in_the_database(table, records, doing, clock):
    old = doing(table.make(wanted("a:0", 0, 1), ANN))
    clock.now += MEMORY_SECONDS
    assert doing(table.refresh()) == ""
    assert table.by_id(old.id) == old
    clock.now += 2 * HOUR
    assert doing(table.refresh()) == ""
    assert table.by_id(old.id) is None
    assert table.between(NOW, NOW + DAY, cancelled=True) == table.between(NOW, NOW + DAY, node="a") == []
    assert doing(table.get(old.id)) == old
    assert doing(table.find(NOW, NOW + DAY)) == [old]
    assert Reservations(records, clock).by_id(old.id) is None
    refused(doing, "over", table.end(old.id, ANN))


def test_what_another_process_did_is_seen(table, others, doing):
    made = doing(others.make(wanted("a:0", 0, 5), ANN))
    assert table.current() == []
    # An own one in between does not hide it.
    own = doing(table.make(wanted("b:0", 0, 5), ANN))
    seen = table.revision
    assert doing(table.refresh()) == ""
    assert {one.id for one in table.current()} == {made.id, own.id}
    assert table.revision > seen
    seen = table.revision
    assert doing(table.refresh()) == ""
    assert table.revision == seen


def test_the_number_of_changes_goes_on_after_a_start(table, records, doing, clock):
    for index in range(3):
        doing(table.make(wanted(f"a:{index}", 0, 5), ANN))
    assert Reservations(records, clock).revision >= table.revision


def test_trouble_is_told_and_what_was_read_stays(table, doing, monkeypatch):
    made = doing(table.make(wanted("a:0", 0, 5), ANN))

    def broken():
        raise StoreError("the disk is gone")

    monkeypatch.setattr(table._records, "version", broken)
    assert doing(table.refresh()) == "the disk is gone; reservations are as they were last read"
    assert table.current() == [made]


def test_who_asked_may_go_and_what_was_written_is_known(table, doing):
    async def gone():
        asked = asyncio.create_task(table.make(wanted("a:0", 0, 5), ANN))
        await asyncio.sleep(0)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not table.current():
                await asyncio.sleep(0.01)

    doing(gone())
    assert [one.person for one in table.current()] == ["ann"]


def book(folder, url, name, start, barrier, told):
    """What one of two processes does."""
    with Records(folder, url) as records:
        table = Reservations(records)
        outcomes = []
        with asyncio.Runner() as runner:
            for index in range(10):
                barrier.wait(90)
                asked = wanted(f"a:{index}", person=name)
                asked = type(asked)(person=name, places=asked.places, start=start, end=start + HOUR)
                try:
                    outcomes.append(runner.run(table.make(asked, By(name))).id)
                except ReservationError as error:
                    outcomes.append(error.code)
        told.put((name, outcomes))


def test_two_processes_at_the_same_instant(tmp_path, records_url, records, doing):
    context = multiprocessing.get_context("spawn")
    barrier, told, start = context.Barrier(2), context.Queue(), time.time() + DAY
    started = [
        context.Process(target=book, args=(tmp_path, records_url, name, start, barrier, told))
        for name in ("ann", "bob")
    ]
    try:
        for process in started:
            process.start()
        outcomes = dict(told.get(timeout=PATIENCE_SECONDS) for _ in started)
    finally:
        for process in started:
            process.join(30)
            if process.is_alive():
                process.kill()
    pairs = list(zip(outcomes["ann"], outcomes["bob"], strict=True))
    assert len(pairs) == 10
    assert all(pair.count("conflict") == 1 for pair in pairs)
    kept = doing(Reservations(records).find(start, start + HOUR))
    assert {one.id for one in kept} == {word for pair in pairs for word in pair} - {"conflict"}
    assert len(kept) == 10


def test_cheap_with_many():
    """What is asked each second, of ten thousand."""
    from gpulse.reservations.shelf import Shelf

    shelf = Shelf()
    for number in range(10_000):
        start = (number % 100) * 12 - 600
        shelf.put(reservation(f"n{number // 400}:{number // 100 % 4}", start, start + 11, id=f"{number:012x}"))

    def took(work):
        """The best of some, in CPU time: others run beside it."""
        best = float("inf")
        for _ in range(5):
            began = time.process_time()
            found = work()
            best = min(best, time.process_time() - began)
        return best, found

    whole, everything = took(lambda: sorted(shelf.all(), key=lambda one: (one.start, one.id)))
    assert len(everything) == 10_000
    assert isinstance(everything[0], Reservation)
    often, turned = took(lambda: [shelf.turning(NOW + second, NOW + second + 1) for second in range(100)])
    soon = [one for one in everything if NOW < one.start <= NOW + 1 or NOW < one.last <= NOW + 1]
    assert turned[0] == {place for one in soon for place in one.places}
    # A hundred times a second is less work than once to look at all of them in their order.
    assert often < whole
    on_node, found = took(lambda: shelf.on_nodes(["n3"], NOW, NOW + DAY))
    assert found == [
        one for one in everything if one.places[0].node == "n3" and one.start < NOW + DAY and one.last > NOW
    ]
    assert on_node < whole


def test_who_has_a_card_has_its_instances():
    places = [Place("a", "0.2"), Place("a", "0"), Place("b", "0.1"), Place("a", "10"), Place("a", "1.0")]
    assert [str(place) for place in wanted_places(places)] == ["a:0", "a:1.0", "a:10", "b:0.1"]
