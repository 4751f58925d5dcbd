"""All tables, whichever file has them: for migrations, and for the test that compares the two."""

from gpulse.store import accounts, audit, feeds, hub, keys, links, reservations, sessions, tokens, writes
from gpulse.store.metadata import METADATA

__all__ = [
    "METADATA",
    "accounts",
    "audit",
    "feeds",
    "hub",
    "keys",
    "links",
    "reservations",
    "sessions",
    "tokens",
    "writes",
]
