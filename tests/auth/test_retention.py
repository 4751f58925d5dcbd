"""A clock that jumps erases nothing: sessions, keys and the audit log stay."""

import pytest
from sqlalchemy import func, select

from gpulse.auth.directory import Directory
from gpulse.auth.passwords import Passwords
from gpulse.errors import SignInRefused
from gpulse.store import Records
from gpulse.store.audit import audit
from gpulse.store.keys import keys
from gpulse.store.links import links
from gpulse.store.sessions import sessions
from tests.auth.conftest import QUICK

DAY = 86400.0


@pytest.fixture
def unguarded(records, clock):
    """As the hub makes it, but for the clock, which the test sets."""
    return Directory(records, clock, passwords=Passwords(QUICK))


def left(folder, records_url):
    """How many rows another process finds in the database."""
    tables = (sessions, keys, links, audit)
    with Records(folder, records_url) as opened:
        return opened.read(
            lambda one: {
                table.name: one.execute(select(func.count()).select_from(table)).scalar_one() for table in tables
            }
        ).result()


def test_eight_hundred_days_for_three_seconds(unguarded, doing, clock, folder, records_url):
    ann = doing(unguarded.accounts.add("ann", "admin", "correct horse"))
    begun = doing(unguarded.sessions.begin(ann.id, "", ""))
    key = doing(unguarded.keys.create(ann.id, "x", ["read"]))
    doing(unguarded.links.make(ann.id))
    before = left(folder, records_url)
    assert before == {"sessions": 1, "keys": 1, "links": 1, "audit": 4}
    clock.now += 800 * DAY
    for _ in range(6):
        clock.now += 0.5
        doing(unguarded.refresh())
    doing(unguarded.links.make(ann.id))
    clock.now -= 800 * DAY
    doing(unguarded.refresh())
    assert left(folder, records_url) == {**before, "links": 2, "audit": 5}
    assert unguarded.sessions.check(*begun).name == "ann"
    assert unguarded.keys.check(key).name == "ann"


def test_with_the_clock_of_the_hub_nobody_is_even_signed_out(records, clock, doing):
    from gpulse.steady_clock import SteadyClock

    boot = [100.0]

    def go(seconds):
        clock.now += seconds
        boot[0] += seconds
        hub._clock()

    hub = Directory(records, SteadyClock(clock, lambda: boot[0]), passwords=Passwords(QUICK))
    ann = doing(hub.accounts.add("ann", "admin", "correct horse"))
    begun = doing(hub.sessions.begin(ann.id, "", ""))
    key = doing(hub.keys.create(ann.id, "x", ["read"]))
    for _ in range(6):
        clock.now += 800 * DAY
        go(0.5)
        assert hub.sessions.goes_on(begun.cookie)
        assert hub.keys.check(key).name == "ann"
        clock.now -= 800 * DAY
        go(0.5)
        doing(hub.refresh())
    # Days that really go by do end them, and in the end remove them.
    for _ in range(98 * 24):
        go(3600)
    assert not hub.sessions.goes_on(begun.cookie)
    with pytest.raises(SignInRefused, match="at its end"):
        hub.keys.check(key)
    doing(hub.refresh())
    assert len(hub._known.sessions) == 0
    assert len(hub._known.keys) == 1
