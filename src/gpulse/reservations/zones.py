"""Time zones by their names, and that of this machine."""

import os
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gpulse.errors import WhenError

_LOCALTIME = Path("/etc/localtime")
_FOLDER = "zoneinfo/"
_LONGEST = 100


def zone_of(name: str) -> ZoneInfo:
    """WhenError where there is none of this name."""
    try:
        return ZoneInfo(name[:_LONGEST])
    except (ValueError, OSError, ZoneInfoNotFoundError):
        raise WhenError(f"{name!r:.{_LONGEST}} is no time zone", 'write it like "Europe/Berlin" or "UTC"') from None


def own_zone(localtime: Path = _LOCALTIME) -> ZoneInfo:
    """This machine's, by TZ or by what /etc/localtime leads to; UTC where neither has a name."""
    told = os.environ.get("TZ", "").removeprefix(":")
    named = told.partition(_FOLDER)[2] or told if told else str(localtime.resolve()).partition(_FOLDER)[2]
    try:
        return zone_of(named)
    except WhenError:
        # A rule such as CET-1CEST, or a file without a name.
        return ZoneInfo("UTC")
