"""Attempts to sign in: how many are free, and how long the next has to wait."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.auth.attempts import Attempts
from gpulse.errors import SignInRefused
from tests.auth.conftest import Clock


@pytest.fixture
def attempts(clock):
    return Attempts(clock)


def wait(attempts, name="ann", address="10.0.0.1"):
    """The seconds to wait; an attempt that has not to is counted, as one that failed."""
    try:
        attempts.begin(name, address)
    except SignInRefused as refused:
        assert (refused.status, refused.code) == (429, "too_many_attempts")
        assert f"wait {refused.retry_seconds} s" in refused.message
        return refused.retry_seconds
    return 0


def test_five_are_free_then_the_wait_grows(attempts, clock):
    assert [wait(attempts) for _ in range(5)] == [0] * 5
    waits = []
    for _ in range(10):
        waits.append(wait(attempts))
        clock.now += waits[-1] - 1
        assert wait(attempts) == 1
        clock.now += 1
        assert wait(attempts) == 0
    assert waits == [5, 10, 20, 40, 80, 160, 320, 640, 900, 900]


def test_whoever_asks_during_the_wait_is_refused_from_anywhere(attempts):
    for number in range(5):
        wait(attempts, address=f"10.0.0.{number}")
    assert wait(attempts, "ANN", "10.9.9.9") == 5
    assert wait(attempts, "bob", "10.9.9.9") == 0


def test_by_address_whatever_the_names(attempts):
    assert [wait(attempts, f"user{number}") for number in range(20)] == [0] * 20
    assert wait(attempts, "ann") == 5
    assert wait(attempts, "") == 5
    assert wait(attempts, "ann", "10.0.0.2") == 0


def test_links_count_for_the_address_alone(attempts):
    for _ in range(20):
        assert wait(attempts, "") == 0
    assert wait(attempts, "") == 5
    assert wait(attempts, "", "10.0.0.2") == 0


def test_a_success_clears_the_account_and_not_the_address(attempts):
    for number in range(16):
        wait(attempts, f"user{number}")
    for _ in range(3):
        for _ in range(3):
            assert wait(attempts, "ann", "10.0.0.2") == 0
        assert wait(attempts, "ann") == 0
        attempts.succeeded("Ann", "10.0.0.1")
    # What succeeded was no failure; the others stay.
    for number in range(4):
        assert wait(attempts, f"other{number}") == 0
    assert wait(attempts, "ann") == 5


def test_an_address_is_forgiven(attempts, clock):
    """Who shares it with somebody who guesses waits for a minute at most, and has it to themselves later."""
    for number in range(200):
        while seconds := wait(attempts, f"user{number}"):
            assert seconds <= 60
            clock.now += seconds
    # One of them is forgotten each minute.
    clock.now += 5 * 60
    assert wait(attempts, "early") == 0
    clock.now += 25 * 60
    assert [wait(attempts, f"late{number}") for number in range(21)] == [0] * 20 + [5]


def test_many_at_once_are_many(attempts):
    """None of them has failed yet when the next begins."""
    assert sum(wait(attempts) == 0 for _ in range(100)) == 5


def test_forgotten_after_an_hour(attempts, clock):
    for _ in range(5):
        wait(attempts)
    clock.now += 3600
    assert [wait(attempts) for _ in range(5)] == [0] * 5
    assert wait(attempts) == 5


def test_memory_has_an_end(clock):
    attempts = Attempts(clock, most=100)
    for _ in range(5):
        wait(attempts, "ann", "10.0.0.1")
    for number in range(99):
        clock.now += 0.01
        wait(attempts, f"user{number}" * 1000, f"10.1.{number}.1")
    # Those who failed last are kept.
    assert wait(attempts, "ann", "10.9.9.9") > 0
    for number in range(500):
        wait(attempts, f"user{number}", f"10.2.{number}.1")
    assert len(attempts._names._counts) == len(attempts._addresses._counts) == 100


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("fe80::1%eth0", "fe80::2", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("127.0.0.1", "127.44.55.66", True),
        ("127.0.0.1", "::1", True),
        ("::ffff:127.0.0.9", "127.0.0.1", True),
        ("unix", "unix", True),
    ],
)
def test_whose_address_it_is(attempts, one, two, same):
    for number in range(20):
        wait(attempts, f"user{number}", one)
    assert (wait(attempts, "ann", two) > 0) is same


@given(
    st.lists(st.tuples(st.sampled_from(["ann", "bob", ""]), st.sampled_from("ab"), st.booleans(), st.integers(0, 2000)))
)
def test_nobody_gets_more_than_allowed(steps):
    """In any hour no account is tried more often than the waits allow, unless its owner signed in."""
    clock = Clock()
    attempts = Attempts(clock)
    tried: dict[str, list[float]] = {}
    for name, address, right, seconds in steps:
        clock.now += seconds
        if wait(attempts, name, address):
            continue
        if right:
            attempts.succeeded(name, address)
            tried.pop(name, None)
        elif name:
            tried[name] = [one for one in tried.get(name, []) if one > clock.now - 3600] + [clock.now]
            # Five, and the sixth to thirteenth after waits of 5, 10, … 640 seconds, then one each 900.
            assert len(tried[name]) <= 5 + 8 + 3
