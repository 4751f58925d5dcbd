"""Reservations as the hub tells of them, in words for a terminal; times are in this machine's zone."""

import math
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TypeVar

import msgspec
import typer

from gpulse.cli import figures, terminal
from gpulse.cli.client import Hub, quoted
from gpulse.cli.places import Gpu, text_of
from gpulse.errors import GpulseError, HubRefused

# Also of what cannot be had: it is no mistake, but there is no reservation.
NOT_RESERVED = 1
_PAST_SECONDS, _AHEAD_SECONDS = 31 * 86400, 3660 * 86400
_ID_LENGTH = 12
_LEAST_OF_ID = 4


class Reservation(msgspec.Struct):
    """What the commands need of it."""

    id: str
    person: str
    name: str
    maker: str
    gpus: list[Gpu]
    start: float
    end: float
    last: float
    comment: str
    state: str
    mine: bool
    hold: bool = False
    ending: str | None = None
    revision: int = 0
    notice: str | None = None


class Finding(msgspec.Struct):
    """Where what runs is not as reserved."""

    kind: str
    reservation: str
    message: str
    since: float
    # None: all GPUs of the reservation.
    node: str | None = None
    index: str | None = None
    other: str | None = None
    # When a no-show is released.
    release_at: float | None = None


class Page(msgspec.Struct):
    reservations: list[Reservation]
    findings: list[Finding]
    now: float
    next: str | None
    enabled: bool


class _Untold(msgspec.Struct):
    reservations: list[msgspec.Raw]
    next: str | None


_AnyPage = TypeVar("_AnyPage", Page, _Untold)


class _Instead(msgspec.Struct):
    gpus: list[Gpu]
    start: float
    end: float


def zone_name() -> str:
    """This machine's, which times are meant in that are written here."""
    from gpulse.reservations.zones import own_zone

    return own_zone().key


def moment(seconds: float) -> str:
    """In full: Friday 20 November 2026, 18:00 CET. It names its zone, UTC where this machine's has no name."""
    from gpulse.reservations.dates import shown
    from gpulse.reservations.zones import own_zone_or_utc

    # Whole seconds, cut as those of times that people write: "now, for 1h" must not look a second short.
    return shown(datetime.fromtimestamp(math.floor(seconds), own_zone_or_utc()[0]))


def short(seconds: float) -> str:
    """For tables: Fri 20 Nov 18:00, and the year where it is another."""
    from gpulse.reservations.zones import own_zone

    at, today = (datetime.fromtimestamp(moment, own_zone()) for moment in (seconds, time.time()))
    year = "" if at.year == today.year else f" {at.year}"
    return f"{at:%a} {at.day} {at:%b}{year} {at:%H:%M}"


def length(seconds: float) -> str:
    """2 d 4 h, 90 min."""
    minutes = round(seconds / 60)
    days, hours = minutes // 1440, minutes % 1440 // 60
    if days:
        return f"{days} d {hours} h" if hours else f"{days} d"
    if minutes >= 120:
        return f"{hours} h {minutes % 60} min" if minutes % 60 else f"{hours} h"
    return f"{minutes} min" if minutes else f"{seconds:.0f} s"


def until_of(one: Reservation) -> float:
    """Until when it has its GPUs; of one that never began, as it was meant."""
    return one.last if one.last > one.start else one.end


def in_full(one: Reservation) -> list[str]:
    """All there is to say of it, before or after it is saved."""
    until = until_of(one)
    told = [
        f"{figures.amount(len(one.gpus), 'GPU', 'GPUs')}: {text_of(one.gpus)}",
        f"from  {moment(one.start)}",
        f"until {moment(until)} ({length(until - one.start)})",
        f"for   {one.person}" + (f", called {one.name}" if one.name != one.person else ""),
    ]
    told += [f"“{one.comment}”"] if one.comment else []
    return [*told, *([f"note: {one.notice}"] if one.notice else [])]


