"""A token as text, `gpn_ID_SECRET` for a node and `gpj_ID_SECRET` for joining, and what is kept of its secret."""

import hashlib
import re
import secrets
from typing import NamedTuple

from gpulse.errors import TokenRefused
from gpulse.store.tokens import JOIN, NODE

_PREFIXES = {"gpn": NODE, "gpj": JOIN}
_TEXT = re.compile(r"(gpn|gpj)_([0-9a-f]{12})_([0-9a-f]{48})")


class Parts(NamedTuple):
    kind: str
    id: str
    digest: bytes


def make(kind: str) -> tuple[str, Parts]:
    """A new token's text, which is nowhere else, and what is kept of it."""
    prefix = next(prefix for prefix, meant in _PREFIXES.items() if meant == kind)
    identity, secret = secrets.token_hex(6), secrets.token_hex(24)
    return f"{prefix}_{identity}_{secret}", Parts(kind, identity, _digest(secret))


def read(text: str) -> Parts:
    """What a text says of itself; TokenRefused where it is none. The refusal never repeats the text."""
    if not text:
        raise TokenRefused(
            401, "token_missing", "a token is needed here", 'send the header "Authorization: Bearer TOKEN"'
        )
    match = _TEXT.fullmatch(text)
    if match is None:
        raise TokenRefused(
            401,
            "token_malformed",
            "this is no token: a node's is gpn_ID_SECRET, a join token is gpj_ID_SECRET",
            "look whether all of it was copied",
        )
    return Parts(_PREFIXES[match[1]], match[2], _digest(match[3]))


def _digest(secret: str) -> bytes:
    # A secret of 192 random bits cannot be guessed: it needs no slow hash, and every connection is checked.
    return hashlib.sha256(secret.encode("ascii")).digest()
