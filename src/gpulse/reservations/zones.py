"""Time zones by their names, and that of this machine."""

import os
import re
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from gpulse.errors import WhenError

_LOCALTIME, _TIMEZONE = Path("/etc/localtime"), Path("/etc/timezone")
_FOLDER = "zoneinfo/"
_LONGEST = 100
# A rule that is UTC and nothing else: UTC0, GMT-0, <UTC>+00:00.
_UTC_RULE = re.compile(r"<?(?:UTC|GMT)>?[+-]?0{1,2}(?::00){0,2}")
_SET_IT = "set TZ to the name of yours, as in TZ=Europe/Berlin"
# What clocks have been called anywhere since 1970, by the database of zones; a word that is none of these is no zone.
_MARKS = """
    acdt acst addt adt aedt aest ahdt ahst akdt akst ast awdt awst bdt bst cast cat cdt cest cet chst cst eat
    edt eest eet est gdt gmt gst hdt hkst hkt hst idt ist jst kdt kst mdt mest met mmt msd msk mst nddt ndt
    nst nzdt nzst pdt pkst pkt pst sast sst utc wast wat west wet wib wit wita ydt yst z
"""
MARKS = frozenset(_MARKS.split())


def zone_of(name: str) -> ZoneInfo:
    """WhenError where there is none of this name."""
    try:
        return ZoneInfo(name[:_LONGEST])
    except (ValueError, OSError, ZoneInfoNotFoundError):
        raise WhenError(f"{name!r:.{_LONGEST}} is no time zone", 'write it like "Europe/Berlin" or "UTC"') from None


def zone_called(name: str) -> ZoneInfo | None:
    """As `zone_of`, of a name in small letters such as "europe/berlin"."""
    found = _by_small_letters().get(name)
    return None if found is None else zone_of(found)


@lru_cache(maxsize=1)
def _by_small_letters() -> dict[str, str]:
    return {name.lower(): name for name in available_timezones()}


def own_zone(localtime: Path = _LOCALTIME, timezone: Path = _TIMEZONE) -> ZoneInfo:
    """This machine's, by TZ, by what /etc/localtime leads to or by /etc/timezone; UTC where there is none of these.

    WhenError where there is one whose name cannot be known: its clock is not UTC's, and which it is would be a guess.
    """
    told = os.environ.get("TZ", "")
    if told:
        return _told(told)
    found = _named(_name_in(str(localtime.resolve())))
    if found is not None:
        return found
    # A copy without a name, as containers have it.
    written = _named(_written(timezone))
    if not localtime.exists():
        return written or ZoneInfo("UTC")
    for zone in (written, ZoneInfo("UTC")):
        if zone is not None and _goes_as(localtime, zone):
            return zone
    raise WhenError(f"{localtime} does not say the name of its time zone", _SET_IT)


def own_zone_or_utc(localtime: Path = _LOCALTIME, timezone: Path = _TIMEZONE) -> tuple[ZoneInfo, str]:
    """For a hub, which has to start: as `own_zone`, else UTC and why, in words."""
    try:
        return own_zone(localtime, timezone), ""
    except WhenError as error:
        return ZoneInfo("UTC"), f"{error}, or reservations.zone; until then times without a zone are taken as UTC"


def _told(told: str) -> ZoneInfo:
    """By the variable TZ: a name, the path of a zone's file, or a rule, of which UTC's alone says all."""
    bare = told.removeprefix(":")
    name = bare
    if bare.startswith("/"):
        name = _name_in(bare) or _name_in(str(Path(bare).resolve()))
    elif _UTC_RULE.fullmatch(bare):
        name = "UTC"
    found = _named(name)
    if found is None:
        seen = "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in told[:_LONGEST])
        raise WhenError(f"TZ={seen} is no name of a time zone", _SET_IT)
    return found


def _name_in(path: str) -> str:
    return path.partition(_FOLDER)[2]


def _named(name: str) -> ZoneInfo | None:
    try:
        return zone_of(name)
    except WhenError:
        # Who asks goes on, or says what is wrong in its own words.
        return None


def _goes_as(localtime: Path, zone: ZoneInfo) -> bool:
    """Whether a file has the same clock all this year; /etc/timezone may be left from somewhere else."""
    try:
        with localtime.open("rb") as stream:
            copy = ZoneInfo.from_file(stream)
    except (OSError, ValueError):
        return False
    year = datetime.now(UTC).year
    days = [datetime(year, month, day) for month in range(1, 13) for day in (1, 15)]
    return all(copy.utcoffset(day) == zone.utcoffset(day) for day in days)


def _written(timezone: Path) -> str:
    try:
        return timezone.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        # Most machines have none.
        return ""
