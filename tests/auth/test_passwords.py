"""Passwords: what is one, what a guess costs, and how many are tried at once."""

import asyncio
import threading

import pytest
from argon2 import PasswordHasher

from gpulse.auth import hash_queue
from gpulse.auth.passwords import Passwords
from gpulse.errors import AccountError, SignInRefused
from tests.auth.conftest import QUICK


class Watched:
    """A hasher that remembers what it was asked to compare with."""

    def __init__(self):
        self.asked = []

    def __getattr__(self, name):
        return getattr(QUICK, name)

    def verify(self, encoded, password):
        self.asked.append(encoded)
        return QUICK.verify(encoded, password)


def test_the_real_one_is_argon2id_with_what_a_guess_should_cost():
    encoded = asyncio.run(Passwords().hash("correct horse", "ann"))
    assert encoded.startswith("$argon2id$v=19$m=65536,t=3,p=1$")
    assert asyncio.run(Passwords().verify(encoded, "correct horse"))


@pytest.mark.parametrize(
    ("password", "words"),
    [
        ("", "fewer than 10"),
        ("123456789", "fewer than 10"),
        ("x" * 1025, "more than 1024"),
        ("ann-of-cleves", "is the account's name"),
        ("ANN-OF-CLEVES", "is the account's name"),
        ("\ud800" * 12, "is no text"),
    ],
)
def test_what_is_no_password(directory, doing, password, words):
    with pytest.raises(AccountError, match=words) as caught:
        doing(directory.accounts.add("ann-of-cleves", "admin", password))
    assert (caught.value.status, caught.value.code) == (400, "bad_password")
    assert directory.accounts.list() == []


@pytest.mark.parametrize("password", ["1234567890", "x" * 1024, "пароль пароль", "\0" * 10, "u\u0308" * 10])
def test_what_is_one(directory, doing, password):
    doing(directory.accounts.add("ann", "admin", password))
    assert doing(directory.accounts.check_password("ANN", password)).name == "ann"


def test_however_a_keyboard_composes_it(directory, doing):
    doing(directory.accounts.add("ann", "admin", "schlu\u0308ssel"))
    assert doing(directory.accounts.check_password("ann", "schl\u00fcssel")).name == "ann"


def refusal(doing, directory, name, password):
    with pytest.raises(SignInRefused) as caught:
        doing(directory.accounts.check_password(name, password))
    return caught.value.status, caught.value.code, caught.value.message, caught.value.detail


@pytest.mark.usefixtures("ann")
def test_nobody_learns_which_accounts_there_are(directory, doing, monkeypatch):
    watched = Watched()
    monkeypatch.setattr(directory.accounts._passwords, "_hasher", watched)
    link_only = doing(directory.accounts.add("eve", "viewer"))
    answers = {
        refusal(doing, directory, name, password)
        for name, password in [
            ("ann", "wrong"), ("nobody", "wrong"), (link_only.name, "wrong"), ("", ""), ("ann", "\ud800"),
            ("a\0b", "x" * 100_000),
        ]
    }  # fmt: skip
    assert len(answers) == 1
    # A hash of the same cost was computed each time.
    assert len(watched.asked) == 6
    assert {encoded.rsplit("$", 2)[0] for encoded in watched.asked} == {"$argon2id$v=19$m=8,t=1,p=1"}
    assert {len(encoded) for encoded in watched.asked} == {len(QUICK.hash("x"))}


def test_a_hash_that_is_none_lets_nobody_in(doing):
    assert not doing(Passwords(QUICK).verify("nonsense", "correct horse"))


def test_a_new_password_ends_what_the_old_one_began(directory, doing, bob):
    kept, gone = (doing(directory.sessions.begin(bob.id, "", "")) for _ in range(2))
    link = doing(directory.links.make(bob.id))
    key = doing(directory.keys.create(bob.id, "x", ["read"]))
    doing(directory.accounts.set_password(bob.id, "another password", directory.sessions.check(*kept).credential))
    assert directory.sessions.check(*kept).name == "bob"
    assert directory.sessions.check(*gone) is None
    assert directory.keys.check(key).name == "bob"
    with pytest.raises(SignInRefused):
        doing(directory.links.redeem(link))
    assert refusal(doing, directory, "bob", "battery staple")[1] == "wrong_password"
    assert doing(directory.accounts.check_password("bob", "another password")).id == bob.id


def test_a_new_password_takes_the_keys_along_if_asked(directory, doing, ann, bob):
    mine, hers = (doing(directory.keys.create(who.id, "x", ["read"])) for who in (bob, ann))
    doing(directory.accounts.set_password(bob.id, "another password", revoke_keys=True))
    with pytest.raises(SignInRefused, match="was revoked"):
        directory.keys.check(mine)
    assert directory.keys.check(hers).name == "ann"
    assert doing(directory.audit.entries())[0].detail == {"keys": 1, "calendars": 0}


