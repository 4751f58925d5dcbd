"""The hub proves that it is itself, before a program sends it a key: it knows the key's digest."""

import time
from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from gpulse.api.endpoint import Endpoint
from gpulse.api.hub import Hub


class ProofQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A text that was never used before."""

    nonce: Annotated[str, Meta(pattern="^[0-9a-f]{32,64}$", description="Random, another one each time.")]


class Proof(msgspec.Struct, kw_only=True):
    """An answer that only the holder of the key and its hub can compute."""

    # HMAC-SHA-256 of three lines: "gpulse hub proof 1", the nonce and up_milliseconds; its key is the SHA-256 of the
    # secret. In hex.
    proof: str
    # How long the hub has been listening, at least. A connection that is older was accepted by somebody else.
    up_milliseconds: int


async def prove(hub: Hub, query: ProofQuery, path: Mapping[str, str]) -> Proof:
    up = int(1000 * (time.monotonic() - hub.access.began))
    return Proof(proof=hub.access.directory.keys.proof(path["key"], query.nonce, up), up_milliseconds=up)


ENDPOINTS = (
    Endpoint(
        path="/api/v1/keys/{key}/proof",
        name="getProof",
        summary="Proves to the holder of a key that this is the key's hub, before the key is sent.",
        answer=Proof,
        handle=prove,
        may="anyone",
        path_parameters={"key": "The id in `gpk_ID_SECRET`; never the secret."},
        query=ProofQuery,
        cached=False,
        errors=(400, 406),
    ),
)
