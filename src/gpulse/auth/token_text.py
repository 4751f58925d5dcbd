"""A node's token as text, `gpn_ID_SECRET`, and one to join with, `gpj_ID_SECRET`."""

from typing import NamedTuple

from gpulse.auth import secret_text
from gpulse.errors import TokenRefused
from gpulse.store.tokens import JOIN, NODE

_PREFIXES = {"gpn": NODE, "gpj": JOIN}


class Parts(NamedTuple):
    kind: str
    id: str
    digest: bytes


def make(kind: str) -> tuple[str, Parts]:
    """A new token's text, which is nowhere else, and what is kept of it."""
    prefix = next(prefix for prefix, meant in _PREFIXES.items() if meant == kind)
    text, parts = secret_text.make(prefix)
    return text, Parts(kind, parts.id, parts.digest)


def read(text: str) -> Parts:
    """What a text says of itself; TokenRefused where it is none. The refusal never repeats the text."""
    if not text:
        raise TokenRefused(
            401, "token_missing", "a token is needed here", 'send the header "Authorization: Bearer TOKEN"'
        )
    parts = secret_text.read(text)
    if parts is None or parts.prefix not in _PREFIXES:
        raise TokenRefused(
            401,
            "token_malformed",
            "this is no token: a node's is gpn_ID_SECRET, a join token is gpj_ID_SECRET",
            "look whether all of it was copied",
        )
    return Parts(_PREFIXES[parts.prefix], parts.id, parts.digest)
