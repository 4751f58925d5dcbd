"""A backup while somebody writes, what restoring it gives in either database, and when it is refused."""

import os
import sqlite3
import stat
import subprocess
import time
import zipfile
from pathlib import Path

import pytest
from sqlalchemy import text
from typer.testing import CliRunner

from gpulse.cli.commands import app
from gpulse.errors import StoreError
from gpulse.store import Records, audit, backup, migrations
from gpulse.store.backup import back_up
from gpulse.store.backup_file import BackupFile
from gpulse.store.restoring import restore
from tests.store.keeping import entries, everything, fill, found, writer


@pytest.mark.parametrize("into", ["sqlite", "postgresql"])
def test_everything_is_there_again_in_either_database(tmp_path, records_url, into, request):
    with Records(tmp_path / "first", records_url) as records:
        fill(records)
        before = everything(records)
        count = back_up(records, tmp_path / "all.gpulse")
    assert count == sum(map(len, before.values()))
    url = request.getfixturevalue("bare_postgres_url") if into == "postgresql" else None
    assert restore(tmp_path / "all.gpulse", tmp_path / "second", url) is None
    assert found(tmp_path / "second", url) == before
    with Records(tmp_path / "second", url) as records:
        # Ids go on where they were.
        values = {"way": "local", "address": "", "action": "x", "target": "y", "detail": "{}"}
        records.write(lambda one: audit.add(one, [{"at": 1.0, "who": "x", **values}])).result()
        assert entries(records) == len(before["audit"]) + 1


def test_while_somebody_writes(tmp_path, records_url):
    with Records(tmp_path / "data", records_url) as records:
        fill(records)
        before = entries(records)
    process = subprocess.Popen(writer(tmp_path / "data", records_url), stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "0\n"
        for number in range(5):
            path = tmp_path / f"{number}.gpulse"
            with Records(tmp_path / "data", records_url) as records:
                least = entries(records)
                back_up(records, path)
                most = entries(records)
            assert restore(path, tmp_path / str(number)) is None
            kept = found(tmp_path / str(number))["audit"]
            assert least <= len(kept) <= most
            # One moment: none in between is missing.
            names = {row[2] for row in kept if row[2].startswith("writer ")}
            assert names == {f"writer {one}" for one in range(len(kept) - before)}
        process.kill()
        told = process.stdout.read().split()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    # It went on meanwhile, and all that it told of is there.
    assert len(told) > 5
    with Records(tmp_path / "data", records_url) as records:
        assert entries(records) - before >= int(told[-1]) + 1


def test_for_its_owner_alone_and_whole_or_not_there(tmp_path, monkeypatch):
    old = os.umask(0)
    try:
        with Records(tmp_path / "data") as records:
            fill(records)
            back_up(records, tmp_path / "a")
            assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600
            first = (tmp_path / "a").read_bytes()
            monkeypatch.setattr(backup.BackupWriter, "finish", lambda _self: (_ for _ in ()).throw(OSError(28, "full")))
            with pytest.raises(StoreError, match="a cannot be written: full"):
                back_up(records, tmp_path / "a")
    finally:
        os.umask(old)
    assert (tmp_path / "a").read_bytes() == first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "data"]


def test_only_an_older_backup_is_replaced(tmp_path):
    with Records(tmp_path) as records:
        fill(records)
        with pytest.raises(StoreError, match=r"gpulse\.db is there already, and is no backup of gpulse"):
            back_up(records, tmp_path / "gpulse.db")
        back_up(records, tmp_path / "a")
        back_up(records, tmp_path / "a")
        with pytest.raises(StoreError, match="cannot be written: No such file or directory"):
            back_up(records, tmp_path / "none" / "a")


def test_a_damaged_database_is_not_backed_up(tmp_path):
    with Records(tmp_path) as records:
        fill(records)
        for number in range(300):
            values = {"who": "x" * 500, "way": "local", "address": "", "action": "x", "target": "y", "detail": "{}"}
            records.write(lambda one, at=float(number), values=values: audit.add(one, [{"at": at, **values}])).result()
    path = tmp_path / "gpulse.db"
    content = bytearray(path.read_bytes())
    content[-8192:-4096] = bytes(4096)
    path.write_bytes(content)
    with Records(tmp_path) as records, pytest.raises(StoreError, match="damaged"):
        back_up(records, tmp_path / "a")
    assert not (tmp_path / "a").exists()


