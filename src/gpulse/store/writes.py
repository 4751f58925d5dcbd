"""The table of one row that whoever writes to PostgreSQL changes first: its lock, and how often it was taken."""

from sqlalchemy import BigInteger, Column, Connection, Table, select

from gpulse.store.metadata import METADATA

# One row, which the migration makes. In SQLite, which has a lock of its own, it stays as it is.
writes = Table("writes", METADATA, Column("number", BigInteger, nullable=False))

# The first statement of a transaction that writes; who else wants to, waits for its end.
TAKE_TURN = "UPDATE writes SET number = number + 1"


def number(connection: Connection) -> int:
    return int(connection.execute(select(writes.c.number)).scalar_one())
