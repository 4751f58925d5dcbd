"""Writes a backup: all records as they are at one moment, while a hub goes on writing."""

import os
import secrets
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Boolean, Connection, Double, Integer, LargeBinary, String, Table, select
from sqlalchemy.types import TypeEngine

from gpulse import __version__
from gpulse.errors import StoreError
from gpulse.store import migrations
from gpulse.store.backup_file import BackupFile, BackupWriter, Field, Head, Kind, TableHead
from gpulse.store.records import Records
from gpulse.store.tables import METADATA
from gpulse.store.writes import writes

# So many rows are in memory at once.
_AT_ONCE = 1000
# The types that our tables have; Text is a String, too.
_KINDS: tuple[tuple[type[TypeEngine[Any]], Kind], ...] = (
    (Boolean, "truth"),
    (Integer, "whole"),
    (Double, "number"),
    (LargeBinary, "bytes"),
    (String, "text"),
)


def back_up(records: Records, path: Path) -> int:
    """How many rows there are. The file is for its owner alone, and there when it is whole."""
    if path.exists():
        # Whoever types the name of the database itself must not lose it.
        try:
            BackupFile(path).__exit__(None, None, None)
        except StoreError as error:
            raise StoreError(f"{path} is there already, and is no backup of gpulse; name another file") from error
    new = path.with_name(f".{path.name}-{secrets.token_hex(6)}")
    try:
        os.close(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        records.read(lambda connection: dump(connection, new)).result()
        with BackupFile(new) as written:
            written.check()
            count = written.count
        _keep(new, path)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}; name another file") from error
    finally:
        new.unlink(missing_ok=True)
    return count


def dump(connection: Connection, path: Path) -> None:
    """What the transaction sees, into a file."""
    if connection.dialect.name == "sqlite":
        found = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one()
        if found != "ok":
            raise StoreError(f"the database is damaged ({found}), and was not backed up; restore an older backup")
    tables = [table for table in METADATA.sorted_tables if table is not writes]
    head = Head(
        schema=migrations.version(connection) or "",
        made_by=__version__,
        made_at=time.time(),
        tables=tuple(map(_head, tables)),
    )
    writer = BackupWriter(path, head)
    try:
        for table in tables:
            writer.table(str(table.name), _rows(connection, table))
        writer.finish()
    except BaseException:
        writer.abandon()
        raise


def _head(table: Table) -> TableHead:
    # SQLAlchemy's names are texts of a kind of its own.
    return TableHead(str(table.name), tuple(Field(str(column.name), _kind(column.type)) for column in table.columns))


def _rows(connection: Connection, table: Table) -> Iterator[Sequence[object]]:
    # Of a table that refers to itself first the rows that others refer to: those refer to none.
    own = [key.parent.is_not(None) for key in table.foreign_keys if key.column.table is table]
    query = select(table).order_by(*own, *table.primary_key.columns)
    yield from connection.execute(query, execution_options={"yield_per": _AT_ONCE})


def _kind(kind: TypeEngine[Any]) -> Kind:
    return next(word for known, word in _KINDS if isinstance(kind, known))


def _keep(new: Path, path: Path) -> None:
    """On the disk before it has its name, and its name on the disk too."""
    for place, flags in ((new, os.O_RDONLY), (path.parent, os.O_RDONLY | os.O_DIRECTORY)):
        descriptor = os.open(place, flags | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if place is new:
            new.replace(path)
