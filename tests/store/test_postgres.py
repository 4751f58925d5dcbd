"""Records on a PostgreSQL server: what is not so in a file, and what is said when the server cannot be used."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import select, text

from gpulse.errors import StoreError
from gpulse.store import Records, audit, migrations, postgres, writes
from gpulse.store import hub as hub_table
from tests.patience import PATIENCE_SECONDS
from tests.postgres import ESCAPED, PASSWORD

NOWHERE = Path("/proc/nowhere")


def add(connection, who="ann"):
    what = {"way": "local", "address": "", "action": "x", "target": "y", "detail": "{}"}
    audit.add(connection, [{"at": 1.0, "who": who, **what}])


def count(records):
    return len(records.read(lambda one: audit.newest(one, None, None, 10_000)).result())


@pytest.fixture
def records(postgres_url):
    with Records(NOWHERE, postgres_url) as opened:
        yield opened


def test_needs_no_folder(records):
    records.write(add).result()
    assert count(records) == 1
    assert not NOWHERE.exists()


def test_its_name_has_no_password(records, postgres_url):
    assert ESCAPED in postgres_url
    assert records.name == postgres_url.replace(f":{ESCAPED}", "")


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("postgresql://me:geheim@db/gpulse", "postgresql://me@db/gpulse"),
        ("postgres://db:5433/gpulse?password=geheim&sslmode=require", "postgresql://db:5433/gpulse"),
        ("postgresql:///gpulse", "postgresql:///gpulse"),
        ("postgresql://me@/x?host=/run/postgresql", "postgresql://me@/run/postgresql/x"),
    ],
)
def test_shown_without_secrets(url, name):
    assert postgres.shown(url) == name


def test_a_url_that_is_none_is_not_quoted():
    with pytest.raises(StoreError, match="is not understood; write postgresql://USER@HOST") as caught:
        Records(NOWHERE, "postgresql://me:geheim@db:x:y/gpulse?nonsense=geheim")
    seen, chain = [], caught.value
    while chain is not None:
        seen.append(str(chain))
        chain = None if chain.__suppress_context__ else chain.__context__
    assert "geheim" not in "".join(seen)


def test_without_the_driver():
    code = "import sys; sys.modules['psycopg'] = None; from pathlib import Path; from gpulse.store import Records;"
    code += " Records(Path('/x'), 'postgresql:///x')"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stderr
    assert "not installed; pip install 'gpulse[postgresql]' installs it" in told


def test_files_need_no_driver(tmp_path):
    code = "import sys; from pathlib import Path; from gpulse.store import Records; Records(Path(sys.argv[1])).close();"
    code += " sys.exit('psycopg' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code, tmp_path], check=False).returncode == 0


def test_a_wrong_password_is_told_and_not_shown(postgres_url):
    with pytest.raises(StoreError, match="password authentication failed") as caught:
        Records(NOWHERE, postgres_url.replace(ESCAPED, "geheim"))
    assert "geheim" not in str(caught.value)


def test_nobody_there(postgres_server):
    with pytest.raises(StoreError, match=r"Connection refused.*see that the server runs"):
        Records(NOWHERE, "postgresql://me:geheim@127.0.0.1:1/x")
    with pytest.raises(StoreError, match=r'database "nobody" does not exist'):
        Records(NOWHERE, postgres_server.url("nobody"))


def test_text_that_has_not_all_letters(postgres_server):
    with postgres_server.connected() as driver:
        driver.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    try:
        with pytest.raises(StoreError, match=r"keeps text as LATIN1.*createdb --encoding UTF8"):
            Records(NOWHERE, postgres_server.url("latin"))
    finally:
        postgres_server.drop("latin")


def test_of_a_newer_gpulse(bare_postgres_url):
    with Records(NOWHERE, bare_postgres_url) as records:
        records.write(lambda one: one.execute(text("UPDATE alembic_version SET version_num = '9999'"))).result()
    with pytest.raises(
        StoreError, match=r"was last written by a newer gpulse .* version 9999.*upgrade.*another database"
    ):
        Records(NOWHERE, bare_postgres_url)


def test_a_step_that_fails_leaves_nothing(bare_postgres_url, monkeypatch):
    from alembic import command

    real = command.upgrade

    def broken(config, revision):
        real(config, revision)
        raise RuntimeError("a mistake in a step")

    monkeypatch.setattr(command, "upgrade", broken)
    with pytest.raises(RuntimeError):
        Records(NOWHERE, bare_postgres_url)
    with psycopg.connect(bare_postgres_url) as driver:
        found = driver.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone()
    assert found == (0,)
    monkeypatch.undo()
    Records(NOWHERE, bare_postgres_url).close()


def test_who_writes_is_alone(records, postgres_url):
    """Two who read a number and write the next: none is lost."""

    def next_one(connection):
        seen = connection.execute(select(hub_table.hub.c.revision)).scalar_one()
        connection.execute(hub_table.hub.update().values(revision=seen + 1))

    def many(opened):
        for _ in range(50):
            opened.write(next_one).result()

    with Records(NOWHERE, postgres_url) as other:
        threads = [threading.Thread(target=many, args=(one,)) for one in (records, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert records.read(lambda one: one.execute(select(hub_table.hub.c.revision)).scalar_one()).result() == 100


def test_a_read_sees_one_state(records, postgres_url):
    with Records(NOWHERE, postgres_url) as other:

        def twice(connection):
            first = len(audit.newest(connection, None, None, 10))
            other.write(add).result()
            return first, len(audit.newest(connection, None, None, 10))

        assert records.read(twice).result() == (0, 0)
    assert count(records) == 1


def test_a_read_cannot_write(records):
    with pytest.raises(StoreError, match="can only be read"):
        records.read(add).result()
    assert count(records) == 0


def test_another_that_writes_for_ever(records, postgres_url, monkeypatch):
    monkeypatch.setattr(postgres, "BUSY_SECONDS", 0.2)
    with psycopg.connect(postgres_url) as driver:
        driver.execute(writes.TAKE_TURN)
        with Records(NOWHERE, postgres_url) as late, pytest.raises(StoreError, match="another gpulse has been writing"):
            late.write(add).result()
        driver.rollback()
    records.write(add).result()
    assert count(records) == 1


def test_a_nul_in_a_text(records):
    records.write(lambda one: add(one, "a\0b")).result()
    assert [row.who for row in records.read(lambda one: audit.newest(one, None, None, 1)).result()] == ["a�b"]


def test_a_connection_that_was_lost_meanwhile_is_made_anew(records, postgres_server, postgres_database):
    for ask in (lambda: records.write(add).result(), lambda: count(records), lambda: records.version().result()):
        assert postgres_server.end_connections(postgres_database) >= 1
        ask()
    assert count(records) == 1


def test_lost_in_the_midst_of_a_write_nothing_is_changed(records, postgres_server, postgres_database):
    tries = []

    def interrupted(connection):
        tries.append(add(connection))
        postgres_server.end_connections(postgres_database)
        add(connection)

    with pytest.raises(StoreError, match="the connection was lost; nothing was changed"):
        records.write(interrupted).result()
    assert (len(tries), count(records)) == (1, 0)


def test_lost_while_saving_nobody_knows(records, postgres_server, postgres_database):
    tries = []

    def cut(connection):
        tries.append(add(connection))
        postgres_server.end_connections(postgres_database)

    before = records.version().result()
    with pytest.raises(StoreError, match="nobody can tell whether it was; look before you do it again"):
        records.write(cut).result()
    assert (len(tries), count(records), records.version().result()) == (1, 0, before)


def test_a_server_that_is_away_and_comes_back(records, postgres_server):
    records.write(add).result()
    before = records.version().result()
    # As after a power cut.
    postgres_server.stop(signal.SIGQUIT)
    try:
        with pytest.raises(StoreError, match="cannot be used"):
            records.write(add).result()
        # All who ask next are told at once.
        began = time.monotonic()
        for _ in range(100):
            with pytest.raises(StoreError, match="cannot be used"):
                records.version().result()
        assert time.monotonic() - began < 5
    finally:
        postgres_server.start()
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            assert count(records) == 1
            break
        except StoreError:
            assert time.monotonic() < end
            time.sleep(0.05)
    records.write(add).result()
    assert (count(records), records.version().result()) == (2, before)


def test_what_was_written_is_on_the_disk(records, postgres_server, postgres_database):
    with postgres_server.connected() as driver:
        driver.execute(f"ALTER DATABASE {postgres_database} SET synchronous_commit = off")
    try:
        postgres_server.end_connections(postgres_database)
        show = records.read(lambda one: one.exec_driver_sql("SHOW synchronous_commit").scalar())
        assert show.result() == "on"
    finally:
        with postgres_server.connected() as driver:
            driver.execute(f"ALTER DATABASE {postgres_database} RESET synchronous_commit")


def test_a_mistake_of_ours_looks_like_one(records):
    with pytest.raises(Exception, match="syntax error") as caught:
        records.write(lambda one: one.execute(text("SELEC 1"))).result()
    assert not isinstance(caught.value, StoreError)
    # The values of a statement are not in it.
    with pytest.raises(Exception, match="hidden") as caught:
        records.write(lambda one: one.execute(text("SELECT CAST(:x AS integer) / 0"), {"x": 4711})).result()
    assert "4711" not in str(caught.value)
    assert PASSWORD not in str(caught.value)
    records.write(add).result()
    assert records.read(migrations.version).result() == migrations.HEAD
