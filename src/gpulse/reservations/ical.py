"""Reservations as a calendar (iCalendar, RFC 5545), for feeds that other programs follow."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from math import ceil

from icalendar import Calendar, Event, vText

import gpulse
from gpulse.reservations.model import Reservation, storable
from gpulse.reservations.places_text import places_text

# How often programs that ask us are to look again.
_REFRESH = timedelta(minutes=15)
_BREAKS = re.compile(r"\r\n?")
# The format has no way to write them; all but the tab and the line break.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def feed_text(reservations: Iterable[Reservation], title: str, now: float) -> str:
    """A calendar with an event for each."""
    calendar = Calendar()
    calendar.add("prodid", f"-//gpulse//gpulse {gpulse.__version__}//EN")
    calendar.add("version", "2.0")
    calendar.add("calscale", "GREGORIAN")
    calendar.add("method", "PUBLISH")
    # The one is the standard's, the other what most programs read; icalendar knows of neither that it is text.
    for name in ("name", "x-wr-calname"):
        calendar.add(name, vText(_plain(title)))
    calendar.add("refresh-interval", _REFRESH, parameters={"value": "DURATION"})
    for one in reservations:
        calendar.add_component(_event(one, now))
    return bytes(calendar.to_ical()).decode()


def _event(one: Reservation, now: float) -> Event:
    cancelled = not one.holds
    start = _moment(one.start)
    end = _moment(ceil(one.end if cancelled else one.last))
    event = Event()
    event.add("uid", f"{one.id}@gpulse")
    event.add("dtstamp", _moment(now))
    event.add("last-modified", _moment(one.changed_at or one.made_at))
    event.add("created", _moment(one.made_at))
    event.add("sequence", one.revision)
    event.add("dtstart", start)
    event.add("dtend", max(end, start + timedelta(seconds=1)))
    event.add("summary", _plain(f"{places_text(one.places)} {one.person}"))
    if one.comment:
        event.add("description", _plain(one.comment))
    event.add("status", "CANCELLED" if cancelled else "CONFIRMED")
    # A GPU that is busy does not make its person so.
    event.add("transp", "TRANSPARENT")
    return event


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(int(seconds), UTC)


def _plain(text: str) -> str:
    """Without what the format cannot hold; line breaks, commas and the like are escaped by icalendar."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", _BREAKS.sub("\n", storable(text)))
