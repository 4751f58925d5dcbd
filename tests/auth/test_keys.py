"""Keys for programs: made, checked, used, revoked; and the command line's own."""

import hmac

import pytest

from gpulse.auth import secret_text
from gpulse.auth.directory import Directory
from gpulse.auth.identity import Identity
from gpulse.errors import AccountError, SignInRefused
from gpulse.store import Records

DAY = 86400.0


@pytest.fixture
def key(directory, doing, bob):
    return doing(directory.keys.create(bob.id, "backup script", ["write", "read"]))


def refused(work, *arguments):
    with pytest.raises(SignInRefused) as caught:
        work(*arguments)
    return caught.value.status, caught.value.code


def test_whose_it_is(directory, bob, key):
    assert key.startswith("gpk_")
    identity = directory.keys.check(key)
    assert identity == Identity("bob", "member", bob.id, "key", frozenset({"read", "write"}), key.split("_")[1])
    assert directory.current(identity) == identity


def test_what_is_refused_and_why(directory, doing, clock, bob, key):
    other = secret_text.make("gpk")[0]
    mixed = "_".join([*key.split("_")[:2], other.split("_")[2]])
    cookie, page_key = doing(directory.sessions.begin(bob.id, "", ""))
    for wrong in ("", "x", key[:-1], key + "\n", key.upper(), cookie, page_key):
        assert refused(directory.keys.check, wrong) == (401, "key_malformed")
    for wrong in (other, mixed, cookie.replace("gps", "gpk"), page_key.replace("gpp", "gpk")):
        assert refused(directory.keys.check, wrong) == (401, "key_unknown")
    short = doing(directory.keys.create(bob.id, "x", ["read"], clock.now + 10))
    identity = directory.keys.check(short)
    clock.now += 10
    assert refused(directory.keys.check, short) == (401, "key_expired")
    assert directory.current(identity) is None
    assert doing(directory.keys.revoke(key.split("_")[1])).state == "revoked"
    assert refused(directory.keys.check, key) == (401, "key_revoked")


def test_secrets_are_compared_in_constant_time(directory, key, monkeypatch):
    asked = []
    real = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda one, two: asked.append((one, two)) or real(one, two))
    directory.keys.check(key)
    refused(directory.keys.check, secret_text.make("gpk")[0])
    assert [(len(one), len(two)) for one, two in asked] == [(32, 32)] * 2


def test_only_its_owner_revokes_it(directory, doing, ann, bob, key):
    with pytest.raises(AccountError, match="there is no key"):
        doing(directory.keys.revoke(key.split("_")[1], ann.id))
    directory.keys.check(key)
    doing(directory.keys.revoke(key.split("_")[1], bob.id))
    for gone in (key.split("_")[1], "0" * 12):
        with pytest.raises(AccountError) as caught:
            doing(directory.keys.revoke(gone, bob.id))
        assert (caught.value.status, caught.value.code) == (404, "key_unknown")


def test_revoked_by_another_process(directory, others, doing, key):
    identity = directory.keys.check(key)
    doing(others.refresh())
    doing(others.keys.revoke(identity.credential))
    doing(directory.refresh())
    assert directory.current(identity) is None
    assert refused(directory.keys.check, key) == (401, "key_revoked")


@pytest.mark.parametrize(
    ("label", "scopes", "seconds", "code"),
    [
        ("", ["read"], 10, "bad_label"),
        (" \n", ["read"], 10, "bad_label"),
        ("x", [], 10, "bad_scope"),
        ("x", ["root"], 10, "bad_scope"),
        ("x", ["read", ""], 10, "bad_scope"),
        ("x", ["read"], 0, "bad_expiry"),
        ("x", ["read"], -1, "bad_expiry"),
        ("x", ["read"], float("inf"), "bad_expiry"),
        ("x", ["read"], float("nan"), "bad_expiry"),
        ("x", ["read"], 402 * DAY, "bad_expiry"),
    ],
)
def test_keys_that_cannot_be(directory, doing, clock, bob, label, scopes, seconds, code):
    with pytest.raises(AccountError) as caught:
        doing(directory.keys.create(bob.id, label, scopes, clock.now + seconds))
    assert (caught.value.status, caught.value.code) == (400, code)
    assert directory.keys.list(bob.id) == []


def test_no_more_than_a_hundred(directory, doing, clock, bob):
    for number in range(100):
        doing(directory.keys.create(bob.id, f"k{number}", ["read"], clock.now + 5))
    with pytest.raises(AccountError, match="there are 100 keys already; revoke one first"):
        doing(directory.keys.create(bob.id, "x", ["read"]))
    clock.now += 5
    assert doing(directory.keys.create(bob.id, "x", ["read"]))


