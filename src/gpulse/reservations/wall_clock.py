"""What clocks on the wall show: hours that do not exist or come twice, the first moment of a day, a moment in full."""

from datetime import UTC, date, datetime, timedelta, tzinfo

from gpulse.errors import WhenError
from gpulse.reservations.zones import MARKS

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_ONE_DAY = timedelta(days=1)


def readings(wall: datetime, zone: tzinfo) -> list[datetime]:
    """The moments at which a clock in the zone shows this: none where it is skipped, two where it comes twice."""
    found: list[datetime] = []
    for fold in (0, 1):
        moment = wall.replace(tzinfo=zone, fold=fold).astimezone(UTC)
        if moment.astimezone(zone).replace(tzinfo=None) == wall and moment not in found:
            found.append(moment)
    return [moment.astimezone(zone) for moment in found]


def first_moment(day: date, zone: tzinfo) -> datetime:
    """When a day begins; not at 00:00 where the clocks go forward then."""
    wall = datetime(day.year, day.month, day.day)
    if found := readings(wall, zone):
        return found[0]
    before, after = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (1, 0))
    while after - before > timedelta(seconds=1):
        middle = before + (after - before) // 2
        if middle.astimezone(zone).replace(tzinfo=None) < wall:
            before = middle
        else:
            after = middle
    first = after.replace(microsecond=0).astimezone(zone)
    if first.date() != day:
        raise WhenError(f"there was no {day_text(day)} in {zone_text(first)}: the calendar skipped it")
    return first


def at_clock(day: date, clock: timedelta, zone: tzinfo, abbreviation: str = "", here: tzinfo | None = None) -> datetime:
    """The moment of a time on a day; 24:00 is the first of the next day. WhenError where there is none, or two.

    What can be written instead is told in the zone `here`, where it is another.
    """
    if clock == _ONE_DAY:
        following = day + _ONE_DAY
        first = first_moment(following, zone)
        wall = datetime(following.year, following.month, following.day)
        found = [first] if not abbreviation else [first, *readings(wall, zone)]
    else:
        wall = datetime(day.year, day.month, day.day) + clock
        found = readings(wall, zone)
    if not found:
        raise _skipped(wall, zone, here or zone)
    if abbreviation:
        named = [moment for moment in found if (moment.tzname() or "").lower() == abbreviation]
        if not named:
            there = " or ".join(dict.fromkeys(zone_mark(moment) for moment in found))
            raise WhenError(
                f'"{abbreviation.upper()}" is not what {zone_text(found[0])} has on {day_text(day)}, which is {there}',
                f"leave it out, or write UTC or an offset: 2026-12-01 18:00 {_offset(found[0])}",
            )
        found = named[:1] if clock == _ONE_DAY else named
    if len(found) > 1:
        raise _twice(wall, found, here or zone)
    return found[0]


def _skipped(wall: datetime, zone: tzinfo, here: tzinfo) -> WhenError:
    late = wall.replace(tzinfo=zone, fold=0).astimezone(UTC).astimezone(zone)
    early = wall.replace(tzinfo=zone, fold=1).astimezone(UTC).astimezone(zone)
    return WhenError(
        f"{wall:%H:%M} does not exist on {day_text(wall.date())} in {zone_text(late)}: the clocks go forward",
        f'write "{full_text(early.astimezone(here))}" or "{full_text(late.astimezone(here))}"',
    )


def _twice(wall: datetime, found: list[datetime], here: tzinfo) -> WhenError:
    first, second = (full_text(moment.astimezone(here)) for moment in found)
    return WhenError(
        f"{wall:%H:%M} comes twice on {day_text(wall.date())} in {zone_text(found[0])}: the clocks go back",
        f'write "{first}" for the first or "{second}" for the second',
    )


def full_text(moment: datetime, ends_day: bool = False) -> str:
    """In full, so that it can be read back: Friday 20 November 2026, 18:00 CET.

    With `ends_day` midnight is 24:00 of the day before.
    """
    if ends_day and not (moment.hour or moment.minute or moment.second):
        day, clock = moment.date() - _ONE_DAY, "24:00"
    else:
        day, clock = moment.date(), f"{moment:%H:%M}"
        if moment.second or moment.microsecond:
            clock += f":{moment:%S}"
        if moment.microsecond:
            clock += f".{moment.microsecond:06d}".rstrip("0")
    return f"{WEEKDAYS[day.weekday()]} {day_text(day)}, {clock} {zone_mark(moment)}"


def day_text(day: date) -> str:
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def zone_text(moment: datetime) -> str:
    """The zone by its name: Europe/Berlin."""
    return str(getattr(moment.tzinfo, "key", None) or zone_mark(moment))


def zone_mark(moment: datetime) -> str:
    """What says at a time which zone is meant: CET, or +03:00 where a name would not say it."""
    name = moment.tzname() or ""
    zone = moment.tzinfo
    # Others ("+1030") would not be read back.
    if zone is None or name.lower() not in MARKS:
        return _offset(moment)
    same = [one for one in readings(moment.replace(tzinfo=None, fold=0), zone) if one.tzname() == name]
    return name if len(same) == 1 else _offset(moment)


def _offset(moment: datetime) -> str:
    seconds = int((moment.utcoffset() or timedelta()).total_seconds())
    sign, seconds = ("-", -seconds) if seconds < 0 else ("+", seconds)
    text = f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}"
    return f"{text}:{seconds % 60:02d}" if seconds % 60 else text
