"""Passwords: what may be one, and their argon2id hashes, computed beside the loop and not too many at once."""

import asyncio
import base64
import secrets
import threading
import time
import unicodedata
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from gpulse.auth.account_names import folded
from gpulse.errors import AccountError, SignInRefused

T = TypeVar("T")
SHORTEST, LONGEST = 10, 1024
# A hash takes 64 MiB and a tenth of a second of one core: what attackers pay for each guess.
_HASHER = PasswordHasher(time_cost=3, memory_cost=65536, parallelism=1)
_AT_ONCE, _WAITING = 2, 32
_RETRY_SECONDS = 5
# How much the newest of the times that a decoy took counts in what those without one wait.
_NEWEST, _FIRST_SECONDS = 0.25, 0.1


class Passwords:
    def __init__(self, hasher: PasswordHasher = _HASHER) -> None:
        self._hasher = hasher
        self._decoy = _decoy(hasher)
        self._threads = ThreadPoolExecutor(_AT_ONCE, "gpulse-password")
        # Names that nobody has come in any number, from anywhere: they must not keep people from their turn.
        self._decoys = ThreadPoolExecutor(1, "gpulse-decoy")
        self._decoy_busy = False
        self._decoy_seconds = _FIRST_SECONDS
        self._lock = threading.Lock()
        self._asked = 0

    async def hash(self, password: str, name: str) -> str:
        """For an account of this name; AccountError where it is no good password."""
        good = _checked(password, name)
        return await self._aside(lambda: self._hasher.hash(good))

    async def verify(self, encoded: str | None, password: str) -> bool:
        """Takes as long without a hash, so that nobody learns which accounts there are."""
        if encoded is not None:
            return await self._aside(lambda: self._is(encoded, password))
        if self._decoy_busy:
            # As long as it would take, and no work: one decoy at a time, however many ask.
            await asyncio.sleep(self._decoy_seconds)
            return False
        self._decoy_busy = True
        future = self._decoys.submit(self._decoyed, password)
        future.add_done_callback(self._decoy_done)
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        self._threads.shutdown()
        self._decoys.shutdown()

    def _decoyed(self, password: str) -> bool:
        begun = time.monotonic()
        self._is(self._decoy, password)
        self._decoy_seconds += _NEWEST * (time.monotonic() - begun - self._decoy_seconds)
        return False

    def _decoy_done(self, _: "Future[bool]") -> None:
        self._decoy_busy = False

    def _is(self, encoded: str, password: str) -> bool:
        try:
            return self._hasher.verify(encoded, _normal(password))
        except (VerificationError, InvalidHashError):
            return False

    async def _aside(self, work: Callable[[], T]) -> T:
        if self._asked >= _AT_ONCE + _WAITING:
            raise SignInRefused(
                503, "busy", "too many people sign in at this moment", "try again in some seconds", _RETRY_SECONDS
            )
        with self._lock:
            self._asked += 1
        future = self._threads.submit(work)
        # Who asked may go; a thread that has begun works on, and counts until it is done.
        future.add_done_callback(self._done)
        return await asyncio.wrap_future(future)

    def _done(self, _: "Future[T]") -> None:
        with self._lock:
            self._asked -= 1


def _checked(password: str, name: str) -> bytes:
    """As it is hashed. The error never repeats it."""
    try:
        password.encode("utf-8")
    except UnicodeEncodeError:
        raise _bad("the password is no text") from None
    if len(password) < SHORTEST:
        raise _bad(f"the password has fewer than {SHORTEST} characters")
    if len(password) > LONGEST:
        raise _bad(f"the password has more than {LONGEST} characters")
    if folded(password) == folded(name):
        raise _bad("the password is the account's name")
    return _normal(password)


def _bad(why: str) -> AccountError:
    return AccountError(400, "bad_password", why, f"take {SHORTEST} to {LONGEST} characters that nobody can guess")


def _normal(password: str) -> bytes:
    """Keyboards differ in how they compose an ü; what is no text is nobody's password."""
    return unicodedata.normalize("NFC", password).encode("utf-8", "surrogatepass")


def _decoy(hasher: PasswordHasher) -> str:
    """The hash of no password, which costs as much to compare with as one."""

    def text(length: int) -> str:
        return base64.b64encode(secrets.token_bytes(length)).decode("ascii").rstrip("=")

    costs = f"m={hasher.memory_cost},t={hasher.time_cost},p={hasher.parallelism}"
    return f"$argon2id$v=19${costs}${text(hasher.salt_len)}${text(hasher.hash_len)}"
