"""All tables, whichever file has them: for migrations, and for the test that compares the two."""

from gpulse.store import accounts, audit, hub, keys, links, sessions, tokens
from gpulse.store.metadata import METADATA

__all__ = ["METADATA", "accounts", "audit", "hub", "keys", "links", "sessions", "tokens"]
