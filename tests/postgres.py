"""A real PostgreSQL server, one for all tests of a worker, with a database of its own for each test that wants one."""

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from gpulse.store import Records
from gpulse.store.tables import METADATA
from tests.patience import PATIENCE_SECONDS
from tests.ports import free_port

# With what has to be escaped in a URL.
USER, PASSWORD, ESCAPED = "gpulse", "s3cr3t@pässwörd/%", "s3cr3t%40p%C3%A4ssw%C3%B6rd%2F%25"
_TEMPLATE = "gpulse_empty"
_SETTINGS = {"max_connections": "60", "shared_buffers": "32MB", "fsync": "on", "timezone": "UTC"}


def programs() -> Path | None:
    """The folder of the newest server that is installed; Debian keeps it out of the PATH."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(found, key=lambda folder: int(folder.parent.name), default=None)


class PostgresServer:
    """A cluster of its own in a folder of its own, for somebody who is not root: the server refuses to be."""

    def __init__(self, folder: Path, bin_folder: Path) -> None:
        self.folder = folder
        self.port = 0
        self._bin = bin_folder
        self._data = folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            person = pwd.getpwnam("postgres")
            os.chown(folder, person.pw_uid, person.pw_gid)
            self._as = {"user": person.pw_uid, "group": person.pw_gid, "extra_groups": []}
        secret = folder / "password"
        secret.write_text(PASSWORD + "\n", "utf-8")
        secret.chmod(0o644)
        kind = ["--encoding", "UTF8", "--locale", "C.UTF-8", "--auth", "scram-sha-256", "--no-sync"]
        made = subprocess.run(
            [bin_folder / "initdb", "--pgdata", self._data, "--username", USER, "--pwfile", secret, *kind],
            capture_output=True,
            text=True,
            cwd="/",
            check=False,
            **self._as,
        )
        assert made.returncode == 0, made.stdout + made.stderr

    def start(self) -> None:
        for _ in range(5):
            # Once it has one it keeps it: those who have lost it look for it there.
            self.port = self.port or free_port()
            place = ["-p", str(self.port), "-k", str(self.folder), "-c", "listen_addresses=127.0.0.1"]
            settings = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
            with (self.folder / "log").open("ab") as log:
                command = [self._bin / "postgres", "-D", self._data, *place, *settings]
                self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd="/", **self._as)
            if self._answers():
                return
            self.port = 0
        raise AssertionError((self.folder / "log").read_text("utf-8", "replace"))

    def stop(self, how: int = signal.SIGINT) -> None:
        """SIGINT: connections are ended; SIGQUIT: as after a power cut, with a recovery at the next start."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(PATIENCE_SECONDS)
            self._process = None

    def url(self, database: str) -> str:
        return f"postgresql://{USER}:{ESCAPED}@127.0.0.1:{self.port}/{database}"

    @contextlib.contextmanager
    def connected(self, database: str = "postgres") -> Iterator["psycopg.Connection[Any]"]:
        with psycopg.connect(self.url(database), autocommit=True) as driver:
            yield driver

    def create(self, template: str = "template0") -> str:
        """The name of a new database."""
        name = f"test_{secrets.token_hex(6)}"
        with self.connected() as driver:
            driver.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
            )
        return name

    def drop(self, name: str) -> None:
        with self.connected() as driver:
            driver.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    def end_connections(self, database: str) -> int:
        """How many there were; they learn of it when they ask next."""
        with self.connected() as driver:
            ended = driver.execute(
                "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE datname = %s", (database,)
            ).fetchone()
        assert ended is not None
        return int(ended[0])

    def make_template(self) -> None:
        """With all tables: the steps to them take a while."""
        with self.connected() as driver:
            driver.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(_TEMPLATE)))
        Records(Path("/nowhere"), self.url(_TEMPLATE)).close()

    def create_with_tables(self) -> str:
        return self.create(_TEMPLATE)

    def empty(self, database: str) -> None:
        """As the steps of the migration have left it; a new database for each test would take ten times as long."""
        self.end_connections(database)
        tables = [sql.Identifier(table.name) for table in reversed(METADATA.sorted_tables)]
        with self.connected(database) as driver, driver.transaction():
            for table in tables:
                driver.execute(sql.SQL("DELETE FROM {}").format(table))
            driver.execute("INSERT INTO hub (id, revision) VALUES (%s, 0)", (secrets.token_hex(16),))
            driver.execute("INSERT INTO writes (number) VALUES (0)")
            # Rows of the next test are counted from the first again.
            driver.execute("SELECT setval(oid, 1, false) FROM pg_class WHERE relkind = 'S'")

    def _answers(self) -> bool:
        end = time.monotonic() + PATIENCE_SECONDS
        while self._process is not None and self._process.poll() is None and time.monotonic() < end:
            with contextlib.suppress(psycopg.OperationalError), self.connected():
                return True
            time.sleep(0.02)
        self.stop()
        return False


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """Not in the folder of the tests, which its user may not enter."""
    bin_folder = programs()
    if bin_folder is None:
        pytest.skip("PostgreSQL is missing")
    folder = Path(tempfile.mkdtemp(prefix="gpulse-postgres-"))
    folder.chmod(0o755)
    server = PostgresServer(folder, bin_folder)
    try:
        server.start()
        server.make_template()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def postgres_database(postgres_server: PostgresServer) -> str:
    """The name of the one that tests share, one after the other."""
    return postgres_server.create_with_tables()


@pytest.fixture
def postgres_url(postgres_server: PostgresServer, postgres_database: str) -> str:
    """A database with all tables and nothing in them."""
    postgres_server.empty(postgres_database)
    return postgres_server.url(postgres_database)


@pytest.fixture
def bare_postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A database with nothing in it."""
    name = postgres_server.create()
    yield postgres_server.url(name)
    postgres_server.drop(name)


@pytest.fixture(params=["sqlite", "postgresql"])
def bare_url(request: pytest.FixtureRequest) -> str | None:
    """As `records_url`, from before any gpulse has opened it."""
    url: str | None = request.getfixturevalue("bare_postgres_url") if request.param == "postgresql" else None
    return url


@pytest.fixture(params=["sqlite", "postgresql"])
def records_url(request: pytest.FixtureRequest) -> str | None:
    """Each test on both databases: `Records(tmp_path, records_url)`."""
    url: str | None = request.getfixturevalue("postgres_url") if request.param == "postgresql" else None
    return url
