"""The table of accounts and what is asked of it. Of a password it has the argon2id hash."""

from typing import NamedTuple

from sqlalchemy import (
    Column,
    Connection,
    Double,
    Index,
    Integer,
    Select,
    String,
    Table,
    Text,
    func,
    insert,
    select,
    text,
    update,
)

from gpulse.store.metadata import METADATA

_EXTERNAL = text("issuer IS NOT NULL")

accounts = Table(
    "accounts",
    METADATA,
    Column("id", String(12), primary_key=True),
    # The person's name on the nodes.
    Column("name", Text, nullable=False),
    # The name without its case: no two accounts may differ by that alone.
    Column("folded", Text, nullable=False, unique=True),
    Column("display", Text, nullable=False),
    Column("role", String(8), nullable=False),
    Column("password", Text),
    # Of an account that signs in elsewhere: where, and what it is called there for ever.
    Column("issuer", Text),
    Column("subject", Text),
    Column("created_at", Double, nullable=False),
    Column("signed_in_at", Double),
    Column("disabled_at", Double),
    Column("revision", Integer, nullable=False, index=True),
    Index("one_subject", "issuer", "subject", unique=True, sqlite_where=_EXTERNAL, postgresql_where=_EXTERNAL),
)


class Account(NamedTuple):
    """An account without its password's hash, which is read for a sign-in alone."""

    id: str
    name: str
    folded: str
    display: str
    role: str
    has_password: bool
    issuer: str | None
    subject: str | None
    created_at: float
    signed_in_at: float | None
    disabled_at: float | None
    revision: int

    @property
    def live(self) -> bool:
        return self.disabled_at is None


def _rows() -> Select[tuple[object, ...]]:
    has_password = accounts.c.password.is_not(None)
    return select(*(has_password if name == "has_password" else accounts.c[name] for name in Account._fields))


def since(connection: Connection, revision: int) -> list[Account]:
    found = connection.execute(_rows().where(accounts.c.revision > revision))
    return [Account._make(row) for row in found]


def by_id(connection: Connection, identity: str) -> Account | None:
    row = connection.execute(_rows().where(accounts.c.id == identity)).one_or_none()
    return None if row is None else Account._make(row)


def by_folded(connection: Connection, folded: str) -> Account | None:
    row = connection.execute(_rows().where(accounts.c.folded == folded)).one_or_none()
    return None if row is None else Account._make(row)


def by_subject(connection: Connection, issuer: str, subject: str) -> Account | None:
    row = connection.execute(_rows().where(accounts.c.issuer == issuer, accounts.c.subject == subject)).one_or_none()
    return None if row is None else Account._make(row)


def password_hash(connection: Connection, identity: str) -> str | None:
    found: str | None = connection.execute(
        select(accounts.c.password).where(accounts.c.id == identity)
    ).scalar_one_or_none()
    return found


def live_admins(connection: Connection) -> int:
    query = select(func.count()).select_from(accounts)
    return int(
        connection.execute(query.where(accounts.c.role == "admin", accounts.c.disabled_at.is_(None))).scalar_one()
    )


def add(connection: Connection, account: Account, password: str | None) -> None:
    fields = account._asdict()
    del fields["has_password"]
    connection.execute(insert(accounts), fields | {"password": password})


def change(connection: Connection, identity: str, revision: int, **fields: str | float | None) -> Account:
    """The account as it is afterwards."""
    connection.execute(update(accounts).where(accounts.c.id == identity).values(revision=revision, **fields))
    changed = by_id(connection, identity)
    assert changed is not None  # noqa: S101 - accounts are never removed
    return changed
