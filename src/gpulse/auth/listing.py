"""Tokens as people see them: never a secret, nor its digest."""

from collections import Counter
from collections.abc import Iterable
from typing import Literal

import msgspec

from gpulse.fleet.names import natural
from gpulse.store.tokens import JOIN, TokenRow

State = Literal["live", "expired", "revoked", "replaced"]


class TokenView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A token; times are seconds since 1970."""

    id: str
    kind: Literal["node", "join"]
    # The node's name; of a join token the set as it was typed.
    nodes: str
    state: State
    created_at: float
    expires_at: float | None = None
    # When a node first came with it.
    used_at: float | None = None
    ended_at: float | None = None
    # The join token it was traded for.
    joined_by: str | None = None
    # Of a join token: how many nodes have a live token by it.
    joined: int | None = None


def views(rows: Iterable[TokenRow], now: float) -> list[TokenView]:
    """Join tokens first, the newest at the top; then nodes by name."""
    rows = list(rows)
    joined = Counter(row.joined_by for row in rows if row.live(now))
    ordered = sorted(rows, key=lambda row: -row.created_at)
    ordered.sort(key=lambda row: () if row.kind == JOIN else (natural(row.nodes),))
    return [view(row, now, joined[row.id] if row.kind == JOIN else None) for row in ordered]


def view(row: TokenRow, now: float, joined: int | None = None) -> TokenView:
    return TokenView(
        id=row.id,
        kind="join" if row.kind == JOIN else "node",
        nodes=row.nodes,
        state=_state(row, now),
        created_at=row.created_at,
        expires_at=row.expires_at,
        used_at=row.used_at,
        ended_at=row.ended_at,
        joined_by=row.joined_by,
        joined=joined,
    )


def _state(row: TokenRow, now: float) -> State:
    if row.live(now):
        return "live"
    if row.expired(now):
        return "expired"
    return "replaced" if row.ended == "replaced" else "revoked"
