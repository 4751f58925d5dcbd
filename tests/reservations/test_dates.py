"""Moments as people write them: the tables of docs/dates.md are true, and no clock on any wall confuses the reader."""

import re
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpulse.errors import WhenError
from gpulse.reservations.dates import parse_moment, parse_span, parse_until, shown

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "dates.md"
BERLIN = ZoneInfo("Europe/Berlin")
NEW_YORK = ZoneInfo("America/New_York")
LORD_HOWE = ZoneInfo("Australia/Lord_Howe")
# Of docs/dates.md: a Wednesday.
NOW = datetime(2026, 11, 18, 10, 30, tzinfo=BERLIN)
ZONES = [
    *("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Apia", "Africa/Cairo"),
    *(
        "America/Havana",
        "America/Asuncion",
        "Asia/Beirut",
        "Europe/Moscow",
        "Europe/London",
        "Africa/Casablanca",
        "UTC",
    ),
]


def table(title: str) -> list[list[str]]:
    chapters = re.split(r"^## (.+)$", DOCUMENT.read_text("utf-8"), flags=re.MULTILINE)
    text = dict(zip(chapters[1::2], chapters[2::2], strict=True))[title]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| `")]
    return [[row[0].strip("`"), *row[1:]] for row in rows]


MEANINGS = [row for title in ("Dates", "Times", "Days", "Ends", "Lengths") for row in table(title)]


def said(text: str, now: datetime = NOW, end_of: bool = False) -> str:
    return parse_moment(text, now, end_of=end_of).understood


def refused(text: str, now: datetime = NOW) -> str:
    with pytest.raises(WhenError) as caught:
        parse_moment(text, now)
    assert (caught.value.status, caught.value.code) == (422, "when_unclear")
    return str(caught.value)


def test_there_are_sixty_ways_and_more():
    assert len({row[0] for row in MEANINGS}) >= 60


@pytest.mark.parametrize(("text", "start", "end"), MEANINGS, ids=lambda one: one)
def test_the_table_of_the_docs(text, start, end):
    assert said(text) == start
    assert parse_until(text, NOW, NOW).understood == (start if end == "the same" else end)


@pytest.mark.parametrize(("text", "why"), table("Not clear"), ids=lambda one: one)
def test_what_is_not_clear_says_why(text, why):
    assert refused(text).startswith(why)


def test_errors_name_what_can_be_written_instead():
    assert 'write "2 january" or "1 february"' in refused("01/02")
    assert 'write "2 january 2028" or "1 february 2028"' in refused("1/2/2028")
    assert said("2 january 2028") == "Sunday 2 January 2028, 00:00 CET"
    assert 'write "friday" or "friday next week"' in refused("next friday")
    assert 'in "friday 18:00 sharpish" I understood "friday 18:00", but not "sharpish"' in refused(
        "friday 18:00 sharpish"
    )
    assert "no time is given" in refused("  ")


def test_moments_are_in_the_zone_of_now():
    at = parse_moment("2026-12-01T18:00Z", NOW).at
    assert at == datetime(2026, 12, 1, 18, tzinfo=UTC)
    assert at.tzinfo is BERLIN


