"""The database on a PostgreSQL server: connected to with care, writers one at a time, and its troubles in words."""

import time
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from gpulse.errors import StoreError
from gpulse.store import writes
from gpulse.store.database import Kind

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
except ImportError as missing:
    raise StoreError(
        "the driver for PostgreSQL is not installed; pip install 'gpulse[postgresql]' installs it"
    ) from missing

BUSY_SECONDS = 15.0
CONNECT_SECONDS = 10
# So long a gpulse that has just ended may still be known to the server.
_LEAVING_SECONDS = 2.0
# Of the advisory locks that each database has for itself: who uses the records, and who changes their tables.
IN_USE, MIGRATING = 0x6770756C7365, 0x6770756C7366
# A server that vanished without a word is noticed within half a minute, also by a hub that only listens.
_ALIVE = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
    "connect_timeout": CONNECT_SECONDS,
    "application_name": "gpulse",
}
_SETTINGS = (
    # A hub that was stopped in the midst of a write must not keep the others out.
    "SET idle_in_transaction_session_timeout = '60s'",
    # A booking that was acknowledged must be there after a power cut; stricter settings of the server stay.
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'",
)
_OWNER = "make the tables' owner the user of the URL, or name the owner there"
# By the beginning of PostgreSQL's codes for what went wrong.
_CAUSES = (
    ("55P03", f"another gpulse has been writing for {BUSY_SECONDS:.0f} s; try again"),
    ("53100", "the server's disk is full; make room there"),
    ("42501", f"the server does not allow it to this user; {_OWNER}"),
    ("25006", "the server can only be read, as a standby can; name the one that is written to in the URL"),
    ("53", "the server lacks memory or connections; look at its log"),
    ("57014", "the server has cancelled it; try again"),
    ("XX", "the server has found damage; look at its log"),
)


class PostgresServer:
    """One database there. The name that errors show has no password in it."""

    begins: Mapping[Kind, tuple[str, ...]] = {
        "ask": (),
        "read": ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",),
        # Each statement sees what others wrote before the turn was ours; nobody writes after.
        "write": ("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", writes.TAKE_TURN),
        "migrate": (
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
            f"SELECT pg_advisory_xact_lock({MIGRATING})",
        ),
    }
    elsewhere = "name another database in the URL"

    def __init__(self, url: str) -> None:
        self._url = url
        self.name = shown(url)
        self._own_writes = 0

    def connect(self, alone: bool = False) -> Connection:
        """`alone`: nobody else uses it, and nobody can until the connection ends."""

        def opened() -> "psycopg.Connection[Any]":
            # SQLAlchemy begins and ends transactions by statements of ours. Without prepared ones it works behind a
            # pooler, and after another gpulse has changed the tables.
            arguments: dict[str, Any] = {**_ALIVE, "autocommit": True, "prepare_threshold": None}
            driver: psycopg.Connection[Any] = psycopg.connect(self._url, **arguments)
            try:
                self._set_up(driver, alone)
            except BaseException:
                driver.close()
                raise
            return driver

        try:
            engine = create_engine("postgresql+psycopg://", creator=opened, poolclass=NullPool, hide_parameters=True)
            event.listen(engine, "before_cursor_execute", _without_nul, retval=True)
            return engine.connect()
        except (DBAPIError, psycopg.Error) as error:
            cause = error.orig if isinstance(error, DBAPIError) else error
            # Its words have the place and the user, never the password.
            words = " ".join(str(cause).split())
            raise StoreError(
                f"{self.name} cannot be used: {words}; see that the server runs, and that the URL names user and"
                " database as they are there"
            ) from error

    def check(self) -> None:
        """The server sees to it."""

    def release(self) -> None:
        """The server knows when the connection ends."""

    def written(self) -> None:
        self._own_writes += 1

    def version(self, connection: Connection) -> int:
        # A write of ours whose end was not heard counts as one of others, and is read again: that does no harm.
        return writes.number(connection) - self._own_writes

    def explained(self, error: BaseException) -> StoreError | None:
        code = getattr(error, "sqlstate", None) or ""
        for beginning, words in _CAUSES:
            if code.startswith(beginning):
                return StoreError(f"{self.name}: {words}")
        if isinstance(error, psycopg.IntegrityError | psycopg.ProgrammingError | psycopg.DataError):
            return None
        return StoreError(f"{self.name} cannot be used: {' '.join(str(error).split())}")

    def _set_up(self, driver: "psycopg.Connection[Any]", alone: bool) -> None:
        encoding = driver.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise StoreError(
                f"{self.name} keeps text as {encoding}, which has not all letters; make a database with"
                " createdb --encoding UTF8 --template template0"
            )
        for statement in _SETTINGS:
            driver.execute(statement)
        driver.execute(f"SET lock_timeout = {BUSY_SECONDS * 1000:.0f}")
        shared = "" if alone else "_shared"
        deadline = time.monotonic() + (_LEAVING_SECONDS if alone else 0.0)
        while driver.execute(f"SELECT pg_try_advisory_lock{shared}({IN_USE})").fetchone() != (True,):
            if time.monotonic() < deadline:
                time.sleep(0.05)
                continue
            raise StoreError(
                f"{self.name} is in use by a running gpulse; stop all hubs that use it first"
                if alone
                else f"a backup is being restored in {self.name}; wait until it is there"
            )


def shown(url: str) -> str:
    """The URL without its password, and without its settings, of which one may be the password too."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        # The driver's words would quote the URL.
        raise StoreError(
            "the URL of the database is not understood; write postgresql://USER@HOST:PORT/DATABASE, and special"
            " characters of a password as %40 and the like"
        ) from None
    user, host, port = (str(parts.get(key) or "") for key in ("user", "host", "port"))
    place = f"{user}@{host}" if user else host
    return f"postgresql://{place}{f':{port}' if port else ''}/{parts.get('dbname') or ''}"


def _without_nul(
    _connection: Connection, _cursor: Any, statement: str, parameters: Any, _context: Any, _many: bool
) -> tuple[str, Any]:
    """PostgreSQL's text cannot hold a NUL, and what people send may: it becomes the sign for what cannot be shown."""
    if isinstance(parameters, dict):
        return statement, _cleaned(parameters)
    return statement, [_cleaned(one) if isinstance(one, dict) else one for one in parameters]


def _cleaned(values: dict[str, Any]) -> dict[str, Any]:
    if not any(isinstance(value, str) and "\0" in value for value in values.values()):
        return values
    return {key: value.replace("\0", "�") if isinstance(value, str) else value for key, value in values.items()}
