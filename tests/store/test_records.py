"""The database: who may open it, several who do at once, and what is said when it cannot be used."""

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text

from gpulse.errors import StoreError
from gpulse.store import Records, migrations, sqlite
from gpulse.store import tokens as table
from gpulse.store.tables import METADATA
from tests.patience import PATIENCE_SECONDS

OPEN = (
    "import sys; from pathlib import Path; from gpulse.store import Records;"
    " Records(Path(sys.argv[1]), sys.argv[2] or None).close()"
)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def version(records):
    return records.read(lambda one: one.execute(text("SELECT version_num FROM alembic_version")).scalar()).result()


def count(records):
    return len(records.read(lambda one: table.since(one, 0)).result())


def insert(connection, name="x"):
    values = {"id": name, "kind": "join", "nodes": "n", "digest": b"\0", "replaces": False, "created_at": 0.0}
    connection.execute(table.tokens.insert().values(revision=1, **values))


def test_made_for_its_owner_alone(tmp_path):
    old = os.umask(0)
    try:
        with Records(tmp_path / "a" / "data") as records:
            records.write(insert).result()
            made = sorted((tmp_path / "a" / "data").iterdir())
            assert [path.name for path in made] == ["gpulse.db", "gpulse.db-shm", "gpulse.db-wal", "gpulse.lock"]
            assert {mode(path) for path in made} == {0o600}
            assert mode(tmp_path / "a" / "data") == 0o700
    finally:
        os.umask(old)


def test_a_folder_that_is_there_keeps_its_rights(tmp_path):
    tmp_path.chmod(0o750)
    Records(tmp_path).close()
    assert mode(tmp_path) == 0o750


def test_from_nothing_and_from_what_is_there(tmp_path, bare_url):
    with Records(tmp_path, bare_url) as records:
        assert version(records) == migrations.HEAD
        records.write(insert).result()
    with Records(tmp_path, bare_url) as records:
        assert (version(records), count(records)) == (migrations.HEAD, 1)


def test_an_up_to_date_database_needs_no_alembic(tmp_path, records_url):
    Records(tmp_path, records_url).close()
    code = OPEN + "; sys.exit('alembic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code, tmp_path, records_url or ""], check=False).returncode == 0


def test_migrations_make_the_tables_that_the_code_knows(tmp_path, bare_url):
    with Records(tmp_path, bare_url) as records:
        context = {"compare_type": True}
        found = records.read(
            lambda one: compare_metadata(MigrationContext.configure(one, opts=context), METADATA)
        ).result()
    assert found == []


def test_head_is_the_last_step():
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent).replace("%", "%%"))
    assert ScriptDirectory.from_config(config).get_heads() == [migrations.HEAD]


def test_of_a_newer_gpulse(tmp_path):
    with Records(tmp_path) as records:
        records.write(lambda one: one.execute(text("UPDATE alembic_version SET version_num = '9999'"))).result()
    before = (tmp_path / "gpulse.db").read_bytes()
    with pytest.raises(StoreError, match=r"gpulse\.db was last written by a newer gpulse .* version 9999.*upgrade"):
        Records(tmp_path)
    assert (tmp_path / "gpulse.db").read_bytes() == before


def test_many_processes_open_at_once(tmp_path, bare_url):
    command = [sys.executable, "-c", OPEN, tmp_path, bare_url or ""]
    started = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(6)]
    ended = [process.communicate(timeout=PATIENCE_SECONDS)[1] for process in started]
    assert [(process.returncode, told) for process, told in zip(started, ended, strict=True)] == [(0, b"")] * 6


def test_a_step_that_fails_leaves_nothing(tmp_path, monkeypatch):
    from alembic import command

    real = command.upgrade

    def broken(config, revision):
        real(config, revision)
        raise RuntimeError("a mistake in a step")

    monkeypatch.setattr(command, "upgrade", broken)
    with pytest.raises(RuntimeError):
        Records(tmp_path)
    with sqlite3.connect(tmp_path / "gpulse.db") as driver:
        assert driver.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    driver.close()
    monkeypatch.undo()
    Records(tmp_path).close()


def test_all_or_nothing(tmp_path, records_url):
    def half(connection):
        insert(connection)
        raise ValueError("enough")

    with Records(tmp_path, records_url) as records:
        with pytest.raises(ValueError, match="enough"):
            records.write(half).result()
        assert count(records) == 0


def test_one_thread_speaks_to_it(tmp_path, records_url):
    with Records(tmp_path, records_url) as records, ThreadPoolExecutor(8) as many:
        names = set(many.map(lambda _: records.read(lambda _one: threading.current_thread().name).result(), range(50)))
    assert len(names) == 1