class TestToday:
    """A weekday or a time is today's where it is still to come."""

    @pytest.mark.parametrize(
        ("clock", "text", "day"),
        [
            ((17, 59), "wed 18:00", 18),
            ((18, 0), "wed 18:00", 25),
            ((18, 1), "wed 18:00", 25),
            ((17, 59), "18:00", 18),
            ((18, 0), "18:00", 19),
            ((18, 0, 20), "18:00", 19),
            ((23, 59), "midnight", 19),
            ((0, 0), "midnight", 19),
        ],
    )
    def test_until_its_time_has_come(self, clock, text, day):
        now = NOW.replace(**dict(zip(("hour", "minute", "second"), clock, strict=False)))
        assert parse_until(text, now, now).at.day == parse_moment(text, now, end_of=True).at.day == day

    @pytest.mark.parametrize(
        ("clock", "text", "day"),
        [
            ((17, 59, 59), "18:00", 18),
            ((18, 0, 0), "18:00", 18),
            ((18, 0, 59), "18:00", 18),
            ((18, 0, 59), "wed 18:00", 18),
            ((18, 0, 59), "6pm", 18),
            ((18, 1, 0), "18:00", 19),
            ((18, 1, 0), "wed 18:00", 25),
        ],
    )
    def test_what_starts_as_it_strikes_starts_today(self, clock, text, day):
        """As where a timer starts a command at 18:00."""
        now = NOW.replace(hour=clock[0], minute=clock[1], second=clock[2])
        assert parse_moment(text, now).at.day == day

    def test_a_date_without_a_year_is_today_all_day_long(self):
        assert said("18 nov 9am") == "Wednesday 18 November 2026, 09:00 CET"
        assert said("17 nov 9am") == "Wednesday 17 November 2027, 09:00 CET"

    def test_what_begins_today_begins_now(self):
        late = NOW.replace(hour=20, minute=15, second=30, microsecond=999_999)
        assert said("today", late) == "Wednesday 18 November 2026, 20:15:30 CET"
        assert said("tonight", late) == "Wednesday 18 November 2026, 20:15:30 CET", "it has begun"
        assert said("start of tonight", late) == "Wednesday 18 November 2026, 18:00 CET"
        assert said("today 9:00", late) == "Wednesday 18 November 2026, 09:00 CET", "as it is written"
        for date in ("2026-11-18", "18 nov", "wed 18 nov", "18.11."):
            assert said(date, late) == "Wednesday 18 November 2026, 20:15:30 CET"
            assert said(date, late, end_of=True) == "Wednesday 18 November 2026, 24:00 CET"
            assert said(f"start of {date}", late) == "Wednesday 18 November 2026, 00:00 CET"
        assert "is a Wednesday, not a Friday" in refused("fri 18 nov")

    @pytest.mark.parametrize("text", ["tonight 8:00", "tonight 2am", "11:59 tonight"])
    def test_tonight_is_no_morning(self, text):
        assert 'write it like "today 20:00" or "tomorrow 02:00"' in refused(text)

    def test_a_weekend_that_has_begun_still_ends(self):
        sunday = datetime(2026, 11, 22, 15, tzinfo=BERLIN)
        assert said("weekend", sunday, end_of=True) == "Sunday 22 November 2026, 24:00 CET"
        assert said("weekend", sunday) == "Saturday 28 November 2026, 00:00 CET"

    def test_next_is_clear_where_both_readings_agree(self):
        for day in range(16, 23):
            assert said("next monday", NOW.replace(day=day)) == "Monday 23 November 2026, 00:00 CET"
        assert said("next friday", NOW.replace(day=20)) == "Friday 27 November 2026, 00:00 CET"
        assert "20 November 2026 to some and 27 November 2026 to others" in refused("next friday", NOW.replace(day=19))


