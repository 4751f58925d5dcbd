"""A directory of accounts on a database of its own, with a clock that the test moves."""

import asyncio
import shutil

import pytest
from argon2 import PasswordHasher

from gpulse.auth.directory import Directory
from gpulse.auth.passwords import Passwords
from gpulse.store import Records

# As slow as it may be fast: the real one takes 64 MiB.
QUICK = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


class Clock:
    """Time goes on when the test says so."""

    def __init__(self):
        self.now = 1_800_000_000.0

    def __call__(self):
        return self.now


class Doing:
    """A directory whose changes are waited for: `doing(directory.accounts.add("ann", "admin"))`."""

    def __init__(self):
        self._runner = asyncio.Runner()

    def __call__(self, work):
        return self._runner.run(work)

    def close(self):
        self._runner.close()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def doing():
    doing = Doing()
    yield doing
    doing.close()


@pytest.fixture(scope="session")
def empty_folder(tmp_path_factory):
    """Made once: the steps to the newest tables take a while."""
    folder = tmp_path_factory.mktemp("empty")
    Records(folder).close()
    return folder


@pytest.fixture
def folder(tmp_path, empty_folder):
    return shutil.copytree(empty_folder, tmp_path / "data")


@pytest.fixture
def records(folder, records_url):
    with Records(folder, records_url) as opened:
        yield opened


@pytest.fixture
def directory(records, clock):
    return Directory(records, clock, passwords=Passwords(QUICK), for_deleting=clock)


@pytest.fixture
def others(folder, records_url, clock):
    """The same as another process sees it."""
    with Records(folder, records_url) as opened:
        yield Directory(opened, clock, passwords=Passwords(QUICK), for_deleting=clock)


@pytest.fixture
def ann(directory, doing):
    """An admin."""
    return doing(directory.accounts.add("ann", "admin", "correct horse"))


@pytest.fixture
def bob(directory, doing, ann):
    """Somebody who is not the last admin."""
    assert ann.role == "admin"
    return doing(directory.accounts.add("bob", "member", "battery staple"))
