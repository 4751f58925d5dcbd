"""Which records a backup is of and restored into: it is said, and never the server's by mistake."""

import sqlite3
import threading
from pathlib import Path

import pytest
from sqlalchemy import text
from typer.testing import CliRunner

from gpulse.cli.commands import app
from gpulse.errors import StoreError
from gpulse.store import Records
from gpulse.store.postgres import shown
from gpulse.store.restoring import restore
from tests.hub.running import RunningHub
from tests.store.keeping import everything, fill, found


@pytest.mark.parametrize("replace", [False, True])
def test_tables_that_nobody_has_written_to_are_nothing(tmp_path, records_url, written, replace):
    """As they are after `gpulse user list`."""
    Records(tmp_path, records_url).close()
    assert restore(written[0], tmp_path, records_url, replace=replace) is None
    assert found(tmp_path, records_url) == written[1]
    assert not list(tmp_path.glob("*before-*"))


def test_what_an_empty_file_has_beside_it_is_not_the_new_ones(tmp_path, written):
    (tmp_path / "gpulse.db").touch()
    (tmp_path / "gpulse.db-wal").write_bytes(b"of another one")
    restore(written[0], tmp_path)
    assert found(tmp_path) == written[1]


def test_one_row_is_something(tmp_path, records_url, written):
    with Records(tmp_path, records_url) as records:
        row = "VALUES (1.0, 'x', 'local', '', 'x', 'y', '{}')"
        add = text(f"INSERT INTO audit (at, who, way, address, action, target, detail) {row}")
        records.write(lambda one: one.execute(add)).result()
    with pytest.raises(StoreError, match="has records already"):
        restore(written[0], tmp_path, records_url)


def test_a_gpulse_that_is_just_ending(tmp_path, bare_postgres_url, written):
    """The server knows of an end a moment later than who has ended."""
    ending = threading.Timer(0.3, Records(tmp_path, bare_postgres_url).close)
    ending.start()
    assert restore(written[0], tmp_path, bare_postgres_url) is None
    ending.join()
    assert found(tmp_path, bare_postgres_url) == written[1]


def test_a_table_that_is_not_known_is_something(tmp_path, written):
    driver = sqlite3.connect(tmp_path / "gpulse.db")
    driver.execute("CREATE TABLE theirs (it)")
    driver.execute("INSERT INTO theirs VALUES (1)")
    driver.commit()
    driver.close()
    before = (tmp_path / "gpulse.db").read_bytes()
    with pytest.raises(StoreError, match="has records already"):
        restore(written[0], tmp_path)
    assert (tmp_path / "gpulse.db").read_bytes() == before


def test_what_a_newer_gpulse_has_made_is_something(tmp_path, bare_postgres_url, written):
    with Records(tmp_path, bare_postgres_url) as records:
        records.write(lambda one: one.execute(text("UPDATE alembic_version SET version_num = '9999'"))).result()
    with pytest.raises(StoreError, match="has records already"):
        restore(written[0], tmp_path, bare_postgres_url)
    with pytest.raises(StoreError, match="newer gpulse"):
        restore(written[0], tmp_path, bare_postgres_url, replace=True)


def test_a_trial_never_touches_the_server(tmp_path, written, postgres_url, monkeypatch):
    """As docs/backup.md has it."""
    monkeypatch.chdir(tmp_path)
    run = CliRunner()
    Path("gpulse.toml").write_text(f'[store]\nurl = "{postgres_url}"\n', "utf-8")
    with Records(tmp_path, postgres_url) as records:
        fill(records)
        before = everything(records)
        # A hub runs; what is meant by mistake is told with the refusal.
        refused = run.invoke(app, ["restore", str(written[0]), "--data", "try", "--replace"])
        assert refused.exit_code == 2
        assert f"restoring into {shown(postgres_url)}, as [store] or GPULSE_STORE_URL says; --file " in refused.stderr
        for more in ({}, {"GPULSE_STORE_URL": postgres_url}):
            tried = run.invoke(app, ["restore", str(written[0]), "--file", "--data", "try", "--replace"], env=more)
            assert tried.exit_code == 0, tried.output
            assert "gpulse: restoring into try/gpulse.db\n" in tried.stderr
        assert everything(records) == before != written[1]
    assert found(Path("try")) == written[1]


def test_backup_says_of_which_records(tmp_path, postgres_url, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Records(Path("data")).close()
    run = CliRunner()
    assert run.invoke(app, ["backup", "a.gpulse", "--data", "data"]).stderr == "gpulse: backing up data/gpulse.db\n"
    there = run.invoke(app, ["backup", "b.gpulse", "--data", "data"], env={"GPULSE_STORE_URL": postgres_url})
    assert there.stderr == f"gpulse: backing up {shown(postgres_url)}\n"


def settings_of(folder, url):
    (folder / "gpulse.toml").write_text(
        f'[store]\nurl = "{url}"\n[[nodes]]\nhosts = "gpu99"\ntransport = "push"\n', "utf-8"
    )


def test_a_hub_says_that_its_records_are_on_a_server(tmp_path, postgres_url):
    settings_of(tmp_path, postgres_url)
    told = f"gpulse: the records are in {shown(postgres_url)}, as [store] or GPULSE_STORE_URL says\n"
    with RunningHub("up", "--no-local", "--data", str(tmp_path / "data"), directory=tmp_path) as hub:
        hub.until(lambda: told in hub.said())


def test_a_hub_on_trial_knows_no_server_and_no_nodes(tmp_path, postgres_url, written):
    """The second command of docs/backup.md, in the folder with the settings of the hub that is not to be touched."""
    settings_of(tmp_path, postgres_url)
    restore(written[0], tmp_path / "try")
    before = found(tmp_path, postgres_url)
    trial = ("--config", "/dev/null", "--data", str(tmp_path / "try"), "--no-local")
    with RunningHub("up", *trial, directory=tmp_path) as hub:
        nodes = hub.until(lambda: hub.get("api/v1/nodes"))["items"]
        # Those that have a token are in the backup.
        assert {node["name"] for node in nodes} == {"gpu01", "gpu02"}
        assert "the records are in" not in hub.said()
    assert found(tmp_path, postgres_url) == before