class TestUntil:
    """An end counts from its start."""

    START = datetime(2026, 11, 27, 9, tzinfo=BERLIN)

    @pytest.mark.parametrize(
        ("text", "understood"),
        [
            ("17:00", "Friday 27 November 2026, 17:00 CET"),
            ("8:00", "Saturday 28 November 2026, 08:00 CET"),
            ("2d 4h", "Sunday 29 November 2026, 13:00 CET"),
            ("for 2h", "Friday 27 November 2026, 11:00 CET"),
            ("in 2 weeks", "Wednesday 2 December 2026, 10:30 CET"),
            ("eod", "Friday 27 November 2026, 24:00 CET"),
            ("fri", "Friday 27 November 2026, 24:00 CET"),
            ("thu 8:00", "Thursday 3 December 2026, 08:00 CET"),
            ("fri 9:01", "Friday 27 November 2026, 09:01 CET"),
            ("end of week", "Sunday 29 November 2026, 24:00 CET"),
            ("end of this week", "Sunday 22 November 2026, 24:00 CET"),
            ("tomorrow", "Thursday 19 November 2026, 24:00 CET"),
            ("1 dec", "Tuesday 1 December 2026, 24:00 CET"),
            ("20 nov", "Saturday 20 November 2027, 24:00 CET"),
        ],
    )
    def test_from_the_start_or_from_now(self, text, understood):
        assert parse_until(text, self.START, NOW).understood == understood

    @pytest.mark.parametrize(
        ("text", "early", "why", "late"),
        [
            ("fri 8:00", "27 November 2026, 08:00 CET", "before the start", "4 December 2026, 08:00 CET"),
            ("friday 9am", "27 November 2026, 09:00 CET", "the start", "4 December 2026, 09:00 CET"),
            ("friday 8:00 UTC", "27 November 2026, 09:00 CET", "the start", "4 December 2026, 09:00 CET"),
            ("fri 15:00 Asia/Tokyo", "27 November 2026, 07:00 CET", "before the start", "4 December 2026, 07:00 CET"),
        ],
    )
    def test_a_time_before_the_start_on_its_weekday_is_not_clear(self, text, early, why, late):
        with pytest.raises(WhenError) as caught:
            parse_until(text, self.START, NOW)
        assert str(caught.value).startswith(f'Friday {early} is {why}; write "Friday {late}" if "{text.lower()}" is')
        assert parse_until(f"Friday {late}", self.START, NOW).understood == f"Friday {late}", "the advice is good"

    def test_from_now_on_it_is_the_next(self):
        for start in (NOW, NOW + timedelta(seconds=30), NOW - timedelta(hours=1)):
            assert parse_until("wed 10:00", start, NOW).understood == "Wednesday 25 November 2026, 10:00 CET"

    def test_of_what_has_begun_the_end_is_to_come(self):
        start = NOW - timedelta(days=9)
        assert parse_until("fri 18:00", start, NOW).understood == "Friday 20 November 2026, 18:00 CET"
        assert parse_until("18:00", start, NOW).understood == "Wednesday 18 November 2026, 18:00 CET"
        assert parse_until("end of week", start, NOW).understood == "Sunday 22 November 2026, 24:00 CET"
        assert parse_until("10d", start, NOW).understood == "Thursday 19 November 2026, 10:30 CET", "from the start"

    def test_a_start_of_another_zone(self):
        assert parse_until("17:00", self.START.astimezone(UTC), NOW).at == self.START.replace(hour=17)


class TestClocksThatChange:
    def test_berlin_goes_forward(self):
        message = refused("2027-03-28 02:30")
        assert "02:30 does not exist on 28 March 2027 in Europe/Berlin" in message
        assert 'write "Sunday 28 March 2027, 01:30 CET" or "Sunday 28 March 2027, 03:30 CEST"' in message
        assert said("2027-03-28 03:00") == "Sunday 28 March 2027, 03:00 CEST"

    def test_berlin_goes_back(self):
        message = refused("2026-10-25 02:30")
        assert '"Sunday 25 October 2026, 02:30 CEST" for the first' in message
        assert '"Sunday 25 October 2026, 02:30 CET" for the second' in message
        first, second = (parse_moment(f"2026-10-25 02:30 {name}", NOW).at for name in ("CEST", "CET"))
        assert (first.astimezone(UTC).hour, second.astimezone(UTC).hour) == (0, 1)
        assert parse_moment("2026-10-25 02:30 +01:00", NOW).at.astimezone(UTC) == second.astimezone(UTC)

    def test_new_york(self):
        now = NOW.astimezone(NEW_YORK)
        assert "does not exist on 14 March 2027 in America/New_York" in refused("2027-03-14 2:30am", now)
        assert "comes twice on 1 November 2026 in America/New_York" in refused("2026-11-01 1:30am", now)
        assert said("2026-11-01 1:30am EST", now) == "Sunday 1 November 2026, 01:30 EST"

    def test_lord_howe_moves_by_half_an_hour(self):
        now = NOW.astimezone(LORD_HOWE)
        message = refused("2027-04-04 01:45", now)
        assert '"Sunday 4 April 2027, 01:45 +11:00" for the first' in message
        assert '"Sunday 4 April 2027, 01:45 +10:30" for the second' in message
        assert "02:15 does not exist on 3 October 2027" in refused("2027-10-03 02:15", now)
        assert said("2027-10-03 02:30", now) == "Sunday 3 October 2027, 02:30 +11:00"

    def test_a_day_may_begin_at_one(self):
        now = datetime(2027, 3, 1, tzinfo=ZoneInfo("America/Havana"))
        assert said("2027-03-14", now) == "Sunday 14 March 2027, 01:00 CDT"
        assert said("2027-03-13", now, end_of=True) == "Sunday 14 March 2027, 01:00 CDT"
        assert "does not exist" in refused("2027-03-14 00:00", now)

    def test_a_day_with_two_midnights_begins_with_the_first(self):
        now = datetime(2026, 10, 1, tzinfo=ZoneInfo("America/Havana"))
        assert said("2026-11-01", now) == "Sunday 1 November 2026, 00:00 CDT"
        assert "comes twice" in refused("2026-11-01 00:00", now)

    def test_a_day_that_was_skipped(self):
        now = datetime(2011, 12, 1, tzinfo=ZoneInfo("Pacific/Apia"))
        assert "there was no 30 December 2011 in Pacific/Apia" in refused("2011-12-30", now)
        assert said("2011-12-29", now) == "Thursday 29 December 2011, 00:00 -10:00"

    def test_an_hour_that_is_over_does_not_matter(self):
        morning = datetime(2027, 3, 28, 10, tzinfo=BERLIN)
        assert said("02:30", morning) == "Monday 29 March 2027, 02:30 CEST"
        assert "does not exist" in refused("02:30", morning - timedelta(hours=9, minutes=30))

    def test_a_length_is_time_that_passes(self):
        before = datetime(2026, 10, 24, 18, tzinfo=BERLIN)
        assert said("1d", before) == "Sunday 25 October 2026, 17:00 CET"
        assert said("tomorrow 18:00", before) == "Sunday 25 October 2026, 18:00 CET"
        assert said("in 8 hours", before) == "Sunday 25 October 2026, 02:00 CEST"
        assert said("in 9 hours", before) == "Sunday 25 October 2026, 02:00 CET"


