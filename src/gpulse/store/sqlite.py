"""The database as a file: opened with care for others who open it, and its troubles in words."""

import fcntl
import os
import re
import sqlite3
import time
from collections.abc import Mapping
from pathlib import Path

from sqlalchemy import Connection, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from gpulse.errors import StoreError
from gpulse.store.database import Kind

FILE = "gpulse.db"
LOCK = "gpulse.lock"
BUSY_SECONDS = 15.0
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


class SqliteFile:
    """The database in one file; a lock beside it tells who wants to replace it that it is in use."""

    begins: Mapping[Kind, tuple[str, ...]] = {
        "ask": (),
        "read": ("BEGIN",),
        "write": ("BEGIN IMMEDIATE",),
        "migrate": ("BEGIN IMMEDIATE",),
    }
    elsewhere = "name another folder with --data"

    def __init__(self, path: Path, locked: bool = False) -> None:
        """`locked`: who asks has the folder's lock already."""
        self.path = path
        self._locked = locked
        self.name = str(path)
        self._lock: int | None = None
        # Of the file that is connected to.
        self._identity: tuple[int, int] | None = None

    def connect(self) -> Connection:
        make_folder(self.path.parent)
        if self._lock is None and not self._locked:
            self._lock = take_lock(self.path.parent, fcntl.LOCK_SH)
        self._make()
        try:
            # Digests and hashes do not belong into what a mistake of ours prints.
            engine = create_engine("sqlite://", creator=self._opened, poolclass=NullPool, hide_parameters=True)
            connection = engine.connect()
        except DBAPIError as error:
            raise self._in_words(error.orig or error) from error
        if self._identity is None:
            self._identity = _identity(self.path)
        return connection

    def check(self) -> None:
        """SQLite itself would go on writing into a file that has been removed."""
        if self._identity is not None and _identity(self.path) != self._identity:
            raise StoreError(
                f"{self.path} was removed or replaced while gpulse was using it, so nothing is written any more; put"
                " the file back, or stop gpulse and restore a backup (gpulse restore FILE)"
            )

    def release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def written(self) -> None:
        """SQLite knows which connection wrote."""

    def version(self, connection: Connection) -> int:
        return int(connection.exec_driver_sql("PRAGMA data_version").scalar_one())

    def explained(self, error: BaseException) -> StoreError | None:
        mistake = isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError)
        return None if mistake else self._in_words(error)

    def _in_words(self, error: BaseException) -> StoreError:
        name = getattr(error, "sqlite_errorname", "")
        for beginning, words in _CAUSES:
            if name.startswith(beginning):
                return StoreError(f"{self.path}: {words}")
        return StoreError(f"{self.path} cannot be used: {error}")

    def _make(self) -> None:
        """Never opens one that is there: closing it would end all locks that SQLite has on it in this process."""
        try:
            # SQLite gives the files beside it the same rights.
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError as error:
            if self.path.is_dir():
                raise StoreError(f"{self.path} cannot be opened: it is a folder; {_RIGHTS}") from error
        except OSError as error:
            raise StoreError(f"{self.path} cannot be opened: {error.strerror}; {_RIGHTS}") from error

    def _opened(self) -> sqlite3.Connection:
        # Without an isolation level the driver leaves transactions to us.
        driver = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            _journal(driver, "delete" if on_network(self.path.parent) else "wal")
            # A token that was told must be there after a power cut.
            driver.execute("PRAGMA synchronous = FULL")
            driver.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            driver.close()
            raise
        return driver


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def take_lock(folder: Path, how: int) -> int:
    """A descriptor that holds the folder's lock until it is closed: shared by all who use what is there."""
    path = folder / LOCK
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(f"{path} cannot be opened: {error.strerror}; {_RIGHTS}") from error
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise StoreError(
            f"a backup is being restored in {folder}; wait until it is there"
            if how == fcntl.LOCK_SH
            else f"{folder} is in use by a running gpulse; stop the hub first (gpulse service stop, or Ctrl-C)"
        ) from error
    except OSError as error:
        os.close(descriptor)
        raise StoreError(f"{path} cannot be locked: {error.strerror}; name another folder with --data") from error
    return descriptor


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
