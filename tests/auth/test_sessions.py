"""Sessions: begun, seen, ended, and at their end by themselves."""

import hmac

import pytest
from sqlalchemy import select

from gpulse.auth import secret_text
from gpulse.auth.directory import Directory
from gpulse.auth.identity import ALL_SCOPES, Identity
from gpulse.store import Records
from gpulse.store.tables import METADATA
from tests.auth.conftest import Clock

DAY = 86400


@pytest.fixture
def begun(directory, doing, bob):
    return doing(directory.sessions.begin(bob.id, "10.0.0.7", "Firefox"))


def listed(directory, account):
    return [one.id for one in directory.sessions.list(account.id)]


def test_who_has_signed_in(directory, bob, begun):
    identity = directory.sessions.check(*begun)
    assert identity == Identity("bob", "member", bob.id, "session", ALL_SCOPES, begun.cookie.split("_")[1])
    assert directory.current(identity) == identity
    (view,) = directory.sessions.list(bob.id)
    assert (view.id, view.address, view.browser) == (identity.credential, "10.0.0.7", "Firefox")


def test_a_new_id_each_time(directory, doing, bob):
    all_begun = {doing(directory.sessions.begin(bob.id, "", "")) for _ in range(5)}
    assert len({begun.cookie.split("_")[1] for begun in all_begun}) == 5
    assert {directory.sessions.check(*begun).name for begun in all_begun} == {"bob"}


def test_cookies_that_are_none(directory, doing, bob, begun):
    key = doing(directory.keys.create(bob.id, "x", ["read"]))
    other = secret_text.make("gps")[0]
    cookie, page_key = begun
    mixed = "_".join([*cookie.split("_")[:2], other.split("_")[2]])
    wrongs = ("", "x", cookie[:-1], cookie + "0", cookie.upper(), cookie + "\n", other, mixed, key, page_key)
    for wrong in (*wrongs, cookie.replace("gps", "gpk")):
        assert directory.sessions.check(wrong, page_key) is None
        assert not directory.sessions.goes_on(wrong)


def test_a_cookie_is_nobody_without_the_key_of_its_page(directory, doing, bob, clock, begun):
    """Every port of the hub's machine is sent the cookie, so it is not enough."""
    cookie, page_key = begun
    other = doing(directory.sessions.begin(bob.id, "", ""))
    key = doing(directory.keys.create(bob.id, "x", ["read"]))
    made_up = secret_text.make("gpp", cookie.split("_")[1])[0]
    wrongs = ("", "1", "x", cookie, cookie.replace("gps", "gpp"), other.page_key, made_up, key, page_key[:-1])
    clock.now += 3600
    for wrong in (*wrongs, page_key + "\n", page_key.upper()):
        assert directory.sessions.check(cookie, wrong) is None
    assert directory.sessions.check(other.cookie, page_key) is None
    assert directory.sessions.goes_on(cookie)
    # None of that was a use of it.
    assert directory.sessions.seen == {}
    assert directory.sessions.check(cookie, page_key).name == "bob"
    doing(directory.sessions.end_all(bob.id))
    assert not directory.sessions.goes_on(cookie)


def test_secrets_are_compared_in_constant_time(directory, begun, monkeypatch):
    asked = []
    real = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda one, two: asked.append((one, two)) or real(one, two))
    directory.sessions.check(*begun)
    directory.sessions.check(secret_text.make("gps")[0], secret_text.make("gpp")[0])
    assert [(len(one), len(two)) for one, two in asked] == [(32, 32)] * 4


def test_unused_for_a_fortnight(directory, clock, begun):
    for _ in range(4):
        clock.now += 14 * DAY - 1
        assert directory.sessions.check(*begun) is not None
    clock.now += 14 * DAY
    assert directory.sessions.check(*begun) is None


def test_used_for_a_quarter_of_a_year(directory, clock, bob, begun):
    began = clock.now
    while clock.now < began + 89 * DAY:
        clock.now += DAY
        assert directory.sessions.check(*begun) is not None
    assert directory.sessions.list(bob.id)[0].expires_at == began + 90 * DAY
    clock.now = began + 90 * DAY
    assert directory.sessions.check(*begun) is None
    assert directory.sessions.list(bob.id) == []


def test_the_limits_are_settings(records, doing, bob):
    clock = Clock()
    directory = Directory(records, clock, idle_seconds=10, session_seconds=25)
    begun = doing(directory.sessions.begin(bob.id, "", ""))
    identity = directory.sessions.check(*begun)
    clock.now += 9
    assert directory.current(identity) == identity
    clock.now += 1
    assert directory.current(identity) is None


def test_ended(directory, doing, ann, bob, begun):
    (session,) = listed(directory, bob)
    assert not doing(directory.sessions.end(session, ann.id))
    assert directory.sessions.check(*begun) is not None
    assert doing(directory.sessions.end(session, bob.id))
    assert directory.sessions.check(*begun) is None
    assert not doing(directory.sessions.end(session))
    assert not doing(directory.sessions.end("0" * 12))


def test_ended_everywhere(directory, doing, ann, bob, begun):
    all_begun = [begun, *(doing(directory.sessions.begin(bob.id, "", "")) for _ in range(3))]
    mine = doing(directory.sessions.begin(ann.id, "", ""))
    kept = directory.sessions.check(*all_begun[1]).credential
    assert doing(directory.sessions.end_all(bob.id, keep=kept)) == 3
    assert [directory.sessions.check(*one) is not None for one in all_begun] == [False, True, False, False]
    assert doing(directory.sessions.end_all(bob.id)) == 1
    assert doing(directory.sessions.end_all(bob.id)) == 0
    assert listed(directory, bob) == []
    assert directory.sessions.check(*mine).name == "ann"


