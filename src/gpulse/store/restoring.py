"""Restores a backup, into a file or into PostgreSQL: all of it, or nothing is changed; and nobody uses it meanwhile."""

import contextlib
import fcntl
import os
import secrets
import sqlite3
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Connection,
    Double,
    LargeBinary,
    Text,
    column,
    delete,
    event,
    insert,
    inspect,
    literal,
    select,
    table,
    text,
)
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.expression import TableClause
from sqlalchemy.types import TypeEngine

from gpulse.errors import StoreError
from gpulse.store import migrations
from gpulse.store.backup import dump
from gpulse.store.backup_file import BackupFile, Kind, TableHead
from gpulse.store.database import Database
from gpulse.store.hub import hub
from gpulse.store.sqlite import FILE, SqliteFile, make_folder, take_lock
from gpulse.store.tables import METADATA
from gpulse.store.writes import writes

_AT_ONCE = 500
_TYPES: dict[Kind, type[TypeEngine[Any]]] = {
    "text": Text,
    "whole": BigInteger,
    "number": Double,
    "truth": Boolean,
    "bytes": LargeBinary,
}
# What has a row as soon as there are tables.
_FROM_THE_START = {"alembic_version", hub.name, writes.name}
_REPLACE = "restore into another one, or replace them with --replace, which keeps them aside"


def restore(path: Path, folder: Path, url: str | None = None, *, replace: bool = False) -> Path | None:
    """The records of a backup are those of the folder, or of the URL. Returns where those from before are kept."""
    with BackupFile(path) as backup:
        if backup.head.schema > migrations.HEAD:
            raise StoreError(
                f"{path} was written by a newer gpulse (its tables are of version {backup.head.schema}, this one knows"
                f" {migrations.HEAD}); upgrade this gpulse"
            )
        backup.check()
        if url is None:
            return _into_file(backup, folder, replace)
        return _into_postgres(backup, folder, url, replace)


def _into_file(backup: BackupFile, folder: Path, replace: bool) -> Path | None:
    make_folder(folder)
    lock = take_lock(folder, fcntl.LOCK_EX)
    path, new = folder / FILE, folder / f".{FILE}-{secrets.token_hex(6)}"
    try:
        there = path.exists()
        used = there and not _only_opened(path)
        if used and not replace:
            raise StoreError(f"{path} has records already; {_REPLACE}")
        database = SqliteFile(new, locked=True)
        with _connected(database, database.connect()) as connection:
            _fill(connection, database, backup)
        _check_whole(new)
        aside = _aside(path) if used else None
        if there and not used:
            # What is left beside it must not be taken for the new one's.
            for part in _parts(path)[1:]:
                part.unlink(missing_ok=True)
        new.replace(path)
        _sync(folder)
    except OSError as error:
        raise StoreError(f"{folder} cannot be written to: {error.strerror}; nothing was restored") from error
    finally:
        for name in _parts(new):
            name.unlink(missing_ok=True)
        os.close(lock)
    return aside


def _into_postgres(backup: BackupFile, folder: Path, url: str, replace: bool) -> Path | None:
    from gpulse.store.postgres import PostgresServer  # noqa: PLC0415 - its driver is an extra of the package

    database, aside = PostgresServer(url), None
    with _connected(database, database.connect(alone=True)) as connection:
        if migrations.version(connection) is not None:
            if not _only_looked_at(connection):
                if not replace:
                    raise StoreError(f"{database.name} has records already; {_REPLACE}")
                migrations.upgrade(connection, database.name, database.elsewhere)
                aside = _dumped(connection, folder)
            METADATA.drop_all(connection)
            connection.execute(text("DROP TABLE alembic_version"))
        _fill(connection, database, backup)
    return aside