def test_the_list_has_last_use_and_no_secret(directory, doing, clock, ann, bob, key):
    (view,) = directory.keys.list(bob.id)
    assert (view.label, view.scopes, view.state, view.used_at) == ("backup script", ["read", "write"], "live", None)
    clock.now += 5
    directory.keys.check(key)
    assert directory.keys.list(bob.id)[0].used_at == clock.now
    clock.now += 59
    directory.keys.check(key)
    assert directory.keys.list(bob.id)[0].used_at == clock.now - 59
    clock.now += 1
    directory.keys.check(key)
    doing(directory.keys.create(bob.id, f"pasted {key}", ["metrics"], clock.now + 9))
    listed = directory.keys.list(bob.id)
    assert [(one.used_at, one.expires_at) for one in listed] == [
        (None, clock.now + 9),
        (clock.now, listed[1].created_at + 90 * DAY),
    ]
    assert key.split("_")[2] not in repr(listed)
    assert directory.keys.list(ann.id) == []


def test_last_use_is_known_after_a_restart(directory, folder, records_url, doing, clock, bob, key):
    directory.keys.check(key)
    clock.now += 60
    doing(directory.refresh())
    with Records(folder, records_url) as records:
        assert Directory(records, clock).keys.list(bob.id)[0].used_at == clock.now - 60


def test_last_use_is_not_forgotten_when_it_is_revoked(directory, others, doing, clock, bob, key):
    directory.keys.check(key)
    doing(others.refresh())
    doing(others.keys.revoke(key.split("_")[1]))
    doing(directory.refresh())
    assert directory.keys.list(bob.id)[0].used_at == clock.now


def test_every_key_ends(directory, doing, clock, bob):
    """In 90 days where nobody says when, and in 400 at the latest."""
    usual = doing(directory.keys.create(bob.id, "x", ["read"]))
    longest = doing(directory.keys.create(bob.id, "x", ["read"], clock.now + 400 * DAY))
    clock.now += 90 * DAY - 1
    directory.keys.check(usual)
    clock.now += 1
    assert refused(directory.keys.check, usual) == (401, "key_expired")
    directory.keys.check(longest)


def test_all_of_an_account_at_once(directory, doing, ann, bob, key):
    another, of_ann = (doing(directory.keys.create(who.id, "x", ["read"])) for who in (bob, ann))
    assert doing(directory.keys.revoke_all(bob.id)) == 2
    for gone in (key, another):
        assert refused(directory.keys.check, gone) == (401, "key_revoked")
    directory.keys.check(of_ann)
    assert doing(directory.keys.revoke_all(bob.id)) == 0
    with pytest.raises(AccountError) as caught:
        doing(directory.keys.revoke_all("0" * 12))
    assert caught.value.code == "account_unknown"


def test_keys_rest_where_nobody_has_signed_in_for_long(directory, doing, clock, bob):
    """Of who signs in elsewhere: nobody tells the hub when they leave."""
    eve = doing(directory.accounts.upsert_external("proxy", "eve", "eve", "member"))
    hers = doing(directory.keys.create(eve.id, "x", ["read"], clock.now + 300 * DAY))
    identity = directory.keys.check(hers)
    clock.now += 80 * DAY
    doing(directory.accounts.upsert_external("proxy", "eve", "eve", "member"))
    clock.now += 80 * DAY
    directory.keys.check(hers)
    clock.now += 11 * DAY
    assert refused(directory.keys.check, hers) == (401, "key_rests")
    assert directory.current(identity) is None
    doing(directory.accounts.upsert_external("proxy", "eve", "eve", "member"))
    directory.keys.check(hers)
    # Of those whom the hub itself knows admins decide.
    lasting = doing(directory.keys.create(bob.id, "x", ["read"], clock.now + 300 * DAY))
    clock.now += 200 * DAY
    directory.keys.check(lasting)


def test_calendars_rest_as_keys_do(directory, doing, clock, bob):
    """They are read without a sign-in, too."""
    eve = doing(directory.accounts.upsert_external("proxy", "eve", "eve", "member"))
    hers, his = (doing(directory.feeds.make(who.id, "mine")) for who in (eve, bob))
    clock.now += 89 * DAY
    assert doing(directory.feeds.read(hers)).account == eve.id
    clock.now += 2 * DAY
    assert doing(directory.feeds.read(hers)) is None
    assert doing(directory.feeds.read(his)).account == bob.id, "of those whom the hub itself knows admins decide"
    doing(directory.accounts.upsert_external("proxy", "eve", "eve", "member"))
    assert doing(directory.feeds.read(hers)).account == eve.id
    doing(directory.accounts.disable(eve.id))
    assert doing(directory.feeds.read(hers)) is None
