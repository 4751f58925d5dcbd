"""Times of a day as people write them, and the zone that may follow: 18:00, 6pm, 18 Uhr, 18:00 Europe/Berlin."""

import re
from datetime import timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from gpulse.errors import WhenError
from gpulse.reservations.patterns import WORD_END, pattern
from gpulse.reservations.spans import quoted
from gpulse.reservations.zones import MARKS, zone_called

# An offset from UTC, what clocks are called there, or a zone by its name.
Zone = timedelta | str | ZoneInfo


class WrittenTime(NamedTuple):
    """A time since the beginning of the day, 24 hours being its end, and whose it is; None: that of who wrote it."""

    clock: timedelta
    zone: Zone | None = None


_HALF = r"(?P<half>[ap]m|[ap]\.m\.)"
_CLOCK = pattern(
    rf"(?P<h>\d{{1,2}}):(?P<m>\d{{2}})(?::(?P<s>\d{{2}})(?:[.,](?P<f>\d{{1,6}}))?)?(?![\d:])"
    rf"(?: ?{_HALF}{WORD_END}| ?(?P<told>uhr|h){WORD_END})?"
)
_HOUR = pattern(rf"(?P<h>\d{{1,2}}) ?{_HALF}{WORD_END}")
_UHR = pattern(rf"(?P<h>\d{{1,2}})(?:\.(?P<m>\d{{2}}))? ?uhr{WORD_END}")
# After a date and a "t" alone: 20261201t180000
_COMPACT = pattern(r"(?P<h>\d{2})(?P<m>\d{2})(?P<s>\d{2})?(?![\d:])")
_NOON = pattern(rf"(?:noon|midday){WORD_END}")
_DAY_END = pattern(rf"(?:(?:the )?end of (?:the )?day|eod|midnight){WORD_END}")
_OFFSET = pattern(
    r"(?P<blank> ?)(?:(?:utc|gmt)(?=[+-]))?(?P<sign>[+-])(?P<h>\d{1,2})(?::?(?P<m>\d{2})(?::(?P<s>\d{2}))?)?(?![\w:])"
)
_MARK = pattern(r" ?(?P<name>[a-z]{1,6})(?![\w/])")
_NAME = pattern(r" (?P<name>[a-z_]+(?:/[a-z0-9_+-]+)+)(?![\w/])")


def scan(text: str, at: int, joined: bool = False) -> tuple[WrittenTime, int] | None:
    """The time that stands at a place of tidy text, and where it ends; `joined`: a date and a "t" stand before it."""
    match = _CLOCK.match(text, at) or (_COMPACT if joined else _HOUR).match(text, at) or _UHR.match(text, at)
    if match:
        clock = _clock(match)
        zone, end = _zone(text, match.end(), sure=joined or match.groupdict().get("s") is not None)
        return WrittenTime(clock, zone), end
    if match := _NOON.match(text, at):
        return WrittenTime(timedelta(hours=12)), match.end()
    if match := _DAY_END.match(text, at):
        return WrittenTime(timedelta(days=1)), match.end()
    return None


def _clock(match: "re.Match[str]") -> timedelta:
    parts = match.groupdict()
    hour, minute, second = int(parts["h"]), int(parts.get("m") or 0), int(parts.get("s") or 0)
    half = (parts.get("half") or "")[:1]
    micro = int((parts.get("f") or "0").ljust(6, "0"))
    whole = hour == 24 and not (minute or second or micro or half)
    if minute > 59 or second > 59 or (hour > 23 and not whole) or (half and not 1 <= hour <= 12):
        raise WhenError(f"{quoted(match[0])} is no time of a day", 'write it like "18:00" or "6pm"')
    if parts.get("told") == "h" and len(parts["h"]) == 1:
        raise WhenError(
            f"{quoted(match[0])} is a time to some and a length of time to others",
            f'write "{hour:02d}:{minute:02d}" or "{hour}h {minute}m"',
        )
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    return timedelta(hours=hour, minutes=minute, seconds=second, microseconds=micro)


def _zone(text: str, at: int, sure: bool) -> tuple[Zone | None, int]:
    """What follows a time, and where it ends; `sure`: a minus after it cannot be meant as "until"."""
    match = _OFFSET.match(text, at)
    if match and (match["sign"] == "+" or sure or match["blank"] or match[0].startswith(("utc", "gmt"))):
        return _offset(match), match.end()
    match = _MARK.match(text, at)
    if match and match["name"] in MARKS:
        return match["name"], match.end()
    match = _NAME.match(text, at)
    zone = zone_called(match["name"]) if match else None
    return (None, at) if match is None or zone is None else (zone, match.end())


def _offset(match: "re.Match[str]") -> timedelta:
    hours, minutes, seconds = int(match["h"]), int(match["m"] or 0), int(match["s"] or 0)
    if hours > 14 or minutes > 59 or seconds > 59:
        raise WhenError(f"{quoted(match[0].strip())} is no offset from UTC", "they go from -12:00 to +14:00")
    offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    return -offset if match["sign"] == "-" else offset
