"""What stands in the text of a moment: a day, a time, a zone, a length of time; not yet which moment that is."""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, NamedTuple

from gpulse.errors import WhenError
from gpulse.reservations import calendar_text, clock_text, spans
from gpulse.reservations.calendar_text import MONTH, WrittenDate, month_number, with_year
from gpulse.reservations.clock_text import Zone
from gpulse.reservations.patterns import WORD_END, pattern
from gpulse.reservations.spans import quoted, tidy
from gpulse.reservations.wall_clock import WEEKDAYS

HINT = 'write it like "2026-12-01 18:00", "friday 18:00", "tomorrow 9am", "end of week" or "2d 4h"'


Unit = Literal["week", "weekend", "month", "year"]


class FromToday(NamedTuple):
    """So many days after today; of that day its evening alone where "tonight" was written."""

    days: int
    evening: bool = False


class OnWeekday(NamedTuple):
    """A weekday, Monday being 0: the next there is, or that of this (0) or the following (1) week."""

    number: int
    week: int | None = None
    # "next friday": which one is not clear on every day.
    following: bool = False


class InPeriod(NamedTuple):
    """A week, weekend, month or year as a whole: this (0) or the following (1); None: that in which it begins."""

    unit: Unit
    shift: int | None = None
    month: int | None = None
    year: int | None = None


class Length(NamedTuple):
    """A length of time, from now on, before now, or from wherever it begins."""

    span: timedelta
    since: Literal["now", "ago", "start"]


Day = FromToday | OnWeekday | InPeriod | WrittenDate


@dataclass
class Written:
    """The parts that were found; None is not there."""

    text: str
    day: Day | None = None
    # Beside a date, where it must agree.
    weekday: int | None = None
    # Since the beginning of the day; 24 hours is its end.
    clock: timedelta | None = None
    # Of the time, where it is said.
    zone: Zone | None = None
    length: Length | None = None
    now: bool = False
    edge: Literal["start", "end"] | None = None


_WEEKDAY = (
    "mon(?:day)?|tue(?:s(?:day)?)?|wed(?:s|nesday)?|thu(?:r(?:s(?:day)?)?)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?"
)
_UNITS: dict[str, Unit] = {"week": "week", "weekend": "weekend", "month": "month", "year": "year"}
_UNITS |= {"w": "week", "m": "month", "y": "year"}
_TODAY = {"today": 0, "tomorrow": 1, "yesterday": -1, "day after tomorrow": 2, "the day after tomorrow": 2}

_NOW = pattern(rf"(?:right )?now{WORD_END}")
_DAYS = pattern(rf"(?:{'|'.join(sorted(_TODAY, key=len, reverse=True))}){WORD_END}")
_TONIGHT = pattern(rf"tonight{WORD_END}")
_ON_WEEKDAY = pattern(
    rf"(?:(?P<which>next|this|coming) )?(?P<name>{_WEEKDAY})\.?{WORD_END}(?: (?P<week>next|this) week{WORD_END})?"
)
_IN_PERIOD = pattern(rf"(?:(?P<which>next|this|the|coming) )?(?P<unit>weekend|week|month|year){WORD_END}")
_IN_MONTH = pattern(rf"(?P<month>{MONTH})\.?{WORD_END}(?: (?P<year>\d{{4}})(?![\w:]))?")
_EDGE = pattern(r"(?:the )?(?P<edge>end|start|beginning) of (?:the )?(?=\w)")
_SHORT_END = pattern(rf"eo(?P<unit>[wmy]){WORD_END}")
_YEAR = pattern(r"\d{4}$")
_BEFORE = pattern(r"in (?=\w)")
_AFTER = pattern(rf" (?P<word>from now|ago){WORD_END}")
_FROM_START = pattern(r"(?:for |\+ ?)?(?=\w)")
# What may stand between the parts, and says nothing.
_BETWEEN = pattern(rf"(?: |, ?)*(?:(?:at|on|um){WORD_END} ?|@ ?)?")


