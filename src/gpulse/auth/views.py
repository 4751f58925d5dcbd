"""Accounts, sessions and keys as people see them: never a secret, nor its digest. Times are seconds since 1970."""

from typing import Literal

import msgspec

from gpulse.auth.roles import Role

KeyState = Literal["live", "expired", "revoked"]


class AccountView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person who may sign in."""

    id: str
    name: str
    display: str = ""
    role: Role
    disabled: bool = False
    # Whether there is a password here; who has none signs in by a link, a proxy or single sign-on.
    has_password: bool = False
    # Who says who it is, where that is not this hub.
    issuer: str | None = None
    created_at: float
    signed_in_at: float | None = None
    # How many of them are live.
    sessions: int = 0
    keys: int = 0


class SessionView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A signed-in browser."""

    id: str
    # Where it signed in, and what the browser calls itself.
    address: str
    browser: str
    created_at: float
    seen_at: float
    expires_at: float


class KeyView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A key for programs."""

    id: str
    label: str
    scopes: list[str]
    state: KeyState
    created_at: float
    expires_at: float | None = None
    used_at: float | None = None
    ended_at: float | None = None
