"""gpulse token: what nodes show the hub so that it takes their snapshots."""

import os
import re
import secrets
import shlex
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpulse.cli import figures, options, terminal
from gpulse.cli.accounts import by_local_person
from gpulse.cli.options import HubCommand
from gpulse.cli.tables import UNKNOWN, Cell, Column, Span, Table
from gpulse.cli.up import ConfigPath, Data, read_config
from gpulse.config import Config, database_url
from gpulse.errors import StoreError, TokenError

if TYPE_CHECKING:
    from gpulse.auth.listing import TokenView
    from gpulse.auth.tokens import Tokens

_JOIN_FOR = "1d"
_LONGEST_SECONDS = 10 * 366 * 86400
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_STYLES = {"live": "green", "expired": "dim", "revoked": "red", "replaced": "dim"}
_COLUMNS = (
    Column("ID"),
    Column("KIND"),
    Column("STATE"),
    Column("CREATED", spare=3),
    Column("EXPIRES", spare=1),
    Column("FIRST USED", spare=2),
    Column("JOINED", spare=4),
    Column("NODES"),
)

app = typer.Typer(help="Tokens, by which the hub knows its nodes.", no_args_is_help=True, rich_markup_mode=None)


@app.command(cls=HubCommand)
def create(
    nodes: Annotated[
        list[str] | None, typer.Argument(metavar="NODES", help="Nodes that get a token each: gpu07 'gpu[01-16]'.")
    ] = None,
    join: Annotated[
        str | None,
        typer.Option("--join", metavar="SET", help="One token, which each node of the set trades for its own."),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(
            "--expires",
            metavar="TIME",
            help="The token ends after 90s, 15m, 2h, 1d or 4w (default: 1d for --join, else never).",
        ),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Nodes that have a token get another, and theirs no longer works.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write each node's token into a file with its name.")
    ] = None,
    config: ConfigPath = None,
    data: Data = None,
) -> None:
    """Make tokens. They are shown once and kept nowhere."""
    if bool(nodes) == bool(join):
        raise TokenError("name nodes: gpulse token create gpu07; or a set of them with --join 'gpu[01-16]'")
    if join is not None and out is not None:
        raise TokenError("--out is for the tokens of nodes; a join token is printed")
    settings, _ = read_config(config)
    ends = expires or (_JOIN_FOR if join else None)
    expires_at = None if ends is None else _end(ends)
    if join is not None and expires_at is not None:
        _create_join(join, expires_at, replace, settings, data)
        return
    from gpulse.auth.node_names import names_of

    names = list(dict.fromkeys(name for text in nodes or [] for name in names_of(text)))
    if out is not None:
        _make_ready(out, names, replace)
    with _opened(settings, data) as tokens:
        made = tokens.create_nodes(names, expires_at=expires_at, replace=replace, by=by_local_person())
    if out is None:
        terminal.tell(*(f"{name} {text}" for name, text in made.items()))
    else:
        _write(out, made)


@app.command("list", cls=HubCommand)
def list_tokens(
    config: ConfigPath = None,
    data: Data = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON instead of a table.")] = False,
    width: options.Width = None,
) -> None:
    """List all tokens there are and were; never their secrets."""
    settings, _ = read_config(config)
    with _opened(settings, data) as tokens:
        found = tokens.listing()
    if as_json:
        terminal.tell_record(found)
    else:
        terminal.show(table(found), width)


@app.command(cls=HubCommand)
def revoke(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="TOKENS", help="Nodes, ids, or the set of a join token as it is listed.", show_default=False
        ),
    ],
    joined: Annotated[
        bool, typer.Option("--joined", help="With a join token also those that nodes have got for it.")
    ] = False,
    config: ConfigPath = None,
    data: Data = None,
) -> None:
    """Revoke tokens: a running hub ends their connections within a second."""
    settings, _ = read_config(config)
    with _opened(settings, data) as tokens:
        gone = tokens.revoke(words, joined, by=by_local_person())
        left = {one.id: one.joined for one in tokens.listing() if one.joined}
    for one in gone:
        terminal.tell(f"revoked {'join token ' if one.kind == 'join' else ''}{one.id}  {one.nodes}")
    for one in gone:
        if one.id in left:
            kept = figures.amount(
                left[one.id] or 0, "node that has joined keeps its token", "nodes that have joined keep their tokens"
            )
            terminal.warn(f"{kept}; gpulse token revoke --joined {one.id} revokes them too")