def test_one_set_by_another_process_counts_at_once(directory, others, doing, bob):
    doing(others.refresh())
    doing(others.accounts.set_password(bob.id, "another password"))
    doing(others.accounts.add("eve", "viewer", "evening star"))
    assert refusal(doing, directory, "bob", "battery staple")[1] == "wrong_password"
    assert doing(directory.accounts.check_password("eve", "evening star")).name == "eve"


class Slow(PasswordHasher):
    """Takes until it is told to end."""

    def __init__(self):
        super().__init__(time_cost=1, memory_cost=8, parallelism=1)
        self.go, self.lock = threading.Event(), threading.Lock()
        self.running = self.most = 0

    def verify(self, hash, password):  # noqa: A002 - the name it has in the class above
        with self.lock:
            self.running += 1
            self.most = max(self.most, self.running)
        assert self.go.wait(60)
        with self.lock:
            self.running -= 1
        return super().verify(hash, password)


def test_two_at_once_and_a_queue_that_ends():
    slow = Slow()
    guarded = Passwords(slow)
    room = hash_queue.AT_ONCE + hash_queue.WAITING
    encoded = QUICK.hash("something else")

    async def crowd():
        asked = [asyncio.create_task(guarded.verify(encoded, "x")) for _ in range(room)]
        await asyncio.sleep(0)
        with pytest.raises(SignInRefused) as caught:
            await guarded.verify(encoded, "x")
        assert (caught.value.status, caught.value.code, caught.value.retry_seconds) == (503, "busy", 5)
        # Who goes makes room, but for those a thread has begun with.
        for task in asked[2:]:
            task.cancel()
        await asyncio.wait(asked[2:])
        later = asyncio.create_task(guarded.verify(encoded, "x"))
        slow.go.set()
        assert await asyncio.gather(*asked[:2], later) == [False] * 3

    asyncio.run(crowd())
    assert slow.most <= 2
    guarded.close()
    assert guarded._queue.asked == 0


class Ordered(Slow):
    """Remembers in which order it was asked for what, by the text of the passwords."""

    def __init__(self):
        super().__init__()
        self.order = []

    def verify(self, hash, password):  # noqa: A002 - the name it has in the class above
        with self.lock:
            self.order.append(password.decode())
        return super().verify(hash, password)


def computed(*asked):
    """The order of the hashes that were computed, and what became of each: (password, hash, address)."""
    ordered = Ordered()
    guarded = Passwords(ordered)

    async def crowd():
        tasks = []
        for password, encoded, address in asked:
            tasks.append(asyncio.create_task(guarded.verify(encoded, password, address)))
            # Each is in the queue before the next comes; the first two are with the threads.
            await asyncio.sleep(0)
            while len(ordered.order) < min(len(tasks), hash_queue.AT_ONCE):
                await asyncio.sleep(0.001)
        ordered.go.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    became = asyncio.run(crowd())
    guarded.close()
    assert guarded._queue.asked == 0
    return ordered.order, became


def test_who_is_unknown_waits_in_the_same_queue_for_the_same_work():
    """Else the time of an answer would tell which names are accounts."""
    encoded = QUICK.hash("something else")
    known = computed(*((f"{number}", encoded, "a") for number in range(12)))
    unknown = computed(*((f"{number}", None, "a") for number in range(12)))
    mixed = computed(*((f"{number}", encoded if number % 3 else None, "a") for number in range(12)))
    for order, became in (known, unknown, mixed):
        # Two threads begin in turn, and may be seen in either order.
        assert all(abs(order.index(str(number)) - number) <= 1 for number in range(12)), order
        assert len(order) == 12
        assert became == [False] * 12


def test_one_address_keeps_no_other_waiting():
    """Whether it asks for accounts or for names that nobody has."""
    encoded = QUICK.hash("right")
    crowd = [(f"crowd {number}", None if number % 2 else encoded, "10.0.0.1") for number in range(100)]
    order, became = computed(*crowd, ("right", encoded, "10.0.0.2"))
    assert order.index("right") <= 4, "those that are being computed, and the next"
    assert became[-1] is True
    assert len(order) == hash_queue.AT_ONCE + hash_queue.WAITING
    refused = [number for number, one in enumerate(became) if isinstance(one, SignInRefused)]
    assert {became[number].code for number in refused} == {"busy"}
    # Whoever came last made room: nothing that is known of the names matters.
    assert refused == list(range(33, 100))
