"""Secrets as text, `PREFIX_ID_SECRET`, and what is kept of them: the id, which is no secret, and a digest."""

import hashlib
import hmac
import re
import secrets
from typing import NamedTuple

# Node, join, key, session, page of a session, link, feed.
_TEXT = re.compile(r"(gp[njksplf])_([0-9a-f]{12})_([0-9a-f]{48})")
# Also one of which not all was copied.
_INSIDE = re.compile(r"(gp[njksplf])_([0-9a-f]{12})_[0-9a-fA-F]+")
# Compared with in place of the digest of an id that is unknown, so that it takes as long as any other.
NO_DIGEST = bytes(32)


class Parts(NamedTuple):
    prefix: str
    id: str
    digest: bytes


def make(prefix: str, identity: str | None = None) -> tuple[str, Parts]:
    """A new text, which is nowhere else, and what is kept of it; of another's id where one is given."""
    identity, secret = identity or secrets.token_hex(6), secrets.token_hex(24)
    return f"{prefix}_{identity}_{secret}", Parts(prefix, identity, _digest(secret))


def read(text: str) -> Parts | None:
    """What a text says of itself; None where it is none."""
    match = _TEXT.fullmatch(text)
    return None if match is None else Parts(match[1], match[2], _digest(match[3]))


def proof(digest: bytes, nonce: str, up_milliseconds: int) -> str:
    """Return how a hub that keeps `digest` and runs so long answers a nonce of somebody who has the secret."""
    text = f"gpulse hub proof 1\n{nonce}\n{up_milliseconds}"
    return hmac.new(digest, text.encode("ascii", "replace"), "sha256").hexdigest()


def without_secrets(text: str) -> str:
    """A text for a log, with the secrets in it taken out."""
    return _INSIDE.sub(r"\1_\2_…", text)


def quoted(text: str, longest: int = 40) -> str:
    """What somebody sent, for an error: they may have sent a secret where none belongs."""
    return f"{without_secrets(text)!r:.{longest}}"


def _digest(secret: str) -> bytes:
    # A secret of 192 random bits cannot be guessed: it needs no slow hash, and every request is checked.
    return hashlib.sha256(secret.encode("ascii")).digest()
