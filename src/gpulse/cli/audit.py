"""gpulse audit: who changed what, when and from where."""

import datetime
import re
import time
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from gpulse.cli import figures, options, terminal
from gpulse.cli.accounts import with_directory
from gpulse.cli.tables import Cell, Column, Span, Table
from gpulse.cli.up import ConfigPath, Data, read_config
from gpulse.errors import GpulseError

if TYPE_CHECKING:
    from gpulse.auth.audit import AuditEntry
    from gpulse.auth.directory import Directory

_DATE = re.compile(r"\d{4}-\d")
_NEWEST = 100
_AT_ONCE = 1000
_COLUMNS = (
    Column("WHEN"),
    Column("WHO"),
    Column("FROM", spare=2),
    Column("WAY", spare=3),
    Column("ACTION"),
    Column("TARGET"),
    Column("DETAIL", spare=1),
)


def audit(
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="TIME", help="All since 2h or 7d ago, or since 2026-11-30 (default: the last 100)."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each instead of a table.")] = False,
    config: ConfigPath = None,
    data: Data = None,
    width: options.Width = None,
) -> None:
    """Show who changed what, the oldest first."""
    settings, _ = read_config(config)
    moment = None if since is None else _moment(since)

    async def work(directory: "Directory") -> "list[AuditEntry]":
        if moment is None:
            return await directory.audit.entries(limit=_NEWEST)
        found: list[AuditEntry] = []
        while some := await directory.audit.entries(found[-1].id if found else None, _AT_ONCE, moment):
            found += some
        return found

    entries = with_directory(settings, data, work)[::-1]
    if as_json:
        for entry in entries:
            terminal.tell_json(msgspec.json.encode(entry))
    else:
        terminal.show(table(entries), width)


def table(entries: "list[AuditEntry]") -> Table:
    return Table(_COLUMNS, [_row(entry) for entry in entries], (), "nothing has been changed")


def _row(entry: "AuditEntry") -> list[Cell]:
    detail = ", ".join(
        f"{name}={', '.join(value) if isinstance(value, list) else value}" for name, value in entry.detail.items()
    )
    return [
        figures.clock(entry.at),
        Span(entry.who, "bold"),
        entry.address,
        entry.way,
        entry.action,
        entry.target,
        detail,
    ]


def _moment(text: str) -> float:
    """A length of time before now, or a date or time of the local clock."""
    try:
        if _DATE.match(text):
            return datetime.datetime.fromisoformat(text).timestamp()
        return time.time() - figures.duration(text)
    except (ValueError, OverflowError, OSError, GpulseError):
        raise GpulseError(f"--since {text!r:.40} is no time; write 2h, 7d, 2026-11-30 or 2026-11-30T12:00") from None
