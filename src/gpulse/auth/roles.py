"""What people may do, from least to most: look; also reserve and watch; also decide for others."""

from typing import Literal, get_args

from gpulse.auth.secret_text import quoted
from gpulse.errors import AccountError

Role = Literal["viewer", "member", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)


def at_least(role: Role | None, wanted: Role) -> bool:
    """Whether a role has all that the wanted one has; who has none has nothing."""
    return role is not None and ROLES.index(role) >= ROLES.index(wanted)


def role_of(text: str) -> Role:
    """AccountError where it is none."""
    for one in ROLES:
        if one == text:
            return one
    raise AccountError(400, "bad_role", f"{quoted(text)} is no role", f"there are {', '.join(ROLES)}")
