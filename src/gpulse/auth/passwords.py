"""Passwords: what may be one, and their argon2id hashes."""

import base64
import secrets
import unicodedata

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from gpulse.auth.account_names import folded
from gpulse.auth.hash_queue import HashQueue
from gpulse.errors import AccountError

SHORTEST, LONGEST = 10, 1024
# A hash takes 64 MiB and a tenth of a second of one core: what attackers pay for each guess.
_HASHER = PasswordHasher(time_cost=3, memory_cost=65536, parallelism=1)


class Passwords:
    def __init__(self, hasher: PasswordHasher = _HASHER) -> None:
        self._hasher = hasher
        self._decoy = _decoy(hasher)
        self._queue = HashQueue()

    async def hash(self, password: str, name: str) -> str:
        """Return the hash for an account of this name; raise AccountError if it is no good password."""
        good = _checked(password, name)
        return await self._queue.run(lambda: self._hasher.hash(good), "")

    async def verify(self, encoded: str | None, password: str, address: str = "") -> bool:
        """Compare with a hash, or with a decoy of the same cost, in the same queue: nobody learns which it was.

        Those who ask from one `address` wait for each other, and take turns with other addresses.
        """
        right = await self._queue.run(lambda: self._is(encoded or self._decoy, password), address)
        return right and encoded is not None

    def close(self) -> None:
        self._queue.close()

    def _is(self, encoded: str, password: str) -> bool:
        try:
            return self._hasher.verify(encoded, _normal(password))
        except (VerificationError, InvalidHashError):
            return False


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
