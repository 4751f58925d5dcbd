"""Who may ask at an address: the rule that every address has, and how it is kept."""

from typing import Literal

from gpulse.auth.identity import Identity
from gpulse.auth.roles import Role, at_least
from gpulse.errors import RequestError
from gpulse_probe import __version__

# anyone: also who may not read, as those who are about to sign in.
# read: viewers, and where access.anonymous = "read" everybody.
# member, admin: people who have at least this role.
# self: people who are signed in, for their own account.
# node: nodes, which have tokens; the address checks them itself.
May = Literal["anyone", "read", "member", "admin", "self", "node"]
# What a key may do at most, by the rule, for reading and for changes.
_SCOPES: dict[str, tuple[str, str]] = {
    "read": ("read", "read"),
    "member": ("read", "write"),
    "self": ("read", "write"),
    "admin": ("admin", "admin"),
}
_ROLES: dict[str, Role] = {"read": "viewer", "self": "viewer", "member": "member", "admin": "admin"}


def scopes_for(may: May, changes: bool, also: frozenset[str]) -> frozenset[str]:
    """A key needs one of these; none where it needs nothing."""
    return frozenset() if may in ("anyone", "node") else frozenset({_SCOPES[may][changes]}) | also


def permit(may: May, who: Identity, changes: bool, also: frozenset[str] = frozenset(), program: str = "") -> None:
    """Raise RequestError if the rule does not let them. `also` are further scopes of keys that suffice.

    `program` is what the program that asks calls itself.
    """
    if may in ("anyone", "node"):
        return
    wanted = _ROLES[may]
    if who.name is None and (may != "read" or who.role is None):
        raise RequestError(
            401,
            "sign_in",
            f"sign in first{_other_version(program)}",
            "programs send a key: Authorization: Bearer gpk_…",
        )
    if not at_least(who.role, wanted):
        raise RequestError(403, "forbidden", f"needs the role {wanted}; you are {who.role or 'without one'}")
    enough = scopes_for(may, changes, also)
    if who.scopes.isdisjoint(enough):
        named = " or ".join(sorted(enough))
        raise RequestError(
            403, "key_scope", f"needs a key with the scope {named}", "make one that may do more on your account's page"
        )


def _other_version(program: str) -> str:
    """Say why local commands of another version may not be known: they may look for the hub elsewhere."""
    name, _, version = program.partition("/")
    if name != "gpulse" or version == __version__:
        return ""
    return f" (this hub is gpulse {__version__}; commands on its own machine need the same version)"
