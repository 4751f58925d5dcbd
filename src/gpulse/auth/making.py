"""Tokens made: what happens in the database, in one transaction each, with its entries in the audit log."""

from collections.abc import Collection

from sqlalchemy import Connection

from gpulse.auth import token_text
from gpulse.auth.noting import Actor, Entry, note, note_all
from gpulse.errors import TokenError
from gpulse.store import tokens as table
from gpulse.store.tokens import JOIN, NODE, REPLACED, TokenRow

_MOST_NAMED = 3


def new_token(
    kind: str,
    nodes: str,
    now: float,
    revision: int,
    *,
    expires_at: float | None = None,
    replaces: bool = False,
    joined_by: str | None = None,
) -> tuple[str, TokenRow]:
    """The text, which is told once, and the row, which has no secret."""
    text, parts = token_text.make(kind)
    row = TokenRow(
        id=parts.id,
        kind=kind,
        nodes=nodes,
        digest=parts.digest,
        replaces=replaces,
        created_at=now,
        expires_at=expires_at,
        used_at=None,
        ended_at=None,
        ended=None,
        joined_by=joined_by,
        revision=revision,
    )
    return text, row


def create_nodes(
    connection: Connection, names: Collection[str], expires_at: float | None, replace: bool, now: float, by: Actor
) -> tuple[dict[str, str], list[TokenRow]]:
    """A token for each, or for none of them; with the rows that changed."""
    revision = table.next_revision(connection)
    standing = table.standing(connection, names)
    live = [name for name, row in standing.items() if row.live(now)]
    if live and not replace:
        raise TokenError(f"{named(live)} already; --replace makes a new one, and the old one no longer works")
    texts, rows = {}, table.end(connection, standing.values(), REPLACED, now, revision)
    made = []
    for name in names:
        texts[name], row = new_token(NODE, name, now, revision, expires_at=expires_at)
        made.append(row)
    table.add(connection, made)
    note_all(
        connection,
        now,
        [Entry(by, "token.make", row.nodes, {"id": row.id, "replaced": row.nodes in standing}) for row in made],
    )
    return texts, rows + made


def create_join(
    connection: Connection, typed: str, names: Collection[str], expires_at: float, replace: bool, now: float, by: Actor
) -> tuple[str, list[TokenRow]]:
    revision = table.next_revision(connection)
    text, row = new_token(JOIN, typed, now, revision, expires_at=expires_at, replaces=replace)
    table.add(connection, [row], names)
    note(connection, now, by, "token.make_join", typed, id=row.id, nodes=len(names), expires_at=expires_at)
    return text, [row]


def named(nodes: Collection[str]) -> str:
    """A few of them: "gpu01, gpu02 and 14 more have a token"."""
    some = sorted(nodes)[:_MOST_NAMED]
    rest = len(nodes) - len(some)
    if rest:
        return f"{', '.join(some)} and {rest} more have a token"
    return f"{', '.join(some)} {'has' if len(some) == 1 else 'have'} a token"
