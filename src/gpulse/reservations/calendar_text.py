"""Dates as people write them: 2026-12-01, 01.12.2026, 1 dec, Dec 1st, 2026; those with two meanings are refused."""

import calendar
import re
from typing import NamedTuple

from gpulse.errors import WhenError
from gpulse.reservations.patterns import pattern
from gpulse.reservations.spans import quoted
from gpulse.reservations.wall_clock import MONTHS

FIRST_YEAR = 1970
LAST_YEAR = 2199
_ISO = "2026-12-01"
# In English and in German.
MONTH = (
    "jan(?:uary?)?|feb(?:ruary?)?|mar(?:ch)?|m(?:ä|ae)rz|mär|mrz|apr(?:il)?|ma[iy]|jun[ei]?|jul[iy]?|aug(?:ust)?"
    "|sep(?:t(?:ember)?)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?"
)
_GERMAN = {"mär": 3, "mae": 3, "mrz": 3, "mai": 5, "okt": 10, "dez": 12}


class WrittenDate(NamedTuple):
    """A date of the calendar; without a year it is the next there is."""

    year: int | None
    month: int
    day: int


_NTH = r"(?P<d>\d{1,2})(?:st|nd|rd|th)?"
_UNAMBIGUOUS = (
    # A time may follow at once: 2026-12-01T18:00
    pattern(r"(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})(?=t\d|\W|$)"),
    # 20261201T180000, as calendars have it; without a time it may be any number.
    pattern(r"(?P<y>\d{4})(?P<m>\d{2})(?P<d>\d{2})(?=t\d)"),
    pattern(r"(?P<y>\d{4})/(?P<m>\d{1,2})/(?P<d>\d{1,2})(?!\w)"),
    pattern(r"(?P<d>\d{1,2})\. ?(?P<m>\d{1,2})\.(?: ?(?P<y>\d{4})|(?P<yy>\d{2}))?(?![\w:.])"),
    pattern(rf"{_NTH}\.?(?: of)?[ -]?(?P<month>{MONTH})\.?(?!\w)(?:(?:, ?| |-)(?P<y>\d{{4}})(?![\w:]))?"),
    pattern(rf"(?P<month>{MONTH})\.? ?{_NTH}(?![\w:.])(?:(?:, ?| )(?P<y>\d{{4}})(?![\w:]))?"),
)
_SLASHED = pattern(r"(?P<one>\d{1,2})/(?P<two>\d{1,2})(?:/(?P<y>\d{4}|\d{2}))?(?!\w)")


def scan(text: str, at: int) -> tuple[WrittenDate, int] | None:
    """The date that stands at a place of tidy text, and where it ends."""
    for form in _UNAMBIGUOUS:
        if match := form.match(text, at):
            return _checked(match), match.end()
    if match := _SLASHED.match(text, at):
        return _slashed(match), match.end()
    return None


def month_number(name: str) -> int:
    """Of a name that MONTH knows."""
    first = name[:3]
    return _GERMAN.get(first) or next(at for at, month in enumerate(MONTHS, 1) if month.lower().startswith(first))


def with_year(date: WrittenDate, year: int, text: str) -> WrittenDate:
    """A date whose year stands elsewhere in the text."""
    return _sure(date._replace(year=year), text)


def exists(date: WrittenDate) -> bool:
    """Whether a year, where it has one, has this day."""
    # Without a year it may be a leap year.
    year = 2000 if date.year is None else date.year
    return 1 <= date.month <= 12 and 1 <= date.day <= calendar.monthrange(year, date.month)[1]


def _checked(match: "re.Match[str]") -> WrittenDate:
    parts = match.groupdict()
    year = parts.get("y") or (f"20{parts['yy']}" if parts.get("yy") else None)
    month = month_number(parts["month"]) if parts.get("month") else int(parts["m"])
    return _sure(WrittenDate(int(year) if year else None, month, int(parts["d"])), match[0])


def _sure(date: WrittenDate, text: str) -> WrittenDate:
    if date.year is not None and not FIRST_YEAR <= date.year <= LAST_YEAR:
        raise WhenError(f"the year of {quoted(text)} is not one of {FIRST_YEAR} to {LAST_YEAR}")
    if not 1 <= date.month <= 12:
        raise WhenError(f"{quoted(text)} is no date: there is no month {date.month}", "write it like 2026-12-01")
    if not exists(date):
        of_year = "" if date.year is None else f" {date.year}"
        raise WhenError(f"{quoted(text)} is no date: {MONTHS[date.month - 1]}{of_year} has no day {date.day}")
    return date


def _slashed(match: "re.Match[str]") -> WrittenDate:
    """Some write the day first, some the month; only where one alone is possible it is taken."""
    year = match["y"]
    if year is not None and len(year) == 2:
        raise WhenError(f"the year of {quoted(match[0])} is not clear", f"write it with four digits, as in {_ISO}")
    number = int(year) if year else None
    one, two = int(match["one"]), int(match["two"])
    both = {WrittenDate(number, two, one), WrittenDate(number, one, two)}
    possible = sorted((date for date in both if exists(date)), key=lambda date: date.month)
    if len(possible) == 2:
        of_year = "" if number is None else f" {number}"
        first, second = (f"{date.day} {MONTHS[date.month - 1]}" for date in possible)
        raise WhenError(
            f"{quoted(match[0])} is {first} to some and {second} to others",
            f'write "{first.lower()}{of_year}" or "{second.lower()}{of_year}", or as in {_ISO}',
        )
    return _sure(possible[0] if possible else WrittenDate(number, two, one), match[0])