def test_what_reached_the_disk_and_how(tmp_path):
    def settings(connection):
        names = ("journal_mode", "synchronous", "foreign_keys")
        return [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in names]

    with Records(tmp_path) as records:
        assert records.read(settings).result() == ["wal", 2, 1]


def test_the_version_tells_of_others_alone(tmp_path, records_url):
    with Records(tmp_path, records_url) as hub, Records(tmp_path, records_url) as command:
        before = hub.version().result()
        hub.write(insert).result()
        assert hub.version().result() == before
        command.write(lambda one: insert(one, "y")).result()
        assert hub.version().result() != before


def test_closed_twice_and_used_after(tmp_path, records_url):
    records = Records(tmp_path, records_url)
    records.close()
    records.close()
    with pytest.raises(StoreError, match="is closed"):
        records.version()


@pytest.mark.parametrize("content", [b"no database at all" * 300, b"SQLite format 3\0" + bytes(4000)])
def test_damaged(tmp_path, content):
    (tmp_path / "gpulse.db").write_bytes(content)
    with pytest.raises(StoreError, match=r"gpulse\.db: it is damaged.*move it away to begin anew"):
        Records(tmp_path)
    assert (tmp_path / "gpulse.db").read_bytes() == content


def test_opened_twice_by_one_process_it_is_still_in_use(tmp_path):
    """Who comes and goes meanwhile is not the last one, and takes nothing of it away."""
    elsewhere = [sys.executable, "-c", OPEN, str(tmp_path), ""]
    with Records(tmp_path) as records:
        Records(tmp_path).close()
        subprocess.run(elsewhere, check=True, timeout=PATIENCE_SECONDS)
        assert (tmp_path / "gpulse.db-wal").exists()
        records.write(insert).result()
        subprocess.run(elsewhere, check=True, timeout=PATIENCE_SECONDS)
        with Records(tmp_path) as other:
            assert count(other) == 1


def test_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="Not a directory; give this user the right"):
        Records(tmp_path / "file" / "data")
    with pytest.raises(StoreError, match="File exists"):
        Records(tmp_path / "file")
    (tmp_path / "gpulse.db").mkdir()
    with pytest.raises(StoreError, match=r"gpulse\.db cannot be opened: it is a folder"):
        Records(tmp_path)


def test_a_folder_that_may_not_be_written():
    # Not even root makes a folder there.
    with pytest.raises(StoreError, match=r"/proc/gpulse cannot be used .*--data"):
        Records(Path("/proc/gpulse"))


def test_a_full_disk(tmp_path):
    def fill(connection):
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
        for number in range(1000):
            insert(connection, f"{number:012}")

    with Records(tmp_path) as records:
        with pytest.raises(StoreError, match=r"gpulse\.db: the disk is full; make room there"):
            records.write(fill).result()
        assert count(records) == 0


def test_another_that_writes_for_ever(tmp_path, monkeypatch):
    Records(tmp_path).close()
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.1)
    other = sqlite3.connect(tmp_path / "gpulse.db", isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="another gpulse has been writing for"):
            Records(tmp_path)
    finally:
        other.close()


def test_a_write_that_may_not_be(tmp_path):
    with Records(tmp_path) as records:
        records.read(lambda one: one.exec_driver_sql("PRAGMA query_only = ON")).result()
        with pytest.raises(StoreError, match="it may not be written"):
            records.write(insert).result()


def test_network_folders_have_no_shared_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite, "on_network", lambda _folder: True)
    with Records(tmp_path) as records:
        assert records.read(lambda one: one.exec_driver_sql("PRAGMA journal_mode").scalar()).result() == "delete"
        with Records(tmp_path) as other:
            before = records.version().result()
            other.write(insert).result()
            assert records.version().result() != before


MOUNTS = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:40 / /home rw,relatime shared:2 - nfs4 server:/home rw
31 30 0:41 / /home/local rw - xfs /dev/vdb rw
32 22 0:42 / /mnt/my\\040disk rw - fuse.sshfs me@host:/ rw
33 22 0:43 / /höme rw - nfs server:/ rw
"""


@pytest.mark.parametrize(
    ("folder", "network"),
    [
        ("/var/lib", False),
        ("/home", True),
        ("/home/me/x", True),
        ("/homestead", False),
        ("/home/local/x", False),
        ("/mnt/my disk/x", True),
        ("/höme/x", True),
    ],
)
def test_which_folders_are_on_the_network(tmp_path, folder, network):
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS, "utf-8")
    assert sqlite.on_network(Path(folder), mounts) is network
