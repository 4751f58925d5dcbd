"""The table of calendar feeds, which whoever has the secret address may read. It has the digest of the secret."""

from typing import NamedTuple

from sqlalchemy import (
    Column,
    Connection,
    Double,
    ForeignKey,
    LargeBinary,
    Select,
    String,
    Table,
    Text,
    insert,
    select,
    update,
)

from gpulse.store.metadata import METADATA

feeds = Table(
    "feeds",
    METADATA,
    Column("id", String(12), primary_key=True),
    # With whose eyes it is seen.
    Column("account", ForeignKey("accounts.id"), nullable=False, index=True),
    # "mine", "fleet", or "node:" and a name.
    Column("scope", Text, nullable=False),
    Column("digest", LargeBinary(32), nullable=False),
    Column("made_at", Double, nullable=False),
    Column("revoked_at", Double),
)


class FeedRow(NamedTuple):
    id: str
    account: str
    scope: str
    digest: bytes
    made_at: float
    revoked_at: float | None


def _rows() -> Select[tuple[object, ...]]:
    return select(*(feeds.c[name] for name in FeedRow._fields))


def add(connection: Connection, row: FeedRow) -> None:
    connection.execute(insert(feeds), row._asdict())


def by_id(connection: Connection, identity: str) -> FeedRow | None:
    row = connection.execute(_rows().where(feeds.c.id == identity)).one_or_none()
    return None if row is None else FeedRow._make(row)


def standing(connection: Connection, account: str) -> list[FeedRow]:
    """Those of an account that nobody has revoked, the oldest first."""
    query = _rows().where(feeds.c.account == account, feeds.c.revoked_at.is_(None))
    return [FeedRow._make(row) for row in connection.execute(query.order_by(feeds.c.made_at, feeds.c.id))]


def revoke_all(connection: Connection, account: str, now: float) -> int:
    """How many of the account nobody had revoked."""
    statement = update(feeds).where(feeds.c.account == account, feeds.c.revoked_at.is_(None))
    return connection.execute(statement.values(revoked_at=now)).rowcount


def revoke(connection: Connection, account: str, identity: str, now: float) -> bool:
    """Whether it was one of the account's that nobody had revoked."""
    statement = update(feeds).where(feeds.c.id == identity, feeds.c.account == account, feeds.c.revoked_at.is_(None))
    return connection.execute(statement.values(revoked_at=now)).rowcount > 0
