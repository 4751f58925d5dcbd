"""The table of sessions, which are signed-in browsers. Of their two secrets it has the digests."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Double,
    ForeignKey,
    Integer,
    LargeBinary,
    Select,
    String,
    Table,
    Text,
    bindparam,
    delete,
    insert,
    select,
    update,
)

from gpulse.store.metadata import METADATA

sessions = Table(
    "sessions",
    METADATA,
    Column("id", String(12), primary_key=True),
    Column("account", ForeignKey("accounts.id"), nullable=False, index=True),
    # Of the cookie, and of the page key.
    Column("digest", LargeBinary(32), nullable=False),
    Column("page_digest", LargeBinary(32), nullable=False),
    # Where it began, and what the browser calls itself.
    Column("address", Text, nullable=False),
    Column("browser", Text, nullable=False),
    # Whether a link began it.
    Column("by_link", Boolean, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("seen_at", Double, nullable=False),
    Column("ended_at", Double),
    Column("revision", Integer, nullable=False, index=True),
)


class SessionRow(NamedTuple):
    id: str
    account: str
    digest: bytes
    page_digest: bytes
    address: str
    browser: str
    by_link: bool
    created_at: float
    seen_at: float
    ended_at: float | None
    revision: int


def _rows() -> Select[tuple[object, ...]]:
    return select(*(sessions.c[name] for name in SessionRow._fields))


def since(connection: Connection, revision: int) -> list[SessionRow]:
    found = connection.execute(_rows().where(sessions.c.revision > revision))
    return [SessionRow._make(row) for row in found]


def by_id(connection: Connection, identity: str) -> SessionRow | None:
    row = connection.execute(_rows().where(sessions.c.id == identity)).one_or_none()
    return None if row is None else SessionRow._make(row)


def standing(connection: Connection, account: str) -> list[SessionRow]:
    """Those of an account that nobody has ended, the last seen first; their time may be over."""
    query = _rows().where(sessions.c.account == account, sessions.c.ended_at.is_(None))
    return [SessionRow._make(row) for row in connection.execute(query.order_by(sessions.c.seen_at.desc()))]


def add(connection: Connection, row: SessionRow) -> None:
    connection.execute(insert(sessions), row._asdict())


def end(connection: Connection, rows: Collection[SessionRow], now: float, revision: int) -> list[SessionRow]:
    """How the rows are afterwards."""
    statement = update(sessions).where(sessions.c.id == bindparam("which")).values(ended_at=now, revision=revision)
    if rows:
        connection.execute(statement, [{"which": row.id} for row in rows])
    return [row._replace(ended_at=now, revision=revision) for row in rows]


def mark_seen(connection: Connection, moments: Mapping[str, float]) -> None:
    """When sessions were last seen, by their id. Nobody else needs to know at once: the revision stays."""
    statement = update(sessions).where(sessions.c.id == bindparam("which")).values(seen_at=bindparam("moment"))
    if moments:
        connection.execute(statement, [{"which": one, "moment": moment} for one, moment in moments.items()])


def remove(connection: Connection, ids: Collection[str], seen_before: float) -> None:
    """But for those that another hub has seen since."""
    statement = delete(sessions).where(sessions.c.id == bindparam("which"), sessions.c.seen_at < seen_before)
    if ids:
        connection.execute(statement, [{"which": one} for one in ids])
