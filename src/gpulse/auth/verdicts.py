"""Why a token is refused, in words for whoever runs the agent and codes for the agent."""

import shlex
from typing import overload

from gpulse.errors import TokenRefused
from gpulse.store.tokens import JOIN, NODE, TokenRow

_ANEW = {
    JOIN: "make another with: gpulse token create --join",
    NODE: "make another with: gpulse token create --replace",
}


@overload
def refusal(row: None, now: float) -> TokenRefused: ...
@overload
def refusal(row: TokenRow | None, now: float) -> TokenRefused | None: ...
def refusal(row: TokenRow | None, now: float) -> TokenRefused | None:
    """None where the token is live."""
    if row is None:
        return TokenRefused(
            401, "token_unknown", "this hub does not know this token", "gpulse token list shows those it knows"
        )
    what = f"join token {row.id}" if row.kind == JOIN else f"the token {row.id} of {row.nodes}"
    if row.expired(now):
        return TokenRefused(401, "token_expired", f"{what} is at its end", _ANEW[row.kind])
    if row.ended_at is not None:
        return TokenRefused(401, "token_revoked", f"{what} was {row.ended}", _ANEW[row.kind])
    return None


def not_in_set(join: TokenRow, node: str) -> TokenRefused:
    return TokenRefused(
        403,
        "not_in_set",
        f"join token {join.id} is for {join.nodes:.200}, and {node!r:.100} is none of them",
        "start the agent with --node NAME where the node is known by another name, or make a token for this one",
    )


def out_of_set(node: str) -> TokenRefused:
    """Whoever was shut out must not come back with the join token that lies on the node."""
    return TokenRefused(
        403,
        "not_in_set",
        f"the token of {node} was revoked, and join tokens made before that are no longer for it",
        f"to let it in again: gpulse token create {shlex.quote(node)}",
    )


def already_joined(node: str) -> TokenRefused:
    return TokenRefused(
        409,
        "already_joined",
        f"{node} has joined already and has a token of its own",
        f"if it lost it: gpulse token create --replace {shlex.quote(node)}, or join with a token made with"
        f" --join {shlex.quote(node)} --replace",
    )
