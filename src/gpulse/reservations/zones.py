"""Time zones by their names, and that of this machine."""

import os
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gpulse.errors import WhenError

_LOCALTIME, _TIMEZONE = Path("/etc/localtime"), Path("/etc/timezone")
_FOLDER = "zoneinfo/"
_LONGEST = 100


def zone_of(name: str) -> ZoneInfo:
    """WhenError where there is none of this name."""
    try:
        return ZoneInfo(name[:_LONGEST])
    except (ValueError, OSError, ZoneInfoNotFoundError):
        raise WhenError(f"{name!r:.{_LONGEST}} is no time zone", 'write it like "Europe/Berlin" or "UTC"') from None


def own_zone(localtime: Path = _LOCALTIME, timezone: Path = _TIMEZONE) -> ZoneInfo:
    """This machine's, by TZ, by what /etc/localtime leads to or by /etc/timezone; UTC where none has a name."""
    told = os.environ.get("TZ", "").removeprefix(":")
    named = told.partition(_FOLDER)[2] or told if told else str(localtime.resolve()).partition(_FOLDER)[2]
    for name in (named, "" if told else _written(timezone)):
        try:
            return zone_of(name)
        except WhenError:
            # A rule such as CET-1CEST, or a file without a name, as containers have it.
            continue
    return ZoneInfo("UTC")


def _written(timezone: Path) -> str:
    try:
        return timezone.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        # Most machines have none.
        return ""
