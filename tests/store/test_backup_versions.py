"""gpulse backup of a database of another version: refused in words, and the database stays as it was."""

import pytest
from sqlalchemy import text
from typer.testing import CliRunner

from gpulse.cli.commands import app
from gpulse.store import Records, migrations
from tests.store.keeping import everything, fill


@pytest.fixture
def backup(tmp_path, bare_url, monkeypatch):
    """The command for what is in the folder, or on the server."""
    monkeypatch.chdir(tmp_path)
    if bare_url is not None:
        monkeypatch.setenv("GPULSE_STORE_URL", bare_url)
    return lambda: CliRunner().invoke(app, ["backup", "all.gpulse", "--data", "data"])


def tables(records):
    """All there are, with the columns of each."""

    def work(connection):
        inspected = migrations.inspect(connection)
        names = inspected.get_table_names()
        return {name: [one["name"] for one in inspected.get_columns(name)] for name in names}

    return records.read(work).result()


@pytest.mark.parametrize("older", ["0001", "0002", "0003", "0004"])
def test_of_an_older_version(tmp_path, bare_url, backup, monkeypatch, older):
    newest = migrations.HEAD
    with monkeypatch.context() as then:
        then.setattr(migrations, "HEAD", older)
        with Records(tmp_path / "data", bare_url) as records:
            before = tables(records)
    done = backup()
    assert (done.exit_code, done.stdout) == (2, "")
    told = f"has tables of version {older}, and this gpulse knows {newest}, so that it would have to change them first"
    assert told in done.stderr
    assert "use the gpulse that the hub runs with, or start the hub with this one" in done.stderr
    assert not (tmp_path / "all.gpulse").exists()
    with monkeypatch.context() as then:
        then.setattr(migrations, "HEAD", older)
        with Records(tmp_path / "data", bare_url, upgrade=False) as records:
            assert records.read(migrations.version).result() == older
            assert tables(records) == before
    # Once a hub of this version has been there, there is nothing in the way.
    Records(tmp_path / "data", bare_url).close()
    assert backup().exit_code == 0


@pytest.fixture
def newer(tmp_path, bare_url):
    """What is in it."""
    with Records(tmp_path / "data", bare_url) as records:
        fill(records)
        before = everything(records)
        records.write(lambda one: one.execute(text("UPDATE alembic_version SET version_num = '0999'"))).result()
    return before


def test_of_a_newer_version(tmp_path, bare_url, backup, newer, monkeypatch):
    done = backup()
    assert (done.exit_code, done.stdout) == (2, "")
    words = f"was last written by a newer gpulse (its tables are of version 0999, this one knows {migrations.HEAD})"
    assert words in done.stderr
    assert "upgrade this gpulse" in done.stderr
    assert not (tmp_path / "all.gpulse").exists()
    monkeypatch.setattr(migrations, "HEAD", "0999")
    with Records(tmp_path / "data", bare_url, upgrade=False) as records:
        assert everything(records) == newer