def test_ended_by_a_clock_that_is_ahead(directory, others, doing, clock, bob, begun):
    doing(others.refresh())
    clock.now += 30
    doing(others.sessions.end_all(bob.id))
    clock.now -= 30
    doing(directory.refresh())
    assert directory.sessions.check(*begun) is None


def test_begun_in_one_process_and_ended_in_another(directory, others, doing, begun):
    assert others.sessions.check(*begun) is None
    doing(others.refresh())
    identity = others.sessions.check(*begun)
    doing(others.sessions.end(identity.credential))
    doing(directory.refresh())
    assert directory.current(identity) is None


def test_no_more_than_a_hundred(directory, doing, clock, bob):
    all_begun = []
    for _ in range(102):
        clock.now += 1
        all_begun.append(doing(directory.sessions.begin(bob.id, "", "")))
    assert [directory.sessions.check(*one) is not None for one in all_begun] == [False] * 2 + [True] * 100


def test_what_browsers_say_is_cut_and_cleaned(directory, doing, bob):
    doing(directory.sessions.begin(bob.id, "10.0.0.7\x1b[2J", "x" * 500 + "\n"))
    (view,) = directory.sessions.list(bob.id)
    assert (view.address, view.browser) == ("10.0.0.7 [2J", "x" * 200)


def kept_seen_at(folder, records_url, clock):
    with Records(folder, records_url) as records:
        directory = Directory(records, clock)
        return [one.seen_at for account in directory.accounts.list() for one in directory.sessions.list(account.id)]


def test_last_seen_is_kept_once_a_minute(directory, folder, records_url, doing, clock, begun):
    began = clock.now
    writes = []
    real = directory.note_uses

    async def note_uses():
        writes.append(clock.now - began)
        await real()

    directory.note_uses = note_uses
    for _ in range(150):
        clock.now += 1
        directory.sessions.check(*begun)
        doing(directory.refresh())
    assert writes == [60, 120]
    assert kept_seen_at(folder, records_url, clock) == [began + 120]
    assert directory.sessions.seen == {}


def test_last_seen_is_kept_at_the_end(directory, folder, records_url, doing, clock, begun):
    clock.now += 61
    directory.sessions.check(*begun)
    assert kept_seen_at(folder, records_url, clock) == [clock.now - 61]
    doing(directory.note_uses())
    assert kept_seen_at(folder, records_url, clock) == [clock.now]


def test_last_seen_is_not_forgotten_for_what_another_process_writes(directory, others, doing, clock, bob, begun):
    clock.now += 13 * DAY
    directory.sessions.check(*begun)
    doing(others.refresh())
    doing(others.sessions.end("0" * 12))
    doing(others.accounts.set_display(bob.id, "Bob"))
    doing(directory.refresh())
    clock.now += 2 * DAY
    assert directory.sessions.check(*begun) is not None


# By a way in which SQLite alone fails.
@pytest.mark.parametrize("records_url", ["sqlite"], indirect=True)
def test_what_could_not_be_kept_is_kept_later(directory, records, folder, records_url, doing, clock, begun):
    clock.now += 61
    directory.sessions.check(*begun)
    records.read(lambda one: one.exec_driver_sql("PRAGMA query_only = ON")).result()
    assert "it is not kept who was seen when" in doing(directory.refresh())
    records.read(lambda one: one.exec_driver_sql("PRAGMA query_only = OFF")).result()
    clock.now += 60
    assert doing(directory.refresh()) == ""
    assert kept_seen_at(folder, records_url, clock) == [clock.now - 60]


def test_what_is_long_over_is_removed(directory, others, records, doing, clock, bob):
    for _ in range(2):
        doing(directory.sessions.begin(bob.id, "", ""))
    doing(directory.keys.create(bob.id, "short", ["read"], clock.now + 5))
    revoked = doing(directory.keys.create(bob.id, "revoked", ["read"]))
    doing(directory.keys.revoke(revoked.split("_")[1]))
    doing(directory.keys.create(bob.id, "long", ["read"]))
    doing(directory.links.make(bob.id))
    doing(directory.audit.note("local: me", "", "x.y"))

    def counted():
        tables = [METADATA.tables[name] for name in ("sessions", "keys", "links", "audit")]
        return records.read(lambda one: [len(one.execute(select(table)).all()) for table in tables]).result()

    noted = counted()[3]
    assert counted() == [2, 3, 1, noted]
    clock.now += 20 * DAY
    assert doing(directory.refresh()) == ""
    assert counted() == [2, 3, 0, noted]
    clock.now += 2 * DAY
    doing(directory.refresh())
    assert counted() == [0, 3, 0, noted]
    clock.now += 70 * DAY
    doing(directory.refresh())
    assert counted() == [0, 1, 0, noted]
    assert [one.label for one in directory.keys.list(bob.id)] == ["long"]
    clock.now += 2 * 366 * DAY
    doing(directory.refresh())
    assert counted() == [0, 0, 0, 0]
    # A process that has not looked since finds what comes next.
    doing(others.refresh())
    new = doing(directory.sessions.begin(bob.id, "", ""))
    doing(others.refresh())
    assert others.sessions.check(*new).name == "bob"