def rows_of(path):
    with BackupFile(path) as file:
        file.check()
        return {table.name: sorted(file.rows(table), key=repr) for table in file.head.tables}


def test_any_damage_is_noticed(tmp_path, written):
    content = written[0].read_bytes()
    path = tmp_path / "damaged"
    refused = 0
    for at in range(0, len(content), 7):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :])
        try:
            # Dates and rights of the zip may be others, which are nobody's records.
            assert rows_of(path) == written[1]
        except StoreError as error:
            assert "is no backup of gpulse, or is damaged" in str(error)
            refused += 1
    assert refused > len(content) / 7 / 2
    for part in (b"", b"text", content[: len(content) // 2], content[:-1]):
        path.write_bytes(part)
        with pytest.raises(StoreError, match="is no backup of gpulse, or is damaged"):
            restore(path, tmp_path / "other")
    assert not (tmp_path / "other").exists()
    with pytest.raises(StoreError, match="cannot be read: No such file"):
        restore(tmp_path / "none", tmp_path / "other")


def changed(path, name, old, new):
    """The same file with another text in one of its parts, and digests that are of what was before."""
    with zipfile.ZipFile(path) as archive:
        parts = {one: archive.read(one) for one in archive.namelist()}
    assert old in parts[name]
    parts[name] = parts[name].replace(old, new)
    target = path.with_name("changed")
    with zipfile.ZipFile(target, "w") as archive:
        for one, content in parts.items():
            archive.writestr(one, content)
    return target


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [("head.json", b"made_by", b"mode_by"), ("accounts.jsonl", b"admin", b"owner"), ("audit.jsonl", b"\n", b"\n\n")],
)
def test_no_word_is_another(tmp_path, written, name, old, new):
    with pytest.raises(StoreError, match="is damaged"):
        restore(changed(written[0], name, old, new), tmp_path / "into")
    assert not (tmp_path / "into").exists()


def test_of_a_newer_gpulse(tmp_path, written, monkeypatch):
    monkeypatch.setattr(migrations, "HEAD", "0004")
    with pytest.raises(StoreError, match=r"all\.gpulse was written by a newer gpulse .* version 0006.*upgrade"):
        restore(written[0], tmp_path / "into")


def test_of_an_older_gpulse(tmp_path, bare_url, monkeypatch):
    """The tables were fewer then; what was in them is there, in those of today."""
    monkeypatch.setattr(migrations, "HEAD", "0002")
    tables = [one for one in backup.METADATA.sorted_tables if one.name in ("hub", "accounts", "audit", "tokens")]
    with Records(tmp_path / "old") as records:
        records.write(lambda one: one.execute(text("UPDATE hub SET id = 'old'"))).result()
        with monkeypatch.context() as patch:
            patch.setattr(backup, "METADATA", type("Older", (), {"sorted_tables": tables}))
            back_up(records, tmp_path / "old.gpulse")
    monkeypatch.setattr(migrations, "HEAD", "0006")
    restore(tmp_path / "old.gpulse", tmp_path / "new", bare_url)
    with Records(tmp_path / "new", bare_url) as records:
        assert records.read(migrations.version).result() == "0006"
        assert everything(records)["hub"] == [("old", 0)]


def test_not_where_there_are_records_already(tmp_path, records_url, written):
    with Records(tmp_path, records_url) as records:
        fill(records)
        before = everything(records)
    with pytest.raises(StoreError, match=r"has records already; .*--replace"):
        restore(written[0], tmp_path, records_url)
    assert found(tmp_path, records_url) == before
    aside = restore(written[0], tmp_path, records_url, replace=True)
    assert found(tmp_path, records_url) == written[1] != before
    assert stat.S_IMODE(aside.stat().st_mode) == 0o600
    if records_url is None:
        (tmp_path / "again").mkdir()
        aside.rename(tmp_path / "again" / "gpulse.db")
    else:
        restore(aside, tmp_path / "again")
    assert found(tmp_path / "again") == before


def test_not_where_somebody_uses_them(tmp_path, records_url, written):
    with Records(tmp_path, records_url) as records:
        before = everything(records)
        with pytest.raises(StoreError, match="is in use by a running gpulse; stop"):
            restore(written[0], tmp_path, records_url, replace=True)
        assert everything(records) == before
    restore(written[0], tmp_path, records_url, replace=True)
    assert found(tmp_path, records_url) == written[1]


def test_nobody_uses_them_meanwhile(tmp_path, records_url, written, monkeypatch):
    tried = []
    real = BackupFile.rows

    def rows(self, table):
        with pytest.raises(StoreError, match=r"a backup is being restored in .*; wait"):
            Records(tmp_path, records_url)
        tried.append(table.name)
        return real(self, table)

    monkeypatch.setattr(BackupFile, "rows", rows)
    restore(written[0], tmp_path, records_url, replace=True)
    assert len(tried) > 5
    assert found(tmp_path, records_url) == written[1]


def test_in_the_place_of_a_damaged_one(tmp_path, written):
    (tmp_path / "gpulse.db").write_bytes(b"no database at all" * 300)
    aside = restore(written[0], tmp_path, replace=True)
    assert aside.read_bytes() == b"no database at all" * 300
    assert found(tmp_path) == written[1]


def test_what_fails_changes_nothing(tmp_path, records_url, written, monkeypatch):
    with Records(tmp_path, records_url) as records:
        fill(records)
        before = everything(records)
    files = {path.name for path in tmp_path.iterdir()}
    real = BackupFile.rows

    def rows(self, table):
        if table.name == "audit":
            raise StoreError("enough")
        return real(self, table)

    monkeypatch.setattr(BackupFile, "rows", rows)
    with pytest.raises(StoreError, match="enough"):
        restore(written[0], tmp_path, records_url, replace=True)
    assert found(tmp_path, records_url) == before
    assert {path.name for path in tmp_path.iterdir() if not path.name.startswith("before-")} == files


def test_by_the_commands(tmp_path, written, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = CliRunner()
    for folder in ("a", "b"):
        into = run.invoke(app, ["restore", str(written[0]), "--data", folder])
        assert (into.exit_code, into.stdout) == (0, f"restored from {written[0]}\n")
    out = run.invoke(app, ["backup", "new.gpulse", "--data", "a"])
    assert (out.exit_code, out.stdout) == (0, f"{sum(map(len, written[1].values()))} rows in new.gpulse\n")
    again = run.invoke(app, ["restore", "new.gpulse", "--data", "b"])
    assert (again.exit_code, "has records already" in again.stderr) == (2, True)
    again = run.invoke(app, ["restore", "new.gpulse", "--data", "b", "--replace"])
    assert (again.exit_code, "the records from before are in b/gpulse.db.before-" in again.stdout) == (0, True)
    assert found(Path("b")) == written[1]
    none = run.invoke(app, ["backup", "x.gpulse", "--data", "nowhere"])
    assert (none.exit_code, "there are no records in nowhere" in none.stderr) == (2, True)
    assert not Path("nowhere").exists()


def test_by_the_settings(tmp_path, written, bare_postgres_url, monkeypatch):
    """From a file to a server: in the settings, beside them, and in the environment."""
    monkeypatch.chdir(tmp_path)
    run = CliRunner()
    Path("url").write_text(bare_postgres_url + "\n", "utf-8")
    Path("gpulse.toml").write_text('[store]\nurl_file = "url"\n', "utf-8")
    assert run.invoke(app, ["restore", str(written[0]), "--data", "data"]).exit_code == 0
    assert found(tmp_path, bare_postgres_url) == written[1]
    listed = run.invoke(app, ["user", "list", "--data", "data"]).stdout
    assert ("ann" in listed, "bob" in listed) == (True, True)
    assert run.invoke(app, ["token", "create", "gpu77", "--data", "data"]).exit_code == 0
    Path("gpulse.toml").unlink()
    monkeypatch.setenv("GPULSE_STORE_URL", bare_postgres_url)
    assert "gpu77" in run.invoke(app, ["token", "list", "--data", "data"]).stdout
    assert run.invoke(app, ["backup", "new.gpulse", "--data", "data"]).exit_code == 0
    monkeypatch.delenv("GPULSE_STORE_URL")
    assert not Path("data").exists()
    assert run.invoke(app, ["restore", "new.gpulse", "--data", "data"]).exit_code == 0
    assert "gpu77" in run.invoke(app, ["token", "list", "--data", "data"]).stdout
    with sqlite3.connect("data/gpulse.db") as driver:
        assert driver.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    driver.close()
    assert time.time() - BackupFile(Path("new.gpulse")).head.made_at < 60
