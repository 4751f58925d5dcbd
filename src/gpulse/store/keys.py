"""The table of people's keys for programs. Of a key it has the digest of its secret."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from sqlalchemy import (
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

keys = Table(
    "keys",
    METADATA,
    Column("id", String(12), primary_key=True),
    Column("account", ForeignKey("accounts.id"), nullable=False, index=True),
    Column("digest", LargeBinary(32), nullable=False),
    # What its owner calls it.
    Column("label", Text, nullable=False),
    # With commas.
    Column("scopes", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double),
    # The last time.
    Column("used_at", Double),
    Column("ended_at", Double),
    Column("revision", Integer, nullable=False, index=True),
)


class KeyRow(NamedTuple):
    id: str
    account: str
    digest: bytes
    label: str
    scopes: str
    created_at: float
    expires_at: float | None
    used_at: float | None
    ended_at: float | None
    revision: int

    def expired(self, now: float) -> bool:
        """Whether its time was over before anybody ended it."""
        return self.expires_at is not None and self.expires_at <= (now if self.ended_at is None else self.ended_at)

    def live(self, now: float) -> bool:
        return self.ended_at is None and not self.expired(now)


def _rows() -> Select[tuple[object, ...]]:
    return select(*(keys.c[name] for name in KeyRow._fields))


def since(connection: Connection, revision: int) -> list[KeyRow]:
    found = connection.execute(_rows().where(keys.c.revision > revision))
    return [KeyRow._make(row) for row in found]


def by_id(connection: Connection, identity: str) -> KeyRow | None:
    row = connection.execute(_rows().where(keys.c.id == identity)).one_or_none()
    return None if row is None else KeyRow._make(row)


def standing(connection: Connection, account: str) -> list[KeyRow]:
    """Those of an account that nobody has ended; their time may be over."""
    query = _rows().where(keys.c.account == account, keys.c.ended_at.is_(None))
    return [KeyRow._make(row) for row in connection.execute(query)]


def add(connection: Connection, row: KeyRow) -> None:
    connection.execute(insert(keys), row._asdict())


def end(connection: Connection, rows: Collection[KeyRow], now: float, revision: int) -> list[KeyRow]:
    """How the rows are afterwards."""
    statement = update(keys).where(keys.c.id == bindparam("which")).values(ended_at=now, revision=revision)
    if rows:
        connection.execute(statement, [{"which": row.id} for row in rows])
    return [row._replace(ended_at=now, revision=revision) for row in rows]


def mark_used(connection: Connection, moments: Mapping[str, float]) -> None:
    """When keys were last used, by their id. Nobody else needs to know at once: the revision stays."""
    statement = update(keys).where(keys.c.id == bindparam("which")).values(used_at=bindparam("moment"))
    if moments:
        connection.execute(statement, [{"which": one, "moment": moment} for one, moment in moments.items()])


def remove(connection: Connection, ids: Collection[str]) -> None:
    if ids:
        connection.execute(delete(keys).where(keys.c.id == bindparam("which")), [{"which": one} for one in ids])
