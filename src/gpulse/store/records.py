"""The database of what the hub keeps, and the one thread that speaks to it."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from sqlalchemy import Connection, event
from sqlalchemy.exc import DBAPIError, IntegrityError, ProgrammingError

from gpulse.errors import StoreError
from gpulse.store import migrations, sqlite

T = TypeVar("T")
_READ, _WRITE = "BEGIN", "BEGIN IMMEDIATE"


class Records:
    """Work is done one after the other, each in a transaction of its own: all of it is done, or it raises and none is.

    A command waits with `.result()`, the hub with `await asyncio.wrap_future(…)`. Trouble is a StoreError. What was
    written has reached the disk when the future is done.
    """

    def __init__(self, folder: Path) -> None:
        """Opens what is in the folder, or makes it."""
        self.path = folder / sqlite.FILE
        self._begin = _WRITE
        self._closed = False
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, "gpulse-store")
        try:
            self._connection = self._thread.submit(self._open).result()
        except BaseException:
            self._thread.shutdown()
            raise

    def read(self, work: Callable[[Connection], T]) -> Future[T]:
        """Sees one state of the database, whatever others write meanwhile."""
        return self._submit(lambda: self._transact(_READ, work))

    def write(self, work: Callable[[Connection], T]) -> Future[T]:
        """Alone: nobody else writes between its first and its last word."""
        return self._submit(lambda: self._transact(_WRITE, work))

    def version(self) -> Future[int]:
        """A number that is another one after another process has changed something; cheap to ask."""
        return self._submit(self._version)

    def close(self) -> None:
        """What was asked for before is still done."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._thread.submit(self._connection.close).result()
        self._thread.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _submit(self, work: Callable[[], T]) -> Future[T]:
        with self._lock:
            if self._closed:
                raise StoreError(f"{self.path} is closed")
            return self._thread.submit(work)

    def _open(self) -> Connection:
        connection = sqlite.connect(self.path)

        @event.listens_for(connection.engine, "begin")
        def _begin(begun: Connection) -> None:
            begun.exec_driver_sql(self._begin)

        self._connection = connection
        try:
            self._transact(_WRITE, lambda one: migrations.upgrade(one, str(self.path)))
        except BaseException:
            connection.close()
            raise
        return connection

    def _transact(self, begin: str, work: Callable[[Connection], T]) -> T:
        self._begin = begin
        try:
            with self._connection.begin():
                return work(self._connection)
        except (IntegrityError, ProgrammingError):
            # A mistake of ours, which must look like one.
            raise
        except DBAPIError as error:
            raise sqlite.explained(self.path, error.orig or error) from error

    def _version(self) -> int:
        try:
            # Outside of a transaction, which would cost more than the question.
            return sqlite.data_version(self._connection)
        except sqlite.Error as error:
            raise sqlite.explained(self.path, error) from error
