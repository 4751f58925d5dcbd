"""Keys, calendars, links and tokens are made at a pace: each leaves rows that are kept for long."""

import pytest

from gpulse.auth.pace import Pace
from gpulse.errors import AccountError


def refusal(pace, who):
    with pytest.raises(AccountError) as caught:
        pace.take(who)
    return caught.value.status, caught.value.code, caught.value.retry_seconds


def test_some_at_once_then_one_after_the_other(clock):
    pace = Pace(5, 10.0, clock)
    for _ in range(5):
        pace.take("ann")
    assert refusal(pace, "ann") == (429, "too_fast", 10)
    pace.take("bob")
    clock.now += 9
    assert refusal(pace, "ann") == (429, "too_fast", 1)
    clock.now += 1
    pace.take("ann")
    assert refusal(pace, "ann") == (429, "too_fast", 10)
    clock.now += 10_000
    for _ in range(5):
        pace.take("ann")
    assert refusal(pace, "ann") == (429, "too_fast", 10)


def test_what_is_known_is_bounded(clock):
    pace = Pace(5, 10.0, clock)
    for number in range(20_000):
        pace.take(f"{number}")
    assert len(pace._until) == 10_000


def test_keys_made_and_revoked(directory, doing, bob, ann):
    """By one account, whatever it makes; nobody else waits, and nobody is kept from revoking."""
    for _ in range(200):
        key = doing(directory.keys.create(bob.id, "x", ["read"]))
        doing(directory.keys.revoke(key.split("_")[1]))
    for made in (
        lambda: directory.keys.create(bob.id, "x", ["read"]),
        lambda: directory.feeds.make(bob.id, "mine"),
        lambda: directory.links.make(bob.id),
    ):
        with pytest.raises(AccountError) as caught:
            doing(made())
        assert (caught.value.status, caught.value.code) == (429, "too_fast")
        assert 1 <= caught.value.retry_seconds <= 18
    doing(directory.keys.create(ann.id, "x", ["read"]))
    assert doing(directory.keys.revoke_all(bob.id)) == 0


def test_tokens_traded_again_and_again(records, doing, clock):
    from gpulse.auth.tokens import Tokens

    tokens = Tokens(records, clock)
    join = tokens.check(tokens.create_join("gpu[1-2]", clock.now + 3600, replace=True))
    for _ in range(10):
        doing(tokens.trade(join, "gpu1"))
    with pytest.raises(AccountError) as caught:
        doing(tokens.trade(join, "gpu1"))
    assert caught.value.code == "too_fast"
    doing(tokens.trade(join, "gpu2"))
