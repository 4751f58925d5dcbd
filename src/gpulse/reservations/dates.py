"""Moments as people write them, in their zone: which one is meant, shown back in full, or why that is not clear."""

import calendar
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import NamedTuple
from zoneinfo import ZoneInfo

from gpulse.errors import WhenError
from gpulse.reservations.calendar_text import FIRST_YEAR, LAST_YEAR, WrittenDate, exists
from gpulse.reservations.spans import parse_span, quoted
from gpulse.reservations.wall_clock import MONTHS, WEEKDAYS, at_clock, day_text, first_moment, full_text
from gpulse.reservations.written import HINT, FromToday, InPeriod, Length, OnWeekday, Written, read

__all__ = ["Moment", "parse_moment", "parse_span", "parse_until", "shown"]

_ONE_DAY = timedelta(days=1)
_WEEK = timedelta(days=7)
# Two leap years are never further apart.
_YEARS_AHEAD = 9
_DAYS_AHEAD = 3
_OF_UTC = ("z", "utc", "gmt")
# When "tonight" begins; before noon a time is of the morning, and which one is meant is not clear.
_EVENING, _NOON = timedelta(hours=18), timedelta(hours=12)
# A start is as good as now so long.
_NOW_SECONDS = timedelta(seconds=60)


class Moment(NamedTuple):
    """What was written as a time: when that is, in the zone of who wrote it, and in full."""

    at: datetime
    understood: str
    # How long it is from the start on, where that was written.
    length: timedelta | None = None


def parse_moment(text: str, now: datetime, *, end_of: bool = False) -> Moment:
    """The moment a text means in the zone of `now`; with `end_of` a day without a time is meant to its end.

    It may be in the past. WhenError says what was understood and what not.
    """
    return _Meaning(read(text), now, now, end_of).moment()


def parse_until(text: str, start: datetime, now: datetime) -> Moment:
    """The end of something that starts at `start`: a moment after it, or how long it is ("2d 4h")."""
    return _Meaning(read(text), now, start, end_of=True).moment()


def shown(at: datetime) -> str:
    """A moment in full, in its own zone."""
    return full_text(at)


