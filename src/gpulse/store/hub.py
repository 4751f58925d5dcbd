"""The hub's own row: its id, and a number that grows with each change of accounts, sessions, keys and reservations."""

from sqlalchemy import Column, Connection, Integer, String, Table, select, update

from gpulse.store.metadata import METADATA

# One row, which the migration makes.
hub = Table(
    "hub",
    METADATA,
    # No secret: it tells the cookies of several hubs on one machine apart.
    Column("id", String(32), primary_key=True),
    Column("revision", Integer, nullable=False),
)


def hub_id(connection: Connection) -> str:
    return str(connection.execute(select(hub.c.id)).scalar_one())


def next_revision(connection: Connection) -> int:
    """For what this transaction writes; never the same number twice, also when rows were removed."""
    connection.execute(update(hub).values(revision=hub.c.revision + 1))
    return revision(connection)


def revision(connection: Connection) -> int:
    """The newest there is."""
    return int(connection.execute(select(hub.c.revision)).scalar_one())