class TestOtherZones:
    """A time may be that of clocks elsewhere."""

    def test_by_name_in_any_letters(self):
        for name in ("Europe/London", "europe/london", "EUROPE/LONDON"):
            assert said(f"2026-12-01 18:00 {name}") == "Tuesday 1 December 2026, 19:00 CET"
        assert said("6pm America/Argentina/Buenos_Aires") == "Wednesday 18 November 2026, 22:00 CET"
        assert said("18:00 Uhr Etc/GMT+5") == "Thursday 19 November 2026, 00:00 CET"
        assert said("18:00 America/New_York on friday") == "Saturday 21 November 2026, 00:00 CET"

    def test_a_weekday_is_that_of_the_clocks_there(self):
        night = datetime(2026, 11, 21, 1, tzinfo=BERLIN)
        assert said("friday 20:00 America/New_York", night) == "Saturday 21 November 2026, 02:00 CET"
        assert said("friday 18:00 America/New_York", night) == "Saturday 28 November 2026, 00:00 CET"

    def test_their_hours_that_are_skipped_or_come_twice(self):
        message = refused("2027-03-14 2:30 America/New_York")
        assert "02:30 does not exist on 14 March 2027 in America/New_York" in message
        advised = re.findall('"(Sunday .+?)"', message)
        assert [said(one) for one in advised] == [f"Sunday 14 March 2027, 0{hour}:30 CET" for hour in (7, 8)]
        message = refused("2026-11-01 1:30 America/New_York")
        advised = re.findall('"(Sunday .+?)"', message)
        assert [said(one) for one in advised] == [f"Sunday 1 November 2026, 0{hour}:30 CET" for hour in (6, 7)]

    def test_an_hour_that_was_skipped_there_this_morning(self):
        noon = datetime(2027, 3, 14, 12, tzinfo=BERLIN)
        assert said("2:30 America/New_York", noon) == "Monday 15 March 2027, 07:30 CET"

    @pytest.mark.parametrize("word", ["sharp", "please", "x", "europe", "ok", "hours"])
    def test_a_word_is_a_zone_only_where_it_is_one(self, word):
        assert refused(f"18:00 {word}").startswith(f'in "18:00 {word}" I understood "18:00", but not "{word}"')

    @pytest.mark.parametrize("name", ["PST", "EST", "JST", "CEST", "IST"])
    def test_one_of_elsewhere_is_named(self, name):
        assert refused(f"18:00 {name}").startswith(f'"{name}" is not what Europe/Berlin has on 18 November 2026')


