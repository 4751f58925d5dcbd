"""gpulse user: who may sign in at the hub, and as what."""

import getpass
import shlex
import socket
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from gpulse.cli import figures, options, signed_in, terminal
from gpulse.cli.accounts import by_local_person, named, with_directory
from gpulse.cli.options import HubCommand
from gpulse.cli.signed_in import Name
from gpulse.cli.tables import UNKNOWN, Cell, Column, Span, Table
from gpulse.cli.up import ConfigPath, Data, read_config
from gpulse.config import Config
from gpulse.errors import AccountError

if TYPE_CHECKING:
    from gpulse.auth.directory import Directory
    from gpulse.auth.views import AccountView

_LONGEST_LINK_SECONDS = 7 * 86400
# Beyond the longest password, so that one that is too long is refused rather than cut.
_MOST_READ = 8192
_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - compared with, not listened on
_COLUMNS = (
    Column("NAME"),
    Column("ROLE"),
    Column("STATE"),
    Column("SIGNS IN BY", spare=3),
    Column("SESSIONS", right=True, spare=2),
    Column("KEYS", right=True, spare=2),
    Column("LAST SIGN-IN", spare=1),
    Column("CREATED", spare=4),
    Column("DISPLAY", spare=5),
)

Names = Annotated[list[str], typer.Argument(metavar="NAMES", help="Names of accounts.", show_default=False)]
PasswordStdin = Annotated[
    bool, typer.Option("--password-stdin", help="Read the password from standard input instead of asking for it.")
]

app = typer.Typer(help="Accounts: who may sign in, and as what.", no_args_is_help=True, rich_markup_mode=None)


@app.command(cls=HubCommand)
def add(
    name: Name,
    role: Annotated[str, typer.Option("--role", metavar="ROLE", help="viewer, member or admin.")] = "viewer",
    display: Annotated[str, typer.Option("--display", metavar="TEXT", help="The name in full.")] = "",
    password_stdin: PasswordStdin = False,
    no_password: Annotated[
        bool, typer.Option("--no-password", help="Without a password: gpulse user link lets the person in.")
    ] = False,
    config: ConfigPath = None,
    data: Data = None,
) -> None:
    """Add an account. Its password is asked for twice, and not shown."""
    from gpulse.auth.roles import role_of

    settings, _ = read_config(config)
    wanted = role_of(role)
    if no_password and password_stdin:
        raise AccountError(400, "bad_option", "--no-password and --password-stdin exclude each other", "give one")

    async def work(directory: "Directory") -> str:
        if directory.accounts.by_name(name) is not None:
            # Before a password is asked for in vain.
            raise AccountError(409, "name_taken", f"{name!r:.100} is an account already", "gpulse user list shows all")
        password = None if no_password else _password(name, password_stdin)
        return (await directory.accounts.add(name, wanted, password, display, by=by_local_person())).name

    added = with_directory(settings, data, work)
    terminal.tell(f"added {added} as {wanted}")
    if no_password:
        terminal.warn(f"to let {added} in: gpulse user link {shlex.quote(added)}")


@app.command("list", cls=HubCommand)
def list_accounts(
    config: ConfigPath = None,
    data: Data = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON instead of a table.")] = False,
    width: options.Width = None,
) -> None:
    """List all accounts."""
    settings, _ = read_config(config)

    async def work(directory: "Directory") -> "list[AccountView]":
        return list(directory.accounts.list())

    found = with_directory(settings, data, work)
    if as_json:
        terminal.tell_record(found)
    else:
        terminal.show(table(found), width)


@app.command("role", cls=HubCommand)
def set_role(
    name: Name,
    role: Annotated[str, typer.Argument(metavar="ROLE", help="viewer, member or admin.", show_default=False)],
    config: ConfigPath = None,
    data: Data = None,
) -> None:
    """Give an account another role; a running hub goes by it within a second."""
    from gpulse.auth.roles import role_of

    settings, _ = read_config(config)
    wanted = role_of(role)

    async def work(directory: "Directory") -> str:
        return (await directory.accounts.set_role(named(directory, name).id, wanted, by=by_local_person())).name

    terminal.tell(f"{with_directory(settings, data, work)} is {wanted}")


@app.command(cls=HubCommand)
def disable(names: Names, config: ConfigPath = None, data: Data = None) -> None:
    """Shut accounts out: their sessions, keys and links end at once, for good. What they have reserved is told."""
    from gpulse.cli import still_reserved

    settings, _ = read_config(config)

    async def work(directory: "Directory") -> list[str]:
        accounts = [named(directory, name) for name in names]
        await directory.accounts.disable_all([account.id for account in accounts], by=by_local_person())
        return [account.name for account in accounts]

    disabled = with_directory(settings, data, work)
    for name in disabled:
        terminal.tell(f"disabled {name}")
    for line in still_reserved.lines(settings, data, disabled):
        terminal.warn(line)


