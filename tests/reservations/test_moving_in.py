"""What becomes of each entry of a comments.json."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import msgspec
import pytest

from gpulse.errors import ReservationError
from gpulse.reservations.comments import Entry
from gpulse.reservations.model import Origin, Place, Reservation, Wanted
from gpulse.reservations.moving_in import Step, done, grouped, plan, wanted_together
from gpulse.reservations.origins import Whose

NOW = datetime(2026, 11, 18, 10, 30, tzinfo=ZoneInfo("Europe/Berlin"))
UNTIL = "2026-12-01 18:00"
END = datetime(2026, 12, 1, 18, tzinfo=NOW.tzinfo).timestamp()
GPUS = {
    "gpu01": [str(index) for index in range(24)],
    "gpu02.lab.example": ["0", "1.0", "1.1"],
    "gpu03": [],
    "twin.a": ["0"],
    "twin.b": ["0"],
    "10.0.0.7": ["0"],
}


def entry(node: str = "gpu01", index: str = "0", until: str = UNTIL, **fields: object) -> Entry:
    return Entry(7, node, index, **{"person": "ann", "comment": "thesis", **fields}, until=until)


def planned(one: Entry, *known: Reservation, now: datetime = NOW, **people: Whose) -> Step:
    (step,) = plan([one], GPUS, known, now, people)
    return step


def again(one: Entry, made: Reservation, origin: Origin | None = None, **people: Whose) -> Step:
    """As `planned`, after an import."""
    (step,) = plan([one], GPUS, (), NOW, people, [(origin or Origin("gpu01", "0", "ann", END), made)])
    return step


def reserved(**fields: object) -> Reservation:
    usual = {"id": "0123456789ab", "person": "ann", "maker": "root", "places": (Place("gpu01", "0"),), "imported": True}
    times = {"start": NOW.timestamp() - 60, "end": END, "made_at": NOW.timestamp() - 60, "revision": 3}
    return Reservation(**usual | times | fields)


def test_a_reservation_from_now_until_its_date():
    step = planned(entry())
    assert (step.outcome, step.message) == ("reserved", "until Tuesday 1 December 2026, 18:00 CET")
    assert step.wanted == Wanted(
        person="ann",
        places=(Place("gpu01", "0"),),
        start=NOW.timestamp(),
        end=END,
        comment="thesis",
        imported=True,
        origins=(Origin("gpu01", "0", "ann", END),),
    )


@pytest.mark.parametrize(
    ("node", "index", "place"),
    [
        ("gpu01", "23", "gpu01:23"),
        ("gpu01", "03", "gpu01:3"),
        ("gpu01", "00", "gpu01:0"),
        ("gpu01", " 3 ", "gpu01:3"),
        ("GPU01", "3", "gpu01:3"),
        ("gpu01.lab.example", "3", "gpu01:3"),
        ("gpu02", "0", "gpu02.lab.example:0"),
        ("gpu02", "1.1", "gpu02.lab.example:1.1"),
        ("twin.a", "0", "twin.a:0"),
    ],
)
def test_the_gpu_that_is_meant(node, index, place):
    assert str(planned(entry(node, index)).place) == place


@pytest.mark.parametrize(
    ("node", "index", "why"),
    [
        ("gpu09", "0", 'there is no node "gpu09"'),
        ("twin", "0", 'there is no node "twin"; twin.a, twin.b may be meant'),
        (
            "gpu02.other.example",
            "0",
            'there is no node "gpu02.other.example"; in another domain there is gpu02.lab.example',
        ),
        ("10.0.0.5", "0", 'there is no node "10.0.0.5"'),
        ("gpu01", "24", 'there is no GPU "24" on gpu01, which has 0, 1, 2'),
        ("gpu01", "9" * 5000, f'there is no GPU "{"9" * 40}…" on gpu01, which has 0, 1, 2'),
        ("gpu01", "²", 'there is no GPU "²" on gpu01'),
        ("gpu01", "name", 'there is no GPU "name" on gpu01'),
        ("gpu01", "", "it does not say which GPU"),
        ("gpu02", "1", 'there is no GPU "1" on gpu02.lab.example'),
        ("gpu03", "0", "gpu03 has not told yet which GPUs it has"),
    ],
)
def test_no_such_gpu(node, index, why):
    step = planned(entry(node, index))
    assert (step.outcome, step.wanted) == ("no_such_gpu", None)
    assert step.message.startswith(why)


def test_the_node_is_named_where_the_file_calls_it_something_else():
    until = "until Tuesday 1 December 2026, 18:00 CET"
    known = "; 'gpu02' is known here as gpu02.lab.example"
    assert planned(entry("gpu02.lab.example")).message == until
    assert planned(entry("gpu02")).message == until + known
    there = reserved(places=(Place("gpu02.lab.example", "0"),))
    assert planned(entry("gpu02"), there).message == "it is reserved already" + known
    for error in (ReservationError(409, "conflict", "taken", conflicts=[there]), ReservationError(422, "x", "no")):
        assert done([planned(entry("gpu02"))], [error])[0].message.endswith(known)


def test_what_is_over_is_left_out():
    step = planned(entry(until="2018-07-01 00:00", node="long-gone"))
    assert (step.outcome, step.message) == ("over", "it ended Sunday 1 July 2018, 00:00 CEST")


def test_what_is_empty_or_cannot_be_read():
    assert planned(Entry(3, "gpu01", "0", empty=True)).outcome == "empty"
    step = planned(Entry(3, "gpu01", "0", trouble="it has no date"))
    assert (step.outcome, step.message) == ("not_understood", "it has no date")


@pytest.mark.parametrize(
    ("until", "why"),
    [
        ("SOME_WHERE_IN_A_PAST", "is no time that I understand"),
        ("01/02/2027", "is 2 January to some and 1 February to others"),
        ("2026-13-01 10:00", "there is no month 13"),
        ("2027-03-28 02:30", "does not exist"),
        ("friday", 'what "friday" means depends on when it was written'),
        ("2d 4h", "depends on when it was written"),
        ("1 dec", "depends on when it was written"),
        ("now", "depends on when it was written"),
        ("end of week", "depends on when it was written"),
        ("next friday", "to others"),
    ],
)
def test_dates_that_are_not_clear(until, why):
    step = planned(entry(until=until))
    assert step.outcome == "not_understood"
    assert why in step.message


def test_a_date_without_a_time_includes_its_day():
    assert planned(entry(until="2026-11-18")).message == "until Wednesday 18 November 2026, 24:00 CET"


def test_whose_it_is():
    ann = Whose("ann7", "'ann' is known here as ann7")
    step = planned(entry(), ann=ann)
    assert step.wanted is not None
    assert (step.wanted.person, step.entry.person) == ("ann7", "ann")
    assert step.message == "until Tuesday 1 December 2026, 18:00 CET; 'ann' is known here as ann7"


class TestAgain:
    """A second import changes nothing."""

    def test_what_is_there(self):
        step = planned(entry(), reserved())
        assert (step.outcome, step.message, step.reservation) == ("already", "it is reserved already", "0123456789ab")

    def test_what_was_ended_meanwhile_stays_so(self):
        ended = reserved(ended_at=NOW.timestamp() - 30, ending="ended")
        step = again(entry(), ended)
        assert (step.outcome, step.message) == (
            "already",
            "it was imported, and ended Wednesday 18 November 2026, 10:29:30 CET",
        )

    def test_one_that_somebody_made_here_is_as_well(self):
        assert planned(entry(), reserved(imported=False)).outcome == "already"
        ended = reserved(imported=False, ended_at=NOW.timestamp() - 30, ending="ended")
        assert planned(entry(), ended).outcome == "reserved"

    def test_seconds_are_not_in_the_file(self):
        assert planned(entry(), reserved(end=END - 59)).outcome == "already"
        assert planned(entry(), reserved(end=END - 61)).outcome == "reserved"

    @pytest.mark.parametrize(
        ("person", "message"),
        [
            ("ann7", "it is reserved already; 'ann' is known here as ann7"),
            ("ann", "it is reserved already"),
            ("Ann", "it is reserved already"),
        ],
    )
    def test_as_whose_it_was_imported_does_not_matter(self, person, message):
        step = planned(entry(), reserved(person=person), ann=Whose("ann7", "'ann' is known here as ann7"))
        assert (step.outcome, step.message) == ("already", message)

    @pytest.mark.parametrize(
        ("since", "message"),
        [
            ({}, "it is reserved already"),
            (
                {"places": (Place("gpu01", "4"), Place("gpu01", "5"))},
                "it was imported, and changed since: ann has gpu01:4-5 until Tuesday 1 December 2026, 18:00 CET",
            ),
            (
                {"person": "bob", "end": END - 3600},
                "it was imported, and changed since: bob has gpu01:0 until Tuesday 1 December 2026, 17:00 CET",
            ),
            (
                {"end": NOW.timestamp() - 60},
                "it was imported, and ended Wednesday 18 November 2026, 10:29 CET",
            ),
        ],
    )
    def test_whatever_became_of_it(self, since, message):
        step = again(entry(), reserved(**since))
        assert (step.outcome, step.message, step.reservation) == ("already", message, "0123456789ab")

    @pytest.mark.parametrize(
        ("one", "origin", "logins"),
        [
            (entry("GPU01", "00"), Origin("gpu01", "0", "Ann", END - 59), {}),
            (entry(), Origin("gpu01.lab.example", "0", "ann", END), {}),
            (entry("gpu02.lab.example"), Origin("gpu02", "0", "ann", END), {}),
            # There may be others now, or the node be gone.
            (entry("twin"), Origin("twin", "0", "ann", END), {}),
            (entry("gone"), Origin("gone", "0", "ann", END), {}),
            (entry(person="Ann Lee"), Origin("gpu01", "0", "ann", END), {"Ann Lee": "ann"}),
            (entry(), Origin("gpu01", "0", "Ann Lee", END), {"Ann Lee": "ann"}),
            (entry(person="Ann Lee"), Origin("gpu01", "0", "Ann Lee", END), {}),
        ],
    )
    def test_however_it_is_written(self, one, origin, logins):
        ended = reserved(person="bob", ended_at=NOW.timestamp() - 30, ending="ended")
        people = {name: Whose(login) for name, login in logins.items()}
        assert again(one, ended, origin, **people).outcome == "already"

    @pytest.mark.parametrize(
        "one", [entry(index="1"), entry(person="bob"), entry(until="2026-12-01 19:00"), entry("gpu02")]
    )
    def test_an_entry_that_is_another_now_is_a_new_one(self, one):
        ended = reserved(ended_at=NOW.timestamp() - 30, ending="ended")
        assert again(one, ended).outcome == "reserved"

    def test_one_that_was_made_here_after_it_ended_is_the_one_that_is_told(self):
        ended = reserved(ended_at=NOW.timestamp() - 30, ending="ended")
        here = reserved(id="b" * 12, imported=False)
        (step,) = plan([entry()], GPUS, [here], NOW, {}, [(Origin("gpu01", "0", "ann", END), ended)])
        assert (step.message, step.reservation) == ("it is reserved already", "b" * 12)

    def test_of_several_the_one_that_lasts(self):
        lasts = {"a": NOW.timestamp() - 60, "b": END, "c": NOW.timestamp() - 30}
        found = [(Origin("gpu01", "0", "ann", END), reserved(id=one * 12, end=end)) for one, end in lasts.items()]
        (step,) = plan([entry()], GPUS, (), NOW, {}, found)
        assert step.reservation == "b" * 12

    @pytest.mark.parametrize("other", [{"person": "bob"}, {"places": (Place("gpu01", "1"),)}, {"end": END + 3600}])
    def test_others_are_others(self, other):
        assert planned(entry(), reserved(**other)).outcome == "reserved"


def test_what_one_person_has_of_a_node_is_one_whoever_stands_between():
    whose = ["ann", "ann", "bob", "ann", "bob"]
    steps = plan([entry(index=str(at), person=one) for at, one in enumerate(whose)], GPUS, (), NOW, {})
    steps[1] = steps[1]._replace(outcome="conflict")
    assert grouped(steps) == [[0, 3], [2, 4]]
    together = wanted_together(steps, [0, 3])
    assert together.places == (Place("gpu01", "0"), Place("gpu01", "3"))
    assert together.origins == (Origin("gpu01", "0", "ann", END), Origin("gpu01", "3", "ann", END))


class TestDone:
    def test_what_was_made_has_its_id(self):
        steps = plan([entry(), entry(until="2018-07-01"), entry(index="1")], GPUS, (), NOW, {})
        made = [reserved(id="a" * 12), reserved(id="b" * 12)]
        assert [step.reservation for step in done(steps, made)] == ["a" * 12, None, "b" * 12]
        dry = [msgspec.structs.replace(one, id="") for one in made]
        assert [step.reservation for step in done(steps, dry)] == [None, None, None]

    def test_what_is_in_the_way_is_named(self):
        other = reserved(person="bob", start=(NOW + timedelta(days=1)).timestamp())
        (step,) = done([planned(entry())], [ReservationError(409, "conflict", "taken", conflicts=[other])])
        assert (step.outcome, step.reservation) == ("conflict", "0123456789ab")
        assert step.message == (
            "it is reserved by bob from Thursday 19 November 2026, 10:30 CET until Tuesday 1 December 2026, 18:00 CET"
        )

    def test_other_refusals_are_told(self):
        (step,) = done([planned(entry())], [ReservationError(422, "too_far", "too far", "take less")])
        assert (step.outcome, step.message) == ("refused", "too far; take less")
