"""gpulse import: takes over the reservations of another monitor's comments.json."""

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from gpulse.cli import figures, options, terminal
from gpulse.cli.client import Hub
from gpulse.cli.tables import UNKNOWN, Cell, Column, Span, Table
from gpulse.errors import GpulseError

NOT_ALL = 1
_MOST_BYTES = 1 << 20
_COLUMNS = (
    Column("LINE", right=True),
    Column("GPU"),
    Column("PERSON"),
    Column("DATE", spare=2),
    Column("OUTCOME"),
    Column("", spare=1),
)
# How an outcome is said, after importing and before, and its colour.
_WORDS = {
    "reserved": ("reserved", "would be reserved", "green"),
    "already": ("already there", "already there", ""),
    "over": ("over, left out", "over, left out", "dim"),
    "conflict": ("conflict", "conflict", "red"),
    "no_such_gpu": ("no such GPU", "no such GPU", "red"),
    "not_understood": ("not understood", "not understood", "red"),
    "refused": ("refused", "refused", "red"),
    "empty": ("empty", "empty", "dim"),
}
_LEFT = ("conflict", "no_such_gpu", "not_understood", "refused")


class Entry(msgspec.Struct, kw_only=True):
    """What became of an entry of the file, as far as a line tells it."""

    line: int
    node: str
    index: str
    person: str
    until: str
    outcome: str
    message: str


class Imported(msgspec.Struct, kw_only=True):
    """What became of all."""

    dry_run: bool
    entries: list[Entry]
    counts: dict[str, int]


def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The comments.json; - is standard input.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would become of each entry.")] = False,
    zone: Annotated[
        str | None, typer.Option("--zone", metavar="NAME", help="The zone of its dates (default: this machine's).")
    ] = None,
    hub: options.HubUrl = options.HUB,
    fingerprint: options.Fingerprint = None,
    data: options.HubData = None,
    as_json: options.AsJson = False,
    width: options.Width = None,
) -> None:
    """Take over the reservations of a comments.json. Ends with 1 where entries are left that could not be."""
    from gpulse.reservations.comments import decode
    from gpulse.reservations.zones import own_zone

    text = decode(_read(file))
    asked = Hub(hub, fingerprint, data)
    content = {"text": text, "zone": zone or own_zone().key, "dry_run": dry_run}
    body = asked.send("POST", "/reservations/import", content)
    told = asked.decode(body, Imported)
    if as_json:
        terminal.tell_json(body)
    else:
        terminal.show(table(told), width)
    raise typer.Exit(NOT_ALL if any(told.counts.get(outcome) for outcome in _LEFT) else 0)


def _read(file: str) -> bytes:
    try:
        data = sys.stdin.buffer.read(_MOST_BYTES + 1) if file == "-" else _beginning(Path(file))
    except OSError as error:
        raise GpulseError(f"{file} cannot be read: {error.strerror}; name a comments.json") from None
    if len(data) > _MOST_BYTES:
        raise GpulseError(f"{file} is larger than {_MOST_BYTES:,} bytes; import it in parts")
    return data


def _beginning(path: Path) -> bytes:
    with path.open("rb") as opened:
        return opened.read(_MOST_BYTES + 1)


def table(told: Imported) -> Table:
    said = ", ".join(
        f"{told.counts[outcome]} {words[told.dry_run]}" for outcome, words in _WORDS.items() if told.counts.get(outcome)
    )
    sums = [f"{figures.amount(len(told.entries), 'entry', 'entries')}: {said}"] if told.entries else []
    if told.dry_run:
        sums.append("nothing was changed (--dry-run)")
    return Table(_COLUMNS, [_row(entry, told.dry_run) for entry in told.entries], sums, "the file has no entries")


def _row(entry: Entry, dry_run: bool) -> list[Cell]:
    done, would, style = _WORDS.get(entry.outcome, (entry.outcome, entry.outcome, ""))
    return [
        str(entry.line),
        Span(f"{entry.node}:{entry.index}" if entry.index else entry.node, "bold"),
        entry.person or UNKNOWN,
        entry.until or UNKNOWN,
        Span(would if dry_run else done, style),
        entry.message,
    ]