@app.command(cls=HubCommand)
def enable(names: Names, config: ConfigPath = None, data: Data = None) -> None:
    """Let disabled accounts sign in again."""
    settings, _ = read_config(config)

    async def work(directory: "Directory") -> list[str]:
        accounts = [named(directory, name) for name in names]
        for account in accounts:
            await directory.accounts.enable(account.id, by=by_local_person())
        return [account.name for account in accounts]

    for name in with_directory(settings, data, work):
        terminal.tell(f"enabled {name}")


@app.command("password", cls=HubCommand)
def set_password(
    name: Name, password_stdin: PasswordStdin = False, config: ConfigPath = None, data: Data = None
) -> None:
    """Give an account another password; its sessions end."""
    from gpulse.auth.changing import refuse_external

    settings, _ = read_config(config)

    async def work(directory: "Directory") -> str:
        account = named(directory, name)
        # Before one is asked for in vain.
        refuse_external(account)
        password = _password(account.name, password_stdin)
        return (await directory.accounts.set_password(account.id, password, by=by_local_person())).name

    terminal.tell(f"{with_directory(settings, data, work)} has a new password")


@app.command(cls=HubCommand)
def link(
    name: Name,
    expires: Annotated[str, typer.Option("--expires", metavar="TIME", help="It ends after 15m, 2h, 1d.")] = "1h",
    hub: Annotated[
        str | None, typer.Option("--hub", metavar="URL", help="The hub's address as that person reaches it.")
    ] = None,
    config: ConfigPath = None,
    data: Data = None,
) -> None:
    """Print a link that signs somebody in once."""
    settings, _ = read_config(config)
    seconds = figures.duration(expires)
    if not 1 <= seconds <= _LONGEST_LINK_SECONDS:
        raise AccountError(400, "bad_option", f"--expires {expires:.40}: allowed is a second to seven days", "")
    address = (hub or _address(settings, data)).rstrip("/")

    async def work(directory: "Directory") -> str:
        return await directory.links.make(named(directory, name).id, seconds, by=by_local_person())

    # After the #, so that it is in no request and no log.
    terminal.tell(f"{address}/#/sign-in/{with_directory(settings, data, work)}")


app.command("keys", cls=HubCommand)(signed_in.keys)
app.command("sign-out", cls=HubCommand)(signed_in.sign_out)


def table(found: "list[AccountView]") -> Table:
    roles: Counter[str] = Counter("disabled" if one.disabled else one.role for one in found)
    told = ", ".join(f"{roles[one]} {one}" for one in ("admin", "member", "viewer", "disabled") if roles[one])
    sums = [f"{figures.amount(len(found), 'account', 'accounts')}: {told}"]
    empty = "there are no accounts yet; add one with: gpulse user add NAME"
    return Table(_COLUMNS, [_row(one) for one in found], sums if found else (), empty)


def _row(one: "AccountView") -> list[Cell]:
    return [
        Span(one.name, "bold"),
        one.role,
        Span("disabled", "red") if one.disabled else Span("live", "green"),
        one.issuer or ("password" if one.has_password else "link"),
        str(one.sessions),
        str(one.keys),
        UNKNOWN if one.signed_in_at is None else figures.clock(one.signed_in_at),
        figures.clock(one.created_at),
        one.display,
    ]


def _password(name: str, from_stdin: bool) -> str:
    if from_stdin:
        told = sys.stdin.buffer.read(_MOST_READ)
        try:
            return told.decode("utf-8").removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError:
            raise AccountError(
                400, "bad_password", "the password is no UTF-8", "write it in another encoding"
            ) from None
    if not sys.stdin.isatty():
        raise AccountError(
            400, "no_terminal", "there is no terminal to ask for the password", "send it with --password-stdin"
        )
    first = getpass.getpass(f"Password for {name}: ")
    if getpass.getpass("Once more: ") != first:
        raise AccountError(400, "bad_password", "the two are not the same", "nothing was changed; try again")
    return first


def _address(settings: Config, data: Path | None) -> str:
    """Of the hub that runs on the data folder; where none does, by the settings."""
    from gpulse.auth import local_socket

    running = local_socket.address(data or settings.hub.data)
    if running is None and settings.hub.port == 0:
        raise AccountError(
            400, "bad_option", "hub.port is 0, any free port", "start the hub first, or name it by --hub"
        )
    if running is None:
        scheme, host, port = "https" if settings.tls.on else "http", settings.hub.host, settings.hub.port
    else:
        parts = urlsplit(running)
        scheme, host, port = parts.scheme, parts.hostname or "", parts.port or 0
    host = socket.gethostname() if host in _EVERYWHERE else host
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}:{port}{settings.web.base_path}"