class TestTheDateCommand:
    """What `date` prints has the year at its end."""

    def test_with_and_without_a_zone(self):
        for text in ("Tue Dec  1 18:00:00 CET 2026", "Tue Dec  1 18:00:00 2026", "Tue Dec  1 06:00:00 PM CET 2026"):
            assert said(text) == "Tuesday 1 December 2026, 18:00 CET"
        assert said("Tue Dec 1 17:00:00 UTC 2026") == "Tuesday 1 December 2026, 18:00 CET"

    def test_it_must_be_right(self):
        assert "1 December 2027 is a Wednesday, not a Tuesday" in refused("Tue Dec 1 18:00:00 CET 2027")
        assert "February 2027 has no day 29" in refused("Mon Feb 29 18:00:00 2027")
        assert "not one of 1970 to 2199" in refused("Tue Dec 1 18:00:00 CET 1830")

    def test_elsewhere_four_digits_say_nothing(self):
        assert 'but not "2026"' in refused("1 dec 18:00 2026"), "that may be 20:26"


@pytest.mark.parametrize(
    ("name", "number"),
    [
        *(("januar", 1), ("Feb", 2), ("Februar", 2), ("März", 3), ("Maerz", 3), ("mär", 3), ("mrz.", 3), ("April", 4)),
        *(("mai", 5), ("juni", 6), ("Juli", 7), ("August", 8), ("Okt", 10), ("Oktober", 10), ("dez.", 12)),
    ],
)
def test_months_in_german(name, number):
    assert parse_moment(f"7. {name} 2027", NOW).at == datetime(2027, number, 7, tzinfo=BERLIN)


class TestEndsOfYears:
    def test_new_year(self):
        eve = datetime(2026, 12, 31, 23, 30, tzinfo=BERLIN)
        assert said("1h", eve) == "Friday 1 January 2027, 00:30 CET"
        assert said("0:15", eve) == "Friday 1 January 2027, 00:15 CET"
        assert said("2 jan", eve) == "Saturday 2 January 2027, 00:00 CET"
        assert said("fri", eve) == "Friday 1 January 2027, 00:00 CET"
        assert said("eoy", eve) == "Thursday 31 December 2026, 24:00 CET"
        assert said("next month", eve) == "Friday 1 January 2027, 00:00 CET"
        assert said("end of january", eve) == "Sunday 31 January 2027, 24:00 CET"

    def test_leap_days(self):
        leap = datetime(2028, 2, 29, 12, tzinfo=BERLIN)
        assert said("tomorrow", leap) == "Wednesday 1 March 2028, 00:00 CET"
        assert said("29 feb 18:00", leap) == "Tuesday 29 February 2028, 18:00 CET"
        assert said("29 feb", leap + timedelta(days=1)) == "Sunday 29 February 2032, 00:00 CET"
        assert said("end of february", leap) == "Tuesday 29 February 2028, 24:00 CET"
        assert said("29 feb", datetime(2097, 1, 1, tzinfo=UTC)) == "Friday 29 February 2104, 00:00 UTC"
        assert "February 2100 has no day 29" in refused("2100-02-29")

    def test_years_have_bounds(self):
        assert said("1970-01-01") == "Thursday 1 January 1970, 00:00 CET"
        assert "not one of 1970 to 2199" in refused("1969-12-31")
        assert "not one of 1970 to 2199" in refused("2200-01-01")
        assert "within the years" in refused("in 5000 weeks", NOW.replace(year=2150))
        with pytest.raises(WhenError, match="within the years"):
            parse_moment("2199-12-31", NOW, end_of=True)
        assert "longer than a hundred years" in refused("99999999d")