class _Meaning:
    """Which moment a text means.

    Words as "tomorrow" count from now, a length from the start, the next 18:00 or Friday from whichever is later.
    """

    def __init__(self, written: Written, now: datetime, start: datetime, end_of: bool) -> None:
        self._written = written
        self._zone: tzinfo = now.tzinfo or UTC
        self._now = now.astimezone(self._zone).replace(microsecond=0)
        self._start = start
        self._after = max(start, now).astimezone(self._zone)
        self._starts_later = start - now > _NOW_SECONDS
        # Who writes 18:00 as a start while it strikes means this one, not tomorrow's.
        self._missed = self._after if end_of else self._after - _NOW_SECONDS
        # Which side of a day or week is meant where no time is given.
        self._edge = written.edge or ("end" if end_of else "start")

    def moment(self) -> Moment:
        at, ends_day = self._found()
        at = at.astimezone(self._zone)
        if not FIRST_YEAR <= at.year <= LAST_YEAR:
            raise WhenError(f"{self._quoted} is not within the years {FIRST_YEAR} to {LAST_YEAR}")
        return Moment(at, full_text(at, ends_day), self._length())

    def _length(self) -> timedelta | None:
        length = self._written.length
        # "in 2h" is a moment where it starts later.
        counts = length is not None and (length.since == "start" or (length.since == "now" and not self._starts_later))
        return length.span if length is not None and counts and self._written.clock is None else None

    def _found(self) -> tuple[datetime, bool]:
        """The moment, and whether it is the end of a day here."""
        written = self._written
        if written.now:
            return self._now, False
        if written.length is not None:
            return self._after_length(written.length)
        if written.clock is None:
            return self._whole_days()
        if isinstance(written.day, InPeriod):
            raise WhenError(
                f"{self._quoted} has a time, but not which day it is", 'write it like "monday next week 9am"'
            )
        return self._first(self._days(), later=self._rolls), written.clock == _ONE_DAY and written.zone is None

    @property
    def _quoted(self) -> str:
        return quoted(self._written.text)

    @property
    def _rolls(self) -> bool:
        """Whether a day that has passed means the next of its kind."""
        day = self._written.day
        return day is None or (isinstance(day, OnWeekday) and day.week is None)

    def _after_length(self, length: Length) -> tuple[datetime, bool]:
        clock = self._written.clock
        if self._written.day is not None or self._written.edge is not None:
            raise WhenError(f"{self._quoted} has both a day and a length of time", HINT)
        if clock is not None:
            if length.since == "start" or length.span % _ONE_DAY:
                raise WhenError(f"{self._quoted} has both a time and a length of time", HINT)
            days = length.span if length.since == "now" else -length.span
            return self._at(self._now.date() + days), clock == _ONE_DAY and self._written.zone is None
        start = self._start.replace(microsecond=0) if length.since == "start" else self._now
        span = -length.span if length.since == "ago" else length.span
        # Hours that pass, whatever the clocks show meanwhile.
        return start.astimezone(UTC) + span, False

    def _whole_days(self) -> tuple[datetime, bool]:
        day = self._written.day
        if isinstance(day, InPeriod):
            return self._of_period(day), self._edge == "end"
        if day is None:
            raise WhenError(f"{self._quoted} is no time that I understand", HINT)
        if isinstance(day, FromToday) and self._edge == "start" and (day.evening or day.days == 0):
            return self._from_today_on(day), False
        if isinstance(day, WrittenDate) and self._edge == "start" and self._dated(day) == self._now.date():
            self._agrees(self._now.date())
            return self._from_today_on(FromToday(0)), False
        return self._first(self._days(), later=self._rolls), self._edge == "end"

    def _from_today_on(self, day: FromToday) -> datetime:
        """What begins today begins now, unless its beginning is asked for, and tonight not before the evening."""
        if not day.evening:
            return self._now if self._written.edge is None else self._at(self._now.date())
        evening = at_clock(self._now.date(), _EVENING, self._zone)
        return evening if self._written.edge is not None else max(evening, self._now)

    def _first(self, days: Iterator[date], later: bool) -> datetime:
        """The first of them; with `later` the first that is still to come."""
        for day in days:
            if not later or self._to_come(day):
                return self._at(day)
        raise WhenError(f"{self._quoted} does not come soon enough", HINT)

    def _to_come(self, day: date) -> bool:
        """Without a complaint about an hour that did not exist this morning."""
        try:
            return self._at(day) > self._missed
        except WhenError:
            there = self._missed.astimezone(self._clock_zone)
            return day > there.date() or self._wall(day) > there.replace(tzinfo=None)

    def _wall(self, day: date) -> datetime:
        return datetime(day.year, day.month, day.day) + (self._written.clock or timedelta())

    @property
    def _clock_zone(self) -> tzinfo:
        """Where the time is that of the clocks."""
        zone = self._written.zone
        if isinstance(zone, timedelta):
            return timezone(zone)
        if isinstance(zone, ZoneInfo):
            return zone
        return UTC if zone in _OF_UTC else self._zone

    def _at(self, day: date) -> datetime:
        """The time on a day, or its beginning or end."""
        clock, zone = self._written.clock, self._written.zone
        if clock is None:
            return first_moment(day + _ONE_DAY if self._edge == "end" else day, self._zone)
        if not isinstance(zone, str):
            return at_clock(day, clock, self._clock_zone, here=self._zone)
        try:
            return at_clock(day, clock, self._zone, zone)
        except WhenError:
            # What the own zone calls GMT comes first.
            if zone not in _OF_UTC:
                raise
            return at_clock(day, clock, UTC)

    def _days(self) -> Iterator[date]:
        """The days that are meant, the first first."""
        day, today = self._written.day, self._now.date()
        if day is None:
            begin = self._after.date() - _ONE_DAY if self._written.zone is not None else self._after.date()
            yield from (begin + timedelta(days=number) for number in range(_DAYS_AHEAD + 1))
        elif isinstance(day, FromToday):
            self._check_tonight(day)
            yield today + timedelta(days=day.days)
        elif isinstance(day, OnWeekday):
            yield from self._weekdays(day, today)
        elif isinstance(day, WrittenDate):
            found = self._dated(day)
            self._agrees(found)
            yield found

    def _weekdays(self, day: OnWeekday, today: date) -> Iterator[date]:
        monday = today - timedelta(days=today.weekday())
        if day.week is not None:
            yield monday + timedelta(days=day.number) + day.week * _WEEK
            return
        if day.following:
            nearest = today + timedelta(days=(day.number - today.weekday() - 1) % 7 + 1)
            of_next_week = monday + timedelta(days=day.number) + _WEEK
            if nearest != of_next_week:
                name = WEEKDAYS[day.number]
                raise WhenError(
                    f"{self._quoted} is {day_text(nearest)} to some and {day_text(of_next_week)} to others",
                    f'write "{name.lower()}" or "{name.lower()} next week"',
                )
            yield nearest
            return
        first = self._after.astimezone(self._clock_zone).date()
        first += timedelta(days=(day.number - first.weekday()) % 7)
        if self._written.clock is not None and self._starts_later and not self._to_come(first):
            raise self._before_start(first)
        yield from (first, first + _WEEK)

    def _before_start(self, day: date) -> WhenError:
        """An end on the weekday of the start, at a time before it: a week later, or a mistake."""
        early, late = (self._at(one).astimezone(self._zone) for one in (day, day + _WEEK))
        return WhenError(
            f"{full_text(early)} is {'before ' if early < self._after else ''}the start",
            f'write "{full_text(late)}" if {self._quoted} is meant to be a week later, else another time',
        )

    def _check_tonight(self, day: FromToday) -> None:
        clock = self._written.clock
        if day.evening and clock is not None and clock < _NOON:
            raise WhenError(
                f"{self._quoted} has a time that is not of the evening",
                'write it like "today 20:00" or "tomorrow 02:00"',
            )

    def _dated(self, day: WrittenDate) -> date:
        if day.year is not None:
            return date(day.year, day.month, day.day)
        first = self._after.date()
        for year in range(first.year, first.year + _YEARS_AHEAD):
            if exists(day._replace(year=year)) and date(year, day.month, day.day) >= first:
                return date(year, day.month, day.day)
        raise WhenError(f"{self._quoted} does not come soon enough", HINT)

    def _agrees(self, found: date) -> None:
        weekday = self._written.weekday
        if weekday is not None and weekday != found.weekday():
            raise WhenError(
                f"{day_text(found)} is a {WEEKDAYS[found.weekday()]}, not a {WEEKDAYS[weekday]}",
                f"which of the two is meant by {self._quoted}?",
            )

    def _of_period(self, period: InPeriod) -> datetime:
        base = self._after.date() if period.shift is None else self._now.date()
        if period.unit == "weekend":
            return self._of_weekend(period, base)
        first, last = _ends(period, base)
        return first_moment(last + _ONE_DAY if self._edge == "end" else first, self._zone)

    def _of_weekend(self, period: InPeriod, base: date) -> datetime:
        saturday = base + timedelta(days=5 - base.weekday())
        if period.shift == 1:
            raise WhenError(
                f"{self._quoted} is {day_text(saturday)} to some and {day_text(saturday + _WEEK)} to others",
                'write "weekend" for the coming one, or "saturday next week"',
            )
        day = saturday + _ONE_DAY if self._edge == "end" else saturday
        return self._first(iter((day, day + _WEEK)), later=period.shift is None)


def _ends(period: InPeriod, base: date) -> tuple[date, date]:
    """The first and the last day of a week, month or year."""
    shift = period.shift or 0
    if period.unit == "week":
        monday = base - timedelta(days=base.weekday()) + shift * _WEEK
        return monday, monday + 6 * _ONE_DAY
    if period.unit == "year":
        return date(base.year + shift, 1, 1), date(base.year + shift, 12, 31)
    if period.month is None:
        year, month = divmod(base.year * 12 + base.month - 1 + shift, 12)
        month += 1
    else:
        month = period.month
        year = period.year or (base.year if month >= base.month else base.year + 1)
    if not FIRST_YEAR <= year <= LAST_YEAR:
        raise WhenError(f"{MONTHS[month - 1]} {year} is not within the years {FIRST_YEAR} to {LAST_YEAR}")
    return date(year, month, 1), date(year, month, calendar.monthrange(year, month)[1])