def refused(hub: Hub, refusal: HubRefused, *, as_json: bool = False, until: bool = False) -> typer.Exit:
    """Says what is in the way and what could be had instead; other refusals are raised again.

    With `until` what could be had may be of another length than was asked for.
    """
    if refusal.code != "conflict":
        raise refusal
    if as_json:
        told = {name: getattr(refusal, name) for name in ("code", "message", "detail", "conflicts", "alternatives")}
        terminal.tell_json(msgspec.json.encode({"error": told}))
        return typer.Exit(NOT_RESERVED)
    terminal.warn(str(refusal))
    for raw in refusal.conflicts[:10]:
        one = hub.decode(raw, Reservation)
        begins = f" from {moment(one.start)}" if one.state == "coming" else ""
        words = f"  in the way: {text_of(one.gpus)} for {one.name}{begins} until {moment(one.last)}"
        terminal.tell(words + (f" “{one.comment}”" if one.comment else ""), err=True)
        if one.mine:
            longer = "" if one.hold else f"gpulse extend {one.id} TIME makes it longer, "
            own = "it is held for you" if one.hold else "it is your own"
            terminal.tell(f"    {own}: {longer}gpulse cancel {one.id} lets go of it", err=True)
    for raw in refusal.alternatives[:5]:
        other = hub.decode(raw, _Instead)
        end = f" until {moment(other.end)}" if until else ""
        terminal.tell(f"  instead: {text_of(other.gpus)} from {moment(other.start)}{end}", err=True)
    return typer.Exit(NOT_RESERVED)


def span(now: float, *, past: bool = True) -> dict[str, str]:
    """All there is to ask for; what is over only back to a month ago."""
    return {"from": f"{now - _PAST_SECONDS if past else now:.0f}", "to": f"{now + _AHEAD_SECONDS:.0f}"}


def every(hub: Hub, wanted: dict[str, str]) -> list[Reservation]:
    """However many pages there are."""
    return all_pages(hub, hub.get("/reservations", wanted), wanted).reservations


def all_pages(hub: Hub, body: bytes, wanted: dict[str, str]) -> Page:
    page, *others = _pages(hub, body, wanted, Page)
    page.reservations += [one for other in others for one in other.reservations]
    return page


def as_json(hub: Hub, body: bytes, wanted: dict[str, str], shown: Callable[[Reservation], bool]) -> bytes:
    """Those that are shown of however many pages there are, as the hub told of them."""
    told = (raw for page in _pages(hub, body, wanted, _Untold) for raw in page.reservations)
    some = [raw for raw in told if shown(hub.decode(raw, Reservation))]
    return msgspec.json.encode({**hub.decode(body, dict[str, msgspec.Raw]), "reservations": some, "next": None})


def _pages(hub: Hub, body: bytes, wanted: dict[str, str], kind: type[_AnyPage]) -> Iterator[_AnyPage]:
    """The one that was answered, and those after it."""
    page = hub.decode(body, kind)
    yield page
    while page.next is not None:
        page = hub.decode(hub.get("/reservations", wanted | {"before": page.next}), kind)
        yield page


def find(hub: Hub, identity: str) -> str:
    """The whole id of a reservation of which the first letters are given."""
    if len(identity) >= _ID_LENGTH:
        return quoted(identity)
    if len(identity) < _LEAST_OF_ID:
        raise GpulseError(
            f"{identity!r} is too short for an id; give its first {_LEAST_OF_ID} letters at least; gpulse reservations"
            " lists them"
        )
    found = [one for one in every(hub, span(time.time())) if one.id.startswith(identity)]
    # What can still be changed is what is meant.
    found = [one for one in found if one.state in ("now", "coming")] or found
    if len(found) != 1:
        why = f"{len(found)} begin with" if len(found) > 1 else "none has"
        raise GpulseError(f"{identity!r} names no reservation: {why} this id; gpulse reservations lists them")
    return found[0].id
