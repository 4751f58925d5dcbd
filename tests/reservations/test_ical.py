"""Reservations as a calendar: read back by another reader of the format, whatever people write into comments."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from icalendar import Calendar

from gpulse.reservations.ical import feed_text
from gpulse.reservations.model import Place, Reservation

START = datetime(2026, 11, 18, 9, 30, tzinfo=UTC)
END = datetime(2026, 12, 1, 17, tzinfo=UTC)
NOW = START.timestamp() + 60
HOSTILE = [
    "line\nbreak",
    "carriage\r\nreturns\rof all\n\rkinds",
    "commas, semicolons; colons: and \\backslashes\\n",
    "quotes \" and '",
    "emoji 🚀👩‍🔬 and ümlauts, 日本語",
    "long " * 100,
    "é" * 200,
    "END:VEVENT\r\nEND:VCALENDAR\r\nBEGIN:VCALENDAR",
    "\nDTSTART:19700101T000000Z",
    "tab\there",
    "\u2028line\u2029paragraph\x85next",
    "\ufefffirst",
]


def reservation(**fields: object) -> Reservation:
    usual = {"id": "0123456789ab", "person": "alice", "maker": "alice", "made_at": START.timestamp(), "revision": 7}
    places = tuple(Place("gpu03", str(index)) for index in range(4))
    times = {"start": START.timestamp(), "end": END.timestamp(), "places": places}
    return Reservation(**usual | times | fields)


def told(*reservations: Reservation) -> Calendar:
    return Calendar.from_ical(feed_text(reservations, "GPUs", NOW))


def event(**fields: object):
    (one,) = told(reservation(**fields)).walk("VEVENT")
    return one


def test_an_event():
    one = event(comment="thesis")
    assert str(one["UID"]) == "0123456789ab@gpulse"
    assert (one.decoded("DTSTART"), one.decoded("DTEND")) == (START, END)
    assert str(one["SUMMARY"]) == "gpu03:0-3 alice"
    assert str(one["DESCRIPTION"]) == "thesis"
    assert one["SEQUENCE"] == 7
    assert str(one["STATUS"]) == "CONFIRMED"
    assert one.decoded("LAST-MODIFIED") == START
    assert one.decoded("DTSTAMP") == datetime.fromtimestamp(NOW, UTC)


def test_times_are_in_utc():
    text = feed_text([reservation()], "GPUs", NOW)
    assert "DTSTART:20261118T093000Z\r\n" in text
    assert "DTEND:20261201T170000Z\r\n" in text
    assert "VTIMEZONE" not in text


def test_the_calendar():
    text = feed_text([reservation(), reservation(id="b" * 12)], "Lab, GPUs", NOW)
    assert "\r\nNAME:Lab\\, GPUs\r\n" in text
    assert "\r\nX-WR-CALNAME:Lab\\, GPUs\r\n" in text
    calendar = Calendar.from_ical(text)
    assert str(calendar["VERSION"]) == "2.0"
    assert len(calendar.walk("VEVENT")) == 2
    assert told().walk("VEVENT") == []
    assert calendar.errors == []


def test_one_that_was_cancelled_stays_and_says_so():
    one = event(ended_at=START.timestamp() - 3600, ending="cancelled", revision=9)
    assert str(one["STATUS"]) == "CANCELLED"
    assert (one.decoded("DTSTART"), one.decoded("DTEND")) == (START, END)
    assert one["SEQUENCE"] == 9


@pytest.mark.parametrize("ending", ["ended", "no_show"])
def test_one_that_ended_early_ends_then(ending):
    early = datetime(2026, 11, 20, 12, tzinfo=UTC)
    one = event(ended_at=early.timestamp(), changed_at=early.timestamp(), ending=ending)
    assert (str(one["STATUS"]), one.decoded("DTEND"), one.decoded("LAST-MODIFIED")) == ("CONFIRMED", early, early)


def test_an_event_has_a_length():
    one = event(end=START.timestamp() + 0.2)
    assert one.decoded("DTEND") > one.decoded("DTSTART")


@pytest.mark.parametrize("comment", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_comments(comment):
    check(comment)


@given(st.text(max_size=300))
def test_any_comment(comment):
    check(comment)


def check(comment: str) -> None:
    text = feed_text([reservation(comment=comment), reservation(id="b" * 12)], comment, NOW)
    raw = text.encode("utf-8")
    lines = raw.split(b"\r\n")
    assert lines[-1] == b""
    assert all(len(line) <= 75 for line in lines)
    assert b"\n" not in raw.replace(b"\r\n", b"")
    assert b"\r" not in raw.replace(b"\r\n", b"")
    for line in lines:
        line.decode("utf-8")
    first, second = Calendar.from_ical(text).walk("VEVENT")
    assert (first.decoded("DTSTART"), str(second["UID"])) == (START, f"{'b' * 12}@gpulse")
    meant = comment.replace("\r\n", "\n").replace("\r", "\n")
    if meant.isprintable() or all(one.isprintable() or one in "\n\t" for one in meant):
        assert str(first.get("DESCRIPTION", "")) == meant