def table(found: "list[TokenView]") -> Table:
    states: Counter[str] = Counter(one.state for one in found)
    sums = [
        f"{figures.amount(len(found), 'token', 'tokens')}: "
        + ", ".join(f"{states[one]} {one}" for one in _STYLES if states[one])
    ]
    empty = "there are no tokens yet; make one with: gpulse token create NODE"
    return Table(_COLUMNS, [_row(one) for one in found], sums if found else (), empty)


def _row(one: "TokenView") -> list[Cell]:
    return [
        one.id,
        one.kind,
        Span(one.state, _STYLES[one.state]),
        figures.clock(one.created_at),
        "never" if one.expires_at is None else figures.clock(one.expires_at),
        UNKNOWN if one.used_at is None else figures.clock(one.used_at),
        f"by {one.joined_by}"
        if one.joined_by
        else ""
        if one.joined is None
        else figures.amount(one.joined, "node", "nodes"),
        Span(one.nodes, "bold"),
    ]


def _create_join(nodes: str, expires_at: float, replace: bool, settings: Config, data: Path | None) -> None:
    with _opened(settings, data) as tokens:
        text = tokens.create_join(nodes, expires_at, replace, by=by_local_person())
    terminal.tell(text)
    address = f"http://HUB:{settings.hub.port}{settings.web.base_path}"
    # Never the token itself: standard error goes into logs, and a line that has it into the history of a shell.
    terminal.tell(
        f"Until {figures.clock(expires_at)} each node of {nodes} gets a token of its own by:",
        f"  gpulse agent push --hub {shlex.quote(address)} --token-file FILE",
        "with the address of the hub as the nodes reach it, and a FILE with the token that only its owner can read.",
        err=True,
    )


@contextmanager
def _opened(settings: Config, data: Path | None) -> "Iterator[Tokens]":
    """The tokens of the data folder: who may write there may make some, whether a hub runs or not."""
    # Loaded here: other commands need no database.
    from gpulse.auth.tokens import Tokens
    from gpulse.store import Records

    with Records(data or settings.hub.data, database_url(settings.store)) as records:
        yield Tokens(records)


def _end(text: str) -> float:
    match = re.fullmatch(r"([0-9]{1,9})([smhdw])", text)
    if match is None:
        raise TokenError(f"--expires {text!r:.40} is not a length of time; write 90s, 15m, 2h, 1d or 4w")
    seconds = int(match[1]) * _SECONDS[match[2]]
    if not 1 <= seconds <= _LONGEST_SECONDS:
        raise TokenError(f"--expires {text}: allowed is a second to ten years")
    return time.time() + seconds


def _make_ready(folder: Path, names: list[str], replace: bool) -> None:
    """Before any token is made: nobody could be told it if it cannot be written."""
    there = [name for name in names if (folder / name).exists()]
    if there and not replace:
        raise TokenError(f"{folder / there[0]} is there already; remove it, or replace token and file with --replace")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_file(folder / f".{secrets.token_hex(6)}", "").unlink()
    except OSError as error:
        raise StoreError(f"{folder} cannot be written to: {error.strerror}; no token was made") from error


def _write(folder: Path, made: Mapping[str, str]) -> None:
    for name, text in made.items():
        try:
            _write_file(folder / f".{name}-{secrets.token_hex(6)}", f"{text}\n").replace(folder / name)
        except OSError as error:
            raise StoreError(
                f"{folder / name} cannot be written: {error.strerror}; its token is lost; repeat with --replace"
            ) from error
    terminal.tell(f"{figures.amount(len(made), 'token', 'tokens')} in {folder}", err=True)


def _write_file(path: Path, text: str) -> Path:
    """For its owner alone from the first moment."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text)
    return path