def _only_opened(path: Path) -> bool:
    """Whether a command has made the file, and nobody has written to it; of what cannot be read nobody knows."""
    driver = sqlite3.connect(path)
    try:
        names = [row[0] for row in driver.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        asked = [f'SELECT 1 FROM "{name}" LIMIT 1' for name in names if name not in _FROM_THE_START]  # noqa: S608 - tables that are there
        return not any(driver.execute(one).fetchone() for one in asked)
    except sqlite3.Error:
        return False
    finally:
        driver.close()


def _only_looked_at(connection: Connection) -> bool:
    """The same of a server; what a newer gpulse has made is not ours to judge."""
    if (migrations.version(connection) or "") > migrations.HEAD:
        return False
    names = set(inspect(connection).get_table_names()) - _FROM_THE_START
    asked = [select(literal(1)).select_from(table(name)).limit(1) for name in names]
    return not any(connection.execute(one).first() for one in asked)


def _dumped(connection: Connection, folder: Path) -> Path:
    """A server has no file to keep: what was there becomes a backup."""
    make_folder(folder)
    path = folder / f"before-{_stamp()}.gpulse"
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        dump(connection, path)
        _sync(path)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}; nothing was restored") from error
    return path


@contextlib.contextmanager
def _connected(database: Database, connection: Connection) -> Iterator[Connection]:
    """One transaction, and the connection's end."""

    @event.listens_for(connection.engine, "begin")
    def _begin(begun: Connection) -> None:
        for statement in database.begins["migrate"]:
            begun.exec_driver_sql(statement)

    try:
        with connection.begin():
            yield connection
    except DBAPIError as error:
        raise database.explained(error.orig or error) or error from error
    finally:
        connection.close()


def _fill(connection: Connection, database: Database, backup: BackupFile) -> None:
    """The tables as they were when the backup was made, what was in them, and then the steps since."""
    migrations.upgrade(connection, database.name, database.elsewhere, backup.head.schema)
    tables = [(head, _table(head)) for head in backup.head.tables]
    # The steps put something into some tables.
    for _, one in reversed(tables):
        connection.execute(delete(one))
    for head, one in tables:
        names = [field.name for field in head.fields]
        rows = backup.rows(head)
        while some := [dict(zip(names, row, strict=True)) for row in islice(rows, _AT_ONCE)]:
            connection.execute(insert(one), some)
        if connection.dialect.name == "postgresql" and ("id", "whole") in ((f.name, f.kind) for f in head.fields):
            _count_on(connection, head.name)
    migrations.upgrade(connection, database.name, database.elsewhere)


def _table(head: TableHead) -> TableClause:
    """Not as this gpulse knows it: the backup may be older."""
    return table(head.name, *(column(field.name, _TYPES[field.kind]()) for field in head.fields))


def _count_on(connection: Connection, name: str) -> None:
    """PostgreSQL gives ids by a counter, which knows nothing of rows that came with theirs."""
    newest = connection.execute(text(f'SELECT max(id) FROM "{name}"')).scalar()  # noqa: S608 - a table of ours
    if newest is not None:
        counter = "SELECT setval(pg_get_serial_sequence(:name, 'id'), :newest)"
        connection.execute(text(counter), {"name": name, "newest": newest})


def _check_whole(path: Path) -> None:
    driver = sqlite3.connect(path)
    try:
        found = [row[0] for row in driver.execute("PRAGMA integrity_check(1)")]
        found += [f"{row[0]} refers to nothing" for row in driver.execute("PRAGMA foreign_key_check")]
    finally:
        driver.close()
    if found != ["ok"]:
        raise StoreError(f"what was restored is not whole ({found[-1]}), and was thrown away; take another backup")
    _sync(path)


def _aside(path: Path) -> Path:
    """The file from before has another name beside its own, which the new one then takes in one step."""
    with contextlib.suppress(sqlite3.Error):
        # What is in the log beside it belongs into it. Of a damaged one it stays beside it.
        driver = sqlite3.connect(path)
        try:
            driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            driver.close()
    aside = path.with_name(f"{path.name}.before-{_stamp()}")
    for part, kept in list(zip(_parts(path), _parts(aside), strict=True))[1:]:
        if part.exists():
            part.rename(kept)
    try:
        os.link(path, aside)
    except OSError:
        # Some file systems have no second names.
        path.rename(aside)
    return aside


def _parts(path: Path) -> list[Path]:
    return [path.with_name(path.name + ending) for ending in ("", "-wal", "-shm")]


def _stamp() -> str:
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
