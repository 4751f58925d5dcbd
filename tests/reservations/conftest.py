"""Reservations on a database of their own, of each kind, with a clock that the test moves."""

import asyncio

import pytest

from gpulse.reservations.table import Reservations
from gpulse.store import Records
from tests.reservations.wanting import NOW


class Clock:
    """Time goes on when the test says so."""

    def __init__(self):
        self.now = NOW

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def doing():
    """Waits for what takes a while: `doing(table.make(…))`."""
    with asyncio.Runner() as runner:
        yield runner.run


@pytest.fixture
def records(tmp_path, records_url):
    with Records(tmp_path, records_url) as opened:
        yield opened


@pytest.fixture
def table(records, clock):
    return Reservations(records, clock)


@pytest.fixture
def others(tmp_path, records_url, clock, records):
    """The same as another process sees it."""
    assert records
    with Records(tmp_path, records_url) as opened:
        yield Reservations(opened, clock)
