"""comments.json of other monitors: who has which GPU until when; read slot by slot, and written."""

from collections.abc import Iterable
from datetime import datetime, tzinfo
from math import ceil
from typing import Any, NamedTuple

import msgspec

from gpulse.reservations.comments_text import Slot, Twice, decode, slots
from gpulse.reservations.model import Reservation, in_order, storable
from gpulse.reservations.wall_clock import readings

__all__ = ["LONGEST_NAME", "Entry", "decode", "read", "unwritten", "write"]

LONGEST_NAME = 200
LONGEST_COMMENT = 2000


class Entry(NamedTuple):
    """A slot of the file."""

    line: int
    node: str
    # As it was written; "" where it is not said which GPU of the node.
    index: str  # type: ignore[assignment]  # as of a place
    person: str = ""
    # The date as it was written.
    until: str = ""
    comment: str = ""
    # Why it cannot be read; "": it can.
    trouble: str = ""
    # Nobody has this GPU.
    empty: bool = False


def read(text: str) -> list[Entry]:
    """All slots, in the order of the file; RequestError where it is no such file."""
    found = slots(text)
    last = {(slot.node, slot.index): slot for slot in found}
    return [_read(slot, last[slot.node, slot.index]) for slot in found]


def _read(slot: Slot, last: Slot) -> Entry:
    """Of a GPU that stands there twice the last counts, as for whoever else reads such files."""
    entry = _entry(Entry(slot.line, storable(slot.node), storable(slot.index)), slot.value)
    if slot is last or entry.empty:
        return entry
    return entry._replace(trouble=f"the same GPU stands there again, in line {last.line}, and that counts")


def _entry(bare: Entry, value: Any) -> Entry:
    if isinstance(value, Twice):
        return bare._replace(trouble=f'it has "{storable(value.key)[:40]}" twice')
    if value in (None, "", [], {}):
        return bare._replace(empty=True)
    if not isinstance(value, dict):
        return bare._replace(trouble='it is no reservation: {"name": …, "date": …, "comment": …}')
    person, until, comment = (_text(value.get(key)) for key in ("name", "date", "comment"))
    entry = bare._replace(person=" ".join(person.split()), until=" ".join(until.split()), comment=comment)
    if not (entry.person or entry.until or entry.comment):
        if set(value) - {"name", "date", "comment"}:
            return entry._replace(trouble="it has neither a name nor a date")
        return entry._replace(empty=True)
    if not entry.until:
        return entry._replace(trouble="it has no date")
    if not entry.person:
        return entry._replace(trouble="it has no name")
    if len(entry.person) > LONGEST_NAME:
        return entry._replace(trouble=f"its name is longer than {LONGEST_NAME} characters")
    if len(entry.comment) > LONGEST_COMMENT:
        return entry._replace(trouble=f"its comment is longer than {LONGEST_COMMENT} characters")
    return entry


def _text(value: Any) -> str:
    return "" if value is None else storable(value if isinstance(value, str) else str(value)).strip()


def write(reservations: Iterable[Reservation], now: float, zone: tzinfo) -> str:
    """Those that hold GPUs now; the format has no start, and one slot for each GPU."""
    hosts: dict[str, dict[str, dict[str, str]]] = {}
    found = {place: one for one in reservations if one.state(now) == "now" for place in one.places}
    for place in in_order(found):
        one = found[place]
        slot = {"name": one.person, "date": _date(one.last, zone), "comment": one.comment}
        hosts.setdefault(place.node, {})[place.index] = slot
    return msgspec.json.format(msgspec.json.encode(hosts), indent=2).decode() + "\n"


def unwritten(reservations: Iterable[Reservation], now: float) -> list[Reservation]:
    """Those that are still to come, for which the format has no place."""
    return [one for one in reservations if one.state(now) == "coming"]


def _date(moment: float, zone: tzinfo) -> str:
    """To the minute, and not before its end."""
    at = datetime.fromtimestamp(ceil(moment / 60) * 60, zone)
    text = f"{at:%Y-%m-%d %H:%M}"
    # Of an hour that comes twice it is said which is meant.
    return text if len(readings(at.replace(tzinfo=None, fold=0), zone)) == 1 else f"{text} {at:%z}"
