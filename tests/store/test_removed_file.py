"""The database is removed or replaced under a running hub: it is noticed, and nothing is written into nothing."""

import asyncio

import pytest

from gpulse.auth.directory import Directory
from gpulse.auth.passwords import Passwords
from gpulse.auth.upgrades import Upgrades, lost_records
from gpulse.errors import StoreError
from gpulse.store import Records
from tests.auth.conftest import QUICK
from tests.hub.running import RunningHub

WORDS = "was removed or replaced while gpulse was using it"


@pytest.mark.parametrize("replaced", [False, True])
def test_what_was_told_is_kept_or_refused(tmp_path, replaced):
    path, aside = tmp_path / "gpulse.db", tmp_path / "aside.db"
    with Records(tmp_path) as records:
        directory = Directory(records, passwords=Passwords(QUICK))
        asyncio.run(directory.accounts.add("ann", "admin"))
        path.rename(aside)
        if replaced:
            (tmp_path / "other").mkdir()
            Records(tmp_path / "other").close()
            (tmp_path / "other/gpulse.db").rename(path)
        with pytest.raises(StoreError, match=WORDS):
            asyncio.run(directory.accounts.add("bob", "member"))
        assert WORDS in asyncio.run(directory.refresh())
        assert directory.accounts.by_name("ann"), "what is in memory goes on"
        # It is put back.
        aside.replace(path)
        asyncio.run(directory.accounts.add("bob", "member"))
    with Records(tmp_path) as records:
        assert [one.name for one in Directory(records).accounts.list()] == ["ann", "bob"]


def test_the_hub_says_so(tmp_path):
    with RunningHub("demo", "--nodes", "1", "--data", str(tmp_path)) as hub:
        hub.until(lambda: hub.get("api/v1/summary")["nodes"] == 1)
        (path,) = tmp_path.rglob("gpulse.db")
        path.unlink()
        hub.until(lambda: WORDS in hub.said())


def test_an_empty_database_beside_an_old_key(tmp_path):
    with Records(tmp_path) as records:
        assert lost_records(records, tmp_path) == "", "a folder that is new"
        Upgrades(tmp_path)
        assert "is empty, but" in lost_records(records, tmp_path)
        asyncio.run(Directory(records).accounts.add("ann", "admin"))
        assert lost_records(records, tmp_path) == ""


def test_the_hub_warns_of_lost_records(tmp_path):
    Upgrades(tmp_path)
    with RunningHub("up", "--no-local", "--data", str(tmp_path), directory=tmp_path) as hub:
        hub.until(lambda: "restore a backup" in hub.said())
