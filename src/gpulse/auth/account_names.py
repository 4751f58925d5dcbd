"""Names of accounts: what may be one, and when two are the same."""

import unicodedata

from gpulse.auth.secret_text import quoted
from gpulse.errors import AccountError

_LONGEST = 64
# A colon marks what is no account ("local: ann"), the others part names in lists and paths.
_NEVER = frozenset(":,/\"'")


def checked(name: str) -> str:
    """The name as it is kept; AccountError where it is none."""
    name = unicodedata.normalize("NFC", name)
    bad = any(not one.isprintable() or one.isspace() or one in _NEVER for one in name)
    if bad or not 1 <= len(name) <= _LONGEST or name.startswith(("-", ".")):
        raise AccountError(
            400,
            "bad_name",
            f"{quoted(name, 100)} cannot be the name of an account",
            f"take the person's login name on the nodes: up to {_LONGEST} characters, without blanks, : , / and quotes",
        )
    return name


def folded(name: str) -> str:
    """The same for names that people would take for one another."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
