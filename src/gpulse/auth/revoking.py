"""Tokens revoked, by what people call them: an id, a node, a set of nodes or of a join token."""

import re

from sqlalchemy import Connection

from gpulse.auth.node_names import names_of
from gpulse.auth.noting import Actor, Entry, note_all
from gpulse.errors import TokenError
from gpulse.store import tokens as table
from gpulse.store.tokens import JOIN, REVOKED, TokenRow

_ID = re.compile(r"[0-9a-f]{12}")
_LIST = "gpulse token list shows those there are"


def revoke(connection: Connection, words: list[str], joined: bool, now: float, by: Actor) -> list[TokenRow]:
    """All that the words mean, or nothing where one means nothing. `joined`: with what was traded for join tokens."""
    found: dict[str, TokenRow] = {}
    for word in words:
        meant = _meant(connection, word, now)
        if joined:
            joins = [row for row in meant if row.kind == JOIN]
            meant += [row for join in joins for row in table.joined_with(connection, join.id)]
        live = [row for row in meant if row.live(now)]
        if not live:
            raise TokenError(_nothing(word, meant, now))
        found |= {row.id: row for row in live}
    rows = found.values()
    note_all(connection, now, [Entry(by, "token.revoke", row.nodes, {"id": row.id, "kind": row.kind}) for row in rows])
    return table.end(connection, rows, REVOKED, now, table.next_revision(connection))


def _meant(connection: Connection, word: str, now: float) -> list[TokenRow]:
    row = table.by_id(connection, word) if _ID.fullmatch(word) else None
    if row is not None:
        return [row]
    names = names_of(word)
    joins = [row for row in table.joins_for(connection, word) if row.live(now)]
    if joins and names != [word]:
        # Who ends the joining of many nodes does not mean to cut off those that have joined.
        return joins
    return joins + list(table.standing(connection, names).values())


def _nothing(word: str, meant: list[TokenRow], now: float) -> str:
    if not meant:
        return f"{word} has no token; {_LIST}"
    return f"{word} is {'at its end' if meant[0].expired(now) else meant[0].ended} already; {_LIST}"
