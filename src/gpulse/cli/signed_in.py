"""gpulse user keys and sign-out: what an account is signed in with, and the end of it."""

from typing import TYPE_CHECKING, Annotated

import typer

from gpulse.cli import figures, options, terminal
from gpulse.cli.accounts import by_local_person, named, with_directory
from gpulse.cli.tables import UNKNOWN, Cell, Column, Span, Table
from gpulse.cli.up import ConfigPath, Data, read_config

if TYPE_CHECKING:
    from gpulse.auth.directory import Directory
    from gpulse.auth.views import KeyView

_STYLES = {"live": "green", "expired": "dim", "revoked": "red"}
_COLUMNS = (
    Column("ID"),
    Column("STATE"),
    Column("MAY", spare=2),
    Column("CREATED", spare=3),
    Column("EXPIRES", spare=1),
    Column("LAST USED"),
    Column("LABEL"),
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The person's login name on the nodes.", show_default=False)]


def keys(
    name: Name,
    config: ConfigPath = None,
    data: Data = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON instead of a table.")] = False,
    width: options.Width = None,
) -> None:
    """List the keys of an account; never their secrets."""
    settings, _ = read_config(config)

    async def work(directory: "Directory") -> "list[KeyView]":
        return list(directory.keys.list(named(directory, name).id))

    found = with_directory(settings, data, work)
    if as_json:
        terminal.tell_record(found)
    else:
        terminal.show(table(found, name), width)


def sign_out(
    name: Name,
    with_keys: Annotated[bool, typer.Option("--keys", help="Revoke its keys and calendars too.")] = False,
    config: ConfigPath = None,
    data: Data = None,
) -> None:
    """Sign an account out of all browsers; a running hub does so within a second."""
    settings, _ = read_config(config)

    async def work(directory: "Directory") -> tuple[str, int, int]:
        account, by = named(directory, name), by_local_person()
        sessions = await directory.sessions.end_all(account.id, by=by)
        return account.name, sessions, await directory.keys.revoke_all(account.id, by=by) if with_keys else 0

    who, sessions, revoked = with_directory(settings, data, work)
    told = [figures.amount(sessions, "session", "sessions")]
    told += [figures.amount(revoked, "key", "keys")] if with_keys else []
    terminal.tell(f"{who}: ended {' and '.join(told)}")


def table(found: "list[KeyView]", name: str) -> Table:
    live = sum(one.state == "live" for one in found)
    sums = [f"{figures.amount(len(found), 'key', 'keys')}: {live} live"]
    return Table(_COLUMNS, [_row(one) for one in found], sums if found else (), f"{name} has no keys")


def _row(one: "KeyView") -> list[Cell]:
    return [
        one.id,
        Span(one.state, _STYLES[one.state]),
        ", ".join(one.scopes),
        figures.clock(one.created_at),
        "never" if one.expires_at is None else figures.clock(one.expires_at),
        UNKNOWN if one.used_at is None else figures.clock(one.used_at),
        Span(one.label, "bold"),
    ]
