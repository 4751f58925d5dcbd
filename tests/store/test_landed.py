"""Steps that have landed are never edited, and databases of every schema that has landed come to the newest tables.

`landed/` has a database of each as SQL, made by the gpulse of that time, with a row in every table. "first" and
"second" are of the time before 0002 and 0003 were edited, which must not happen again. Whoever lands a step adds its
digest here and a dump there: `sqlite3 gpulse.db .dump`.
"""

import hashlib
import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa

from gpulse.auth.directory import Directory
from gpulse.auth.tokens import Tokens
from gpulse.reservations.table import Reservations
from gpulse.store import Records, migrations
from gpulse.store.tables import METADATA

VERSIONS = Path(migrations.__file__).parent / "versions"
DUMPS = sorted((Path(__file__).parent / "landed").glob("*.sql"))
# By file, the beginning of its SHA-256.
LANDED = {
    "v0001_tokens.py": "c4d716c8e5381b64",
    "v0002_accounts.py": "912fe7e4f6ea3a0e",
    "v0003_reservations.py": "1938c22501d1bcdb",
    "v0004_writes.py": "e86ecbe99dcd2223",
    "v0005_origins.py": "0a09a45445cb372e",
    "v0006_late_columns.py": "81ea7fa50593d4dc",
}


def test_a_step_that_has_landed_is_not_edited():
    """Databases that were made by it would be left as they are: write another step instead."""
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in sorted(VERSIONS.glob("v[0-9]*.py"))
    }
    assert {name: found.get(name) for name in LANDED} == LANDED
    newer = sorted(found.keys() - LANDED.keys())
    assert all(name > max(LANDED) for name in newer), "a step comes after those that have landed"


def test_there_is_a_dump_of_every_schema():
    """Of each that databases were left with: 0003 landed together with 0004."""
    assert {path.name[:4] for path in DUMPS} == {name[1:5] for name in LANDED} - {"0003", "0006"}
    assert len(DUMPS) >= 7


def dumped(path: Path) -> sqlite3.Connection:
    driver = sqlite3.connect(":memory:")
    driver.executescript(path.read_text("utf-8"))
    return driver


def rows_of(driver: sqlite3.Connection) -> dict[str, list[dict[str, object]]]:
    driver.row_factory = sqlite3.Row
    names = [name for (name,) in driver.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {name: [dict(row) for row in driver.execute(f'SELECT * FROM "{name}"')] for name in names}  # noqa: S608 - names of our own dumps


def put(path: Path, folder: Path, url: str | None) -> dict[str, list[dict[str, object]]]:
    """The database of a dump into the folder, or onto the server; what is in it."""
    driver = dumped(path)
    rows = rows_of(driver)
    folder.mkdir(exist_ok=True)
    if url is None:
        with sqlite3.connect(folder / "gpulse.db") as file:
            driver.backup(file)
        file.close()
        return rows
    reflected = sa.MetaData()
    reflected.reflect(sa.create_engine("sqlite://", creator=lambda: driver, poolclass=sa.pool.StaticPool))
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    for table in reflected.tables.values():
        for column in table.columns:
            column.type = column.type.as_generic()
        # Conditions of indexes are written another way there, and no step needs the indexes.
        table.indexes.clear()
    with engine.begin() as connection:
        reflected.create_all(connection)
        for table in reflected.sorted_tables:
            if rows[table.name]:
                kinds = {column.name: column.type for column in table.columns}
                values = [
                    {name: bool(value) if isinstance(kinds[name], sa.Boolean) else value for name, value in row.items()}
                    for row in rows[table.name]
                ]
                connection.execute(table.insert(), values)
    engine.dispose()
    return rows


@pytest.mark.parametrize("path", DUMPS, ids=lambda path: path.stem)
def test_a_database_of_then_comes_to_the_tables_of_now(path: Path, tmp_path: Path, bare_url: str | None):
    before = put(path, tmp_path / "data", bare_url)
    with Records(tmp_path / "data", bare_url) as records:
        assert records.read(migrations.version).result() == migrations.HEAD

        def look(connection: sa.Connection) -> None:
            there = sa.inspect(connection)
            for table in METADATA.sorted_tables:
                columns = {column["name"] for column in there.get_columns(table.name)}
                assert columns == {column.name for column in table.columns}, table.name
            for name, old in before.items():
                # A session without a page key has nothing to keep.
                if name in ("alembic_version", "writes") or (name == "sessions" and "page_digest" not in old[0]):
                    continue
                found = [dict(row) for row in connection.execute(sa.select(METADATA.tables[name])).mappings()]
                assert len(found) >= len(old), name
                for row in old:
                    assert any(all(one[key] == row[key] for key in row) for one in found), (name, row)

        records.read(look).result()
        directory = Directory(records)
        assert [one.name for one in directory.accounts.list()] == (["ann"] if "accounts" in before else [])
        assert len(Tokens(records).listing()) == 1
        table = Reservations(records, lambda: 2.0)
        assert len(table.between(0.0, 10.0, cancelled=True)) == (1 if "reservations" in before else 0)