def read(text: str) -> Written:
    """The parts of a text; WhenError says what was understood, and what was not."""
    return _Reader(tidy(text)).written


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.written = Written(text)
        if not text:
            raise WhenError("no time is given", HINT)
        while self._at < len(text):
            begin = self._at
            self._skip()
            if self._at == len(text) or not self._part():
                raise self._unclear(begin)

    def _skip(self) -> None:
        # At the front a word that joins has nothing to join: "at 18:00" is how people say it all the same.
        match = _BETWEEN.match(self._text, self._at)
        self._at = match.end() if match else self._at

    def _unclear(self, begin: int) -> WhenError:
        rest = self._text[begin:].strip(" ,") or self._text[begin:]
        if begin == 0:
            return WhenError(f"{quoted(self._text)} is no time that I understand", HINT)
        known = quoted(self._text[:begin].rstrip(" ,"))
        return WhenError(f"in {quoted(self._text)} I understood {known}, but not {quoted(rest)}", HINT)

    def _take(self, pattern: re.Pattern[str]) -> "re.Match[str] | None":
        match = pattern.match(self._text, self._at)
        if match:
            self._at = match.end()
        return match

    def _part(self) -> bool:
        """Takes what stands here; False where nobody knows what it is."""
        found = self._date() or self._time(self._at) or self._length() or self._edge() or self._day_word()
        return found or self._period() or self._year()

    def _once(self, what: str, there: bool) -> None:
        if there:
            raise WhenError(f"{quoted(self._text)} has more than one {what}", HINT)

    def _set_day(self, day: Day) -> bool:
        self._once("day", self.written.day is not None or self.written.length is not None or self.written.now)
        self.written.day = day
        return True

    def _date(self) -> bool:
        found = calendar_text.scan(self._text, self._at)
        if found is None:
            return False
        date, self._at = found
        if isinstance(self.written.day, OnWeekday) and self.written.day.week is None and not self.written.day.following:
            # Friday 20 November.
            self.written.weekday, self.written.day = self.written.day.number, None
        self._set_day(date)
        # 2026-12-01T18:00
        if self._text.startswith("t", self._at):
            self._time(self._at + 1, joined=True)
        return True

    def _time(self, at: int, joined: bool = False) -> bool:
        found = clock_text.scan(self._text, at, joined)
        if found is None:
            return False
        self._once("time", self.written.clock is not None or self.written.now)
        (self.written.clock, self.written.zone), self._at = found
        return True

    def _length(self) -> bool:
        begin = self._at
        since: Literal["now", "start"] = "now" if self._take(_BEFORE) else "start"
        joined = self._take(_FROM_START) if since == "start" else None
        span, end = spans.scan(self._text, self._at)
        if end == self._at:
            self._at = begin
            return False
        self._at = end
        self._once("length of time or day", self.written.length is not None or self.written.day is not None)
        if self.written.now:
            # "now + 2h"
            self._once("time", joined is None or "+" not in joined[0])
            self.written.now, since = False, "now"
        after = self._take(_AFTER) if since == "start" else None
        if after is None:
            self.written.length = Length(span, since)
        else:
            self.written.length = Length(span, "ago" if after["word"] == "ago" else "now")
        return True

    def _edge(self) -> bool:
        if match := self._take(_SHORT_END):
            self.written.edge = "end"
            return self._set_day(InPeriod(_UNITS[match["unit"]]))
        match = self._take(_EDGE)
        if match is None:
            return False
        self._once("end or beginning", self.written.edge is not None or self.written.day is not None)
        self.written.edge = "end" if match["edge"] == "end" else "start"
        if self._date() or self._day_word() or self._period():
            return True
        raise WhenError(f"in {quoted(self._text)} it is not clear of what the {match['edge']} is meant", HINT)

    def _day_word(self) -> bool:
        if self.written.edge is None and self._take(_NOW):
            there = (self.written.clock, self.written.day, self.written.length)
            self._once("time", self.written.now or any(part is not None for part in there))
            self.written.now = True
            return True
        if self._take(_TONIGHT):
            return self._set_day(FromToday(0, evening=True))
        if match := self._take(_DAYS):
            return self._set_day(FromToday(_TODAY[match[0]]))
        if match := self._take(_ON_WEEKDAY):
            return self._weekday(match)
        return False

    def _weekday(self, match: "re.Match[str]") -> bool:
        number = next(at for at, name in enumerate(WEEKDAYS) if name.lower().startswith(match["name"][:3]))
        if match["which"] in ("next", "this") and match["week"]:
            raise WhenError(f"{quoted(match[0])} says twice which week is meant", HINT)
        if isinstance(self.written.day, WrittenDate) and not match["which"] and not match["week"]:
            # 20 November, a Friday.
            self._once("weekday", self.written.weekday is not None)
            self.written.weekday = number
            return True
        week = {"next": 1, "this": 0, None: None}[match["week"]]
        if match["which"] == "this":
            week = 0
        return self._set_day(OnWeekday(number, week, match["which"] == "next"))

    def _period(self) -> bool:
        if match := self._take(_IN_PERIOD):
            unit = _UNITS[match["unit"]]
            shift = {"next": 1, "this": 0, "coming": None, "the": None, None: None}[match["which"]]
            if unit != "weekend" and self.written.edge is None and match["which"] not in ("next", "this"):
                raise WhenError(f"{quoted(match[0])} alone is no time", f'write "this {unit}" or "end of {unit}"')
            return self._set_day(InPeriod(unit, shift))
        if match := self._take(_IN_MONTH):
            year = match["year"]
            return self._set_day(InPeriod("month", None, month_number(match["month"]), int(year) if year else None))
        return False

    def _year(self) -> bool:
        """At the end, as `date` prints it: Tue Dec 1 18:00:00 CET 2026."""
        day = self.written.day
        if not isinstance(day, WrittenDate) or day.year or self.written.weekday is None or self.written.clock is None:
            return False
        match = self._take(_YEAR)
        if match is None:
            return False
        self.written.day = with_year(day, int(match[0]), self._text)
        return True
