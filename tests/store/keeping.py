"""Records with something in every table, and what is in them, for tests that move them about."""

import asyncio
import sys

from sqlalchemy import func, select

from gpulse.auth.directory import Directory
from gpulse.auth.passwords import Passwords
from gpulse.auth.tokens import Tokens
from gpulse.store import Records
from gpulse.store import feeds as feed_table
from gpulse.store import reservations as reservation_table
from gpulse.store.tables import METADATA
from gpulse.store.writes import writes
from tests.auth.conftest import QUICK

# Adds to the audit log until it is ended, and tells of each entry when it is kept.
WRITER = """
import sys
from pathlib import Path
from gpulse.store import Records, audit
records = Records(Path(sys.argv[1]), sys.argv[2] or None)
for number in range(100_000):
    values = {"who": f"writer {number}", "way": "local", "address": "", "action": "x", "target": "y", "detail": "{}"}
    records.write(lambda one: audit.add(one, [{"at": float(number), **values}])).result()
    print(number, flush=True)
"""


def fill(records):
    """Something in every table."""
    tokens = Tokens(records)
    joining = tokens.create_join("gpu[02-03]", 4_000_000_000.0)
    asyncio.run(tokens.trade(tokens.check(joining), "gpu02"))
    # Written again, it comes after those that refer to it.
    tokens.revoke(["gpu[02-03]"])
    tokens.create_node("gpu01")
    asyncio.run(_people(records))
    values = {"id": "0" * 12, "person": "ann", "maker": "bob", "start_at": 1.5, "end_at": 2.25, "last_at": 2.25}
    values |= {"comment": "Größe\n\t\"'; DROP TABLE 🚀", "hold": False, "imported": True, "made_at": 1.0, "revision": 7}
    change = {"reservation": "0" * 12, "at": 1.0, "by": "bob", "action": "made", "before": None, "after": "{}"}
    owner = select(METADATA.tables["accounts"].c.id).limit(1)

    def more(connection):
        connection.execute(reservation_table.reservations.insert().values(**values, ended_at=None, ending=None))
        connection.execute(reservation_table.places.insert().values(reservation="0" * 12, node="gpu01", index="0.2"))
        connection.execute(reservation_table.changes.insert().values(**change))
        origin = {"reservation": "0" * 12, "host": "gpu01.lab.example", "index": "0.2", "name": "Ann", "end_at": 2.25}
        connection.execute(reservation_table.origins.insert().values(**origin))
        account = connection.execute(owner).scalar_one()
        feed = {"id": "1" * 12, "account": account, "scope": "mine", "digest": bytes(range(32)), "made_at": 0.1 + 0.2}
        connection.execute(feed_table.feeds.insert().values(**feed))

    records.write(more).result()
    assert all(everything(records).values())


async def _people(records):
    directory = Directory(records, passwords=Passwords(QUICK))
    ann = await directory.accounts.add("ann", "admin", "correct horse")
    await directory.accounts.add("bob", "member")
    await directory.sessions.begin(ann.id, "127.0.0.1", "a browser")
    await directory.keys.create(ann.id, "a label", ["read"])
    await directory.links.make(ann.id)
    await directory.audit.note("ann", "127.0.0.1", "account.add", "bob")


def everything(records):
    """All rows of all tables, but the counter that each database has for itself."""

    def read(connection):
        tables = [table for table in METADATA.sorted_tables if table is not writes]
        return {table.name: sorted(map(tuple, connection.execute(select(table))), key=repr) for table in tables}

    return records.read(read).result()


def found(folder, url=None):
    """As `everything`, of a database that nobody has open."""
    with Records(folder, url) as records:
        return everything(records)


def entries(records):
    audit = METADATA.tables["audit"]
    return records.read(lambda one: one.execute(select(func.count()).select_from(audit)).scalar_one()).result()


def writer(folder, url):
    return [sys.executable, "-c", WRITER, folder, url or ""]
