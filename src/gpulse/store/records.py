"""The database of what the hub keeps, and the one thread that speaks to it."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from sqlalchemy import Connection, event
from sqlalchemy.exc import DBAPIError

from gpulse.errors import StoreError
from gpulse.store import migrations
from gpulse.store.database import Database, Kind
from gpulse.store.sqlite import FILE, SqliteFile

T = TypeVar("T")
# A server that cannot be reached is not asked again at once: all who wait would wait for it, one after the other.
_PAUSE_SECONDS = 1.0
_NOTHING_DONE = "nothing was changed; the next try connects again"
_UNKNOWN = (
    "the connection was lost while a change was being saved, and nobody can tell whether it was; look before you do it"
    " again"
)


def database_of(folder: Path, url: str | None = None) -> Database:
    """The file in the folder; or the server that a URL names."""
    if url is None:
        return SqliteFile(folder / FILE)
    from gpulse.store.postgres import PostgresServer  # noqa: PLC0415 - its driver is an extra of the package

    return PostgresServer(url)


class Records:
    """Work is done one after the other, each in a transaction of its own: all of it is done, or it raises and none is.

    A command waits with `.result()`, the hub with `await asyncio.wrap_future(…)`. Trouble is a StoreError. What was
    written has reached the disk when the future is done. A connection that was lost is made anew for the next work.
    """

    def __init__(self, folder: Path, url: str | None = None, *, upgrade: bool = True) -> None:
        """Opens what is in the folder, or at the URL of a PostgreSQL server; or makes it.

        Without `upgrade` the tables stay as they are: a StoreError where they are not those that this gpulse knows.
        """
        self._upgrade = upgrade
        self._database = database_of(folder, url)
        self._begins: tuple[str, ...] = ()
        self._connection: Connection | None = None
        self._trouble: tuple[float, StoreError] | None = None
        self._closed = False
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, "gpulse-store")
        try:
            self._thread.submit(self._open).result()
        except BaseException:
            self._thread.submit(self._end).result()
            self._thread.shutdown()
            raise

    @property
    def name(self) -> str:
        """What a person calls the database; nothing secret is in it."""
        return self._database.name

    def read(self, work: Callable[[Connection], T]) -> Future[T]:
        """Sees one state of the database, whatever others write meanwhile."""
        return self._submit(lambda: self._transact("read", work))

    def write(self, work: Callable[[Connection], T]) -> Future[T]:
        """Alone: nobody else writes between its first and its last word."""
        return self._submit(lambda: self._transact("write", work))

    def version(self) -> Future[int]:
        """A number that is another one after another process has changed something; cheap to ask."""
        return self._submit(lambda: self._transact("ask", self._database.version))

    def close(self) -> None:
        """What was asked for before is still done."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._thread.submit(self._end).result()
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
                raise StoreError(f"{self.name} is closed")
            return self._thread.submit(work)

    def _open(self) -> None:
        if not self._upgrade:
            self._transact("read", lambda one: migrations.refuse_others(one, self.name))
            return
        self._transact("migrate", lambda one: migrations.upgrade(one, self.name, self._database.elsewhere))

    def _end(self) -> None:
        self._drop()
        self._database.release()

    def _drop(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.close()

    def _connected(self) -> Connection:
        if self._connection is not None:
            return self._connection
        if self._trouble is not None and time.monotonic() < self._trouble[0]:
            raise StoreError(str(self._trouble[1]))
        try:
            connection = self._database.connect()
        except StoreError as error:
            self._trouble = time.monotonic() + _PAUSE_SECONDS, error
            raise

        @event.listens_for(connection.engine, "begin")
        def _begin(begun: Connection) -> None:
            for statement in self._begins:
                begun.exec_driver_sql(statement)

        self._connection, self._trouble = connection, None
        return connection

    def _transact(self, kind: Kind, work: Callable[[Connection], T]) -> T:
        used_before = self._connection is not None
        connection = self._connected()
        self._database.check()
        self._begins = self._database.begins[kind]
        begun = saving = False
        try:
            with connection.begin():
                # A mere question can be asked again.
                begun = kind != "ask"
                made = work(connection)
                saving = kind in ("write", "migrate")
        except DBAPIError as error:
            if not error.connection_invalidated:
                raise self._explained(error) from error
            self._drop()
            if saving:
                raise StoreError(f"{self.name}: {_UNKNOWN}") from error
            if begun or not used_before:
                raise StoreError(f"{self.name}: the connection was lost; {_NOTHING_DONE}") from error
        else:
            if kind == "write":
                self._database.written()
            return made
        # It was lost while nobody used it, as when the server was started anew: no work has begun yet.
        return self._transact(kind, work)

    def _explained(self, error: DBAPIError) -> BaseException:
        """A mistake of ours must look like one."""
        return self._database.explained(error.orig or error) or error