class TestSpans:
    @pytest.mark.parametrize(
        ("text", "hours"),
        [
            ("2d 4h", 52),
            ("90m", 1.5),
            ("1.5h", 1.5),
            ("1w", 168),
            ("1 hr, 30 min", 1.5),
            ("for an hour", 1),
            ("+3h", 3),
            ("0,125h", 0.125),
            ("1234.500h", 1234.5),
            ("1.25h", 1.25),
            ("1d 2H 30M", 26.5),
            ("2h 1M", 2 + 1 / 60),
        ],
    )
    def test_as_people_write_them(self, text, hours):
        assert parse_span(text) == timedelta(hours=hours)

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("", "no length of time is given"),
            ("friday", '"friday" is no length of time'),
            ("2", '"2" is no length of time'),
            ("2h 30", 'in "2h 30" I understood "2h", but not " 30"'),
            ("0h", '"0h" is no time at all'),
            ("-2h", '"-2h" is no length of time'),
            ("2 months", "months differ"),
            ("1,000h", '"1,000h" is 1 hour to some and 1000 hours to others; write "1h" or "1000h"'),
            ("2.250 h", '"2.250 h" is 2.25 hours to some and 2250 hours to others; write "2.25h" or "2250h"'),
            ("999,999s", '"999,999s" is 999.999 seconds to some and 999999 seconds to others'),
            ("1d 1,000h", '"1,000h" is 1 hour to some'),
            ("1M", '"1M" is minutes to some and months to others; write "1m" for minutes'),
            ("for 3 M", '"3 M" is minutes to some and months to others; write "3m" for minutes'),
            ("3h 1 year", "years differ"),
            ("x" * 200, "is too long to be a time"),
        ],
    )
    def test_others_say_why_not(self, text, why):
        with pytest.raises(WhenError) as caught:
            parse_span(text)
        assert why in str(caught.value)


moments = st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1)).flatmap(
    lambda wall: st.sampled_from(ZONES).map(lambda name: wall.replace(tzinfo=UTC).astimezone(ZoneInfo(name)))
)
WORDS = sorted({word for row in MEANINGS for word in re.split(r"[ ,]", row[0])})
texts = st.one_of(
    st.text(max_size=130),
    st.sampled_from([row[0] for row in MEANINGS]),
    st.lists(
        st.sampled_from([*WORDS, ",", "-", "+", "0", "99:99", "utc", "M", "1,000", "\0", "é", "²", "١"]), max_size=6
    ).map(" ".join),
    st.text("0123456789:.-/+ apmthdw", max_size=25),
)


@given(texts, moments, st.booleans())
@example("0/0", NOW, False)
@example("31/31/0000", NOW, False)
@example("00:00 +14:59:59", NOW, False)
def test_any_text_is_understood_or_refused_and_what_is_shown_reads_back(text, now, end_of):
    try:
        found = parse_moment(text, now, end_of=end_of)
    except WhenError as error:
        assert str(error)
        assert str(error).isprintable()
        return
    for side in (False, True):
        assert parse_moment(found.understood, now, end_of=side).at.astimezone(UTC) == found.at.astimezone(UTC)
    assert found.at.tzinfo is now.tzinfo


@given(texts, moments, moments)
def test_any_end_is_understood_or_refused(text, start, now):
    try:
        found = parse_until(text, start, now)
    except WhenError:
        return
    assert parse_until(found.understood, start, now).at.astimezone(UTC) == found.at.astimezone(UTC)


@given(texts)
def test_any_span_is_understood_or_refused(text):
    try:
        assert parse_span(text) > timedelta()
    except WhenError as error:
        assert str(error).isprintable()


@given(moments, moments)
def test_every_moment_that_is_shown_reads_back(at, now):
    at = at.astimezone(now.tzinfo).replace(microsecond=at.microsecond // 1000 * 1000)
    assert parse_moment(shown(at), now).at.astimezone(UTC) == at.astimezone(UTC)


def test_zones_without_a_name():
    now = datetime(2026, 11, 18, tzinfo=timezone(timedelta(hours=5, minutes=45)))
    assert said("tomorrow 9am", now) == "Thursday 19 November 2026, 09:00 +05:45"


@pytest.mark.parametrize(
    ("text", "length"),
    [("4h", timedelta(hours=4)), ("in 90m", timedelta(minutes=90)), ("19:00", None), ("in 2d 18:00", None)],
)
def test_a_length_is_known_as_one(text: str, length: timedelta | None):
    assert parse_until(text, NOW, NOW).length == length
    later = NOW + timedelta(days=1)
    assert parse_until("4h", later, NOW).length == timedelta(hours=4)
    # It counts from now, whenever the start is.
    assert parse_until("in 2d", later, NOW).length is None
