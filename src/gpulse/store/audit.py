"""The table of who changed what, when and from where; entries are added, and never changed."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Column, Connection, Double, Integer, String, Table, Text, delete, insert, select

from gpulse.store.metadata import METADATA

audit = Table(
    "audit",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("at", Double, nullable=False, index=True),
    # A name, not an account: it says who it was then.
    Column("who", Text, nullable=False),
    Column("way", String(9), nullable=False),
    Column("address", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("target", Text, nullable=False),
    # A JSON object.
    Column("detail", Text, nullable=False),
)


class AuditRow(NamedTuple):
    id: int
    at: float
    who: str
    way: str
    address: str
    action: str
    target: str
    detail: str


def add(connection: Connection, entries: Sequence[Mapping[str, str | float]]) -> None:
    """Each with all columns but the id."""
    if entries:
        connection.execute(insert(audit), list(entries))


def newest(connection: Connection, before: int | None, since: float | None, limit: int) -> list[AuditRow]:
    """The newest first."""
    query = select(*(audit.c[name] for name in AuditRow._fields)).order_by(audit.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(audit.c.id < before)
    if since is not None:
        query = query.where(audit.c.at >= since)
    return [AuditRow._make(row) for row in connection.execute(query)]


def last_at(connection: Connection) -> float | None:
    """Return when the newest entry was written; None if there is none."""
    return connection.execute(select(audit.c.at).order_by(audit.c.id.desc()).limit(1)).scalar()


def remove_before(connection: Connection, moment: float) -> None:
    connection.execute(delete(audit).where(audit.c.at < moment))
