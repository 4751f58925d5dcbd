"""The table of links that sign in once. Of a link it has the digest of its secret."""

from typing import NamedTuple

from sqlalchemy import Column, Connection, Double, ForeignKey, LargeBinary, String, Table, delete, insert, select

from gpulse.store.metadata import METADATA

# A link that was used is gone.
links = Table(
    "links",
    METADATA,
    Column("id", String(12), primary_key=True),
    Column("account", ForeignKey("accounts.id"), nullable=False, index=True),
    Column("digest", LargeBinary(32), nullable=False),
    Column("expires_at", Double, nullable=False),
)


class LinkRow(NamedTuple):
    id: str
    account: str
    digest: bytes
    expires_at: float


def add(connection: Connection, row: LinkRow) -> None:
    connection.execute(insert(links), row._asdict())


def by_id(connection: Connection, identity: str) -> LinkRow | None:
    query = select(*(links.c[name] for name in LinkRow._fields)).where(links.c.id == identity)
    row = connection.execute(query).one_or_none()
    return None if row is None else LinkRow._make(row)


def remove(connection: Connection, identity: str) -> None:
    connection.execute(delete(links).where(links.c.id == identity))


def remove_of(connection: Connection, account: str) -> None:
    connection.execute(delete(links).where(links.c.account == account))


def remove_expired(connection: Connection, now: float) -> None:
    connection.execute(delete(links).where(links.c.expires_at <= now))
