"""The database as a file: opened with care for others who open it, and its troubles in words."""

import os
import re
import sqlite3
import time
from pathlib import Path

from sqlalchemy import Connection, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from gpulse.errors import StoreError

FILE = "gpulse.db"
BUSY_SECONDS = 15.0
Error = sqlite3.Error
_NETWORK_KINDS = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "gpfs", "beegfs", "ceph", "glusterfs", "afs", "9p"}
# How the kernel writes a blank in a path.
_OCTAL = re.compile(rb"\\([0-3][0-7]{2})")
_ANEW = "put a copy of it in its place, or move it away to begin anew (then tokens have to be made again)"
_RIGHTS = "give this user the right to write there, or name another folder with --data"
# By how SQLite's names for what went wrong begin.
_CAUSES = (
    ("SQLITE_NOTADB", f"it is damaged or no database; {_ANEW}"),
    ("SQLITE_CORRUPT", f"it is damaged; {_ANEW}"),
    ("SQLITE_FULL", "the disk is full; make room there"),
    ("SQLITE_READONLY", f"it may not be written; {_RIGHTS}"),
    ("SQLITE_CANTOPEN", f"it cannot be opened; {_RIGHTS}"),
    ("SQLITE_PERM", f"it may not be opened; {_RIGHTS}"),
    ("SQLITE_BUSY", f"another gpulse has been writing for {BUSY_SECONDS:.0f} s; try again"),
    ("SQLITE_IOERR", "the disk does not work as it should, or has no room left; look at the system's log"),
)


def make_folder(folder: Path) -> None:
    """The folder for what is kept, for its owner alone where it has to be made."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{folder} cannot be used for what gpulse keeps: {error.strerror}; {_RIGHTS}") from error


def connect(path: Path) -> Connection:
    """One connection, for the thread that asks; how transactions begin is left to it."""
    make_folder(path.parent)
    try:
        # SQLite gives the files beside it the same rights.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise StoreError(f"{path} cannot be opened: {error.strerror}; {_RIGHTS}") from error

    def opened() -> sqlite3.Connection:
        # Without an isolation level the driver leaves transactions to us.
        driver = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            _journal(driver, "delete" if on_network(path.parent) else "wal")
            # A token that was told must be there after a power cut.
            driver.execute("PRAGMA synchronous = FULL")
            driver.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            driver.close()
            raise
        return driver

    try:
        # Digests and hashes do not belong into what a mistake of ours prints.
        return create_engine("sqlite://", creator=opened, poolclass=NullPool, hide_parameters=True).connect()
    except DBAPIError as error:
        raise explained(path, error.orig or error) from error


def data_version(connection: Connection) -> int:
    """Another number after another connection has written."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)  # noqa: S101 - says to mypy what `connect` made
    version: int = driver.execute("PRAGMA data_version").fetchone()[0]
    return version


def explained(path: Path, error: BaseException) -> StoreError:
    """What SQLite reports, in words that say what to do."""
    name = getattr(error, "sqlite_errorname", "")
    for beginning, words in _CAUSES:
        if name.startswith(beginning):
            return StoreError(f"{path}: {words}")
    return StoreError(f"{path} cannot be used: {error}")


def on_network(folder: Path, mounts: Path = Path("/proc/self/mountinfo")) -> bool:
    """Whether others may have the folder mounted too: a write-ahead log needs memory that all who use it share."""
    place, kind = b"", ""
    real = os.fsencode(folder.resolve())
    for line in mounts.read_bytes().splitlines():
        words = line.split(b" ")
        point = _OCTAL.sub(lambda found: bytes([int(found[1], 8)]), words[4])
        inside = real == point or real.startswith(point.rstrip(b"/") + b"/")
        if inside and len(point) >= len(place):
            place, kind = point, words[words.index(b"-") + 1].decode("ascii", "replace")
    return kind in _NETWORK_KINDS or kind.startswith("fuse.")


def _journal(driver: sqlite3.Connection, mode: str) -> None:
    """Only where it is not so yet; SQLite does not wait by itself while another process does the same."""
    deadline = time.monotonic() + BUSY_SECONDS
    while driver.execute("PRAGMA journal_mode").fetchone()[0] != mode:
        try:
            driver.execute(f"PRAGMA journal_mode = {mode}")
        except sqlite3.OperationalError as error:
            if not error.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
