"""Who asks: a person, or nobody known, by which way, and what they may do."""

from typing import Literal, NamedTuple

from gpulse.auth.roles import Role

Way = Literal["anonymous", "session", "key", "proxy", "local"]
# What a key may do at most, its owner's role permitting.
SCOPES = ("read", "write", "metrics", "admin")
ALL_SCOPES = frozenset(SCOPES)


class Identity(NamedTuple):
    """As it is at this moment: `Directory.current` tells it anew for what stays open."""

    # None: nobody has signed in.
    name: str | None
    # None: may not even read.
    role: Role | None
    account: str | None
    way: Way
    scopes: frozenset[str]
    # The id of the session or key; no secret.
    credential: str = ""
