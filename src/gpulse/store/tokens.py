"""The table of tokens and what is asked of it. A token's secret is not in it, only its digest."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Select,
    String,
    Table,
    Text,
    bindparam,
    func,
    insert,
    select,
    text,
    update,
)

from gpulse.store.metadata import METADATA

NODE, JOIN = "node", "join"
REVOKED, REPLACED = "revoked", "replaced"
# Fewer than the parameters a statement may have.
_AT_ONCE = 500

_LIVE = text("kind = 'node' AND ended_at IS NULL")

tokens = Table(
    "tokens",
    METADATA,
    Column("id", String(12), primary_key=True),
    Column("kind", String(4), nullable=False),
    # Of a node's token its name; of a join token the set as it was typed.
    Column("nodes", Text, nullable=False, index=True),
    Column("digest", LargeBinary(32), nullable=False),
    # Of a join token: whether nodes that have a token get another.
    Column("replaces", Boolean, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double),
    Column("used_at", Double),
    Column("ended_at", Double),
    Column("ended", String(8)),
    Column("joined_by", ForeignKey("tokens.id")),
    # Of the transaction that wrote the row last; later ones have higher numbers.
    Column("revision", Integer, nullable=False, index=True),
    # Of a join token all names of its set, with commas; the last column, because it may be long.
    Column("members", Text),
    Index("one_live_token", "nodes", unique=True, sqlite_where=_LIVE, postgresql_where=_LIVE),
)


class TokenRow(NamedTuple):
    """A token without its members."""

    id: str
    kind: str
    nodes: str
    digest: bytes
    replaces: bool
    created_at: float
    expires_at: float | None
    used_at: float | None
    ended_at: float | None
    ended: str | None
    joined_by: str | None
    revision: int

    def expired(self, now: float) -> bool:
        """Whether its time was over before anybody ended it."""
        return self.expires_at is not None and self.expires_at <= (now if self.ended_at is None else self.ended_at)

    def live(self, now: float) -> bool:
        return self.ended_at is None and not self.expired(now)


def _rows() -> Select[tuple[object, ...]]:
    return select(*(tokens.c[name] for name in TokenRow._fields))


def next_revision(connection: Connection) -> int:
    """For what this transaction writes; it has to be one that writes."""
    return int(connection.execute(select(func.coalesce(func.max(tokens.c.revision), 0))).scalar_one()) + 1


def since(connection: Connection, revision: int) -> list[TokenRow]:
    """All that was written after a revision, in its order; after 0 all there is."""
    found = connection.execute(_rows().where(tokens.c.revision > revision).order_by(tokens.c.revision))
    return [TokenRow._make(row) for row in found]


def by_id(connection: Connection, identity: str) -> TokenRow | None:
    row = connection.execute(_rows().where(tokens.c.id == identity)).one_or_none()
    return None if row is None else TokenRow._make(row)


def standing(connection: Connection, names: Collection[str]) -> dict[str, TokenRow]:
    """By name, the tokens of nodes that nobody has ended; their time may be over."""
    query = _rows().where(tokens.c.kind == NODE, tokens.c.ended_at.is_(None))
    found: dict[str, TokenRow] = {}
    for some in _portions(sorted(names)):
        rows = map(TokenRow._make, connection.execute(query.where(tokens.c.nodes.in_(some))))
        found.update((row.nodes, row) for row in rows)
    return found


def last_revoked(connection: Connection, names: Collection[str]) -> dict[str, int]:
    """By name, the revision in which a person last revoked a node's token."""
    query = select(tokens.c.nodes, func.max(tokens.c.revision)).group_by(tokens.c.nodes)
    query = query.where(tokens.c.kind == NODE, tokens.c.ended == REVOKED)
    found: dict[str, int] = {}
    for some in _portions(sorted(names)):
        found.update((name, revision) for name, revision in connection.execute(query.where(tokens.c.nodes.in_(some))))
    return found


def joins_for(connection: Connection, typed: str) -> list[TokenRow]:
    """Join tokens for a set, typed in just this way, that nobody has ended."""
    query = _rows().where(tokens.c.kind == JOIN, tokens.c.ended_at.is_(None), tokens.c.nodes == typed)
    return [TokenRow._make(row) for row in connection.execute(query)]


def joined_with(connection: Connection, identity: str) -> list[TokenRow]:
    """Tokens of nodes that were traded for a join token and that nobody has ended."""
    query = _rows().where(tokens.c.joined_by == identity, tokens.c.ended_at.is_(None))
    return [TokenRow._make(row) for row in connection.execute(query)]


def members(connection: Connection, identity: str) -> frozenset[str]:
    """All nodes a join token is for."""
    told = connection.execute(select(tokens.c.members).where(tokens.c.id == identity)).scalar_one()
    return frozenset((told or "").split(","))


def any_there(connection: Connection) -> bool:
    return connection.execute(select(tokens.c.id).limit(1)).scalar() is not None


def add(connection: Connection, rows: Sequence[TokenRow], names: Collection[str] | None = None) -> None:
    """`names` are the members of a join token."""
    told = None if names is None else ",".join(names)
    if rows:
        connection.execute(insert(tokens), [row._asdict() | {"members": told} for row in rows])


def end(connection: Connection, rows: Collection[TokenRow], how: str, now: float, revision: int) -> list[TokenRow]:
    """How the rows are afterwards. A token that is at its end already keeps the reason of its end."""
    ended = [row._replace(ended_at=now, ended=how, revision=revision) for row in rows if row.ended_at is None]
    statement = (
        update(tokens)
        .where(tokens.c.id == bindparam("which"))
        .values(ended_at=bindparam("moment"), ended=how, revision=revision)
    )
    if ended:
        connection.execute(statement, [{"which": row.id, "moment": now} for row in ended])
    return ended


def mark_used(connection: Connection, moments: Mapping[str, float]) -> None:
    """When tokens were first used, by their id. Nobody else needs to know at once: the revision stays."""
    statement = update(tokens).where(tokens.c.id == bindparam("which")).values(used_at=bindparam("moment"))
    if moments:
        connection.execute(statement, [{"which": one, "moment": moment} for one, moment in moments.items()])


def _portions(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for at in range(0, len(names), _AT_ONCE):
        yield names[at : at + _AT_ONCE]
