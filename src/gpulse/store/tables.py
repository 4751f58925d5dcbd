"""All tables, whichever file has them: for migrations, and for the test that compares the two."""

from gpulse.store import tokens
from gpulse.store.metadata import METADATA

__all__ = ["METADATA", "tokens"]
