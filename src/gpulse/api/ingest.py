"""What nodes send: over one WebSocket each, or a snapshot at a time by POST; always with a token of the node's own."""

import asyncio
import re
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket

from gpulse.api.bodies import Incoming, decode
from gpulse.api.endpoint import Endpoint
from gpulse.api.errors import error_response
from gpulse.api.hub import Hub, Ingest
from gpulse.api.queries import NoQuery, read_query
from gpulse.api.takeover import EXTENSION, TakeOver
from gpulse.auth.tokens import JoinToken, NodeToken
from gpulse.errors import BadLine, RequestError, StoreError, TokenRefused
from gpulse.fleet import gpustat
from gpulse.fleet.model import Snapshot
from gpulse.transport.bundle import make_agent
from gpulse.transport.push import MOST_REFUSALS_A_SECOND
from gpulse.transport.pushed import REVOKED, Connection, Line
from gpulse_probe import __version__

_BEARER = re.compile(r"Bearer +(\S+) *", re.IGNORECASE)


class Taken(msgspec.Struct, kw_only=True):
    """The snapshot is on the page."""

    node: str
    gpus: int


class JoinRequest(msgspec.Struct, kw_only=True):
    """A node that has a join token asks for a token of its own."""

    node: Annotated[str, Meta(min_length=1, max_length=253, description="The name it will have.")]


class Joined(msgspec.Struct, kw_only=True):
    """A node's own token; it is told only here."""

    node: str
    token: str


class ConnectQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which agent it is that connects."""

    instance: Annotated[
        str, Meta(pattern="^[0-9a-f]{16}$", description="A random number the agent chose when it started.")
    ]


def _ingest(hub: Hub) -> Ingest:
    if hub.ingest is None:
        raise RequestError(503, "no_ingest", "this hub takes nothing from nodes: its cluster is simulated")
    return hub.ingest


async def _token(hub: Hub, headers: Mapping[str, str]) -> NodeToken | JoinToken:
    told = headers.get("authorization")
    match = _BEARER.fullmatch(told) if told else None
    if told and match is None:
        raise RequestError(401, "token_malformed", "the Authorization header is not of the form: Bearer TOKEN")
    ingest, text = _ingest(hub), match[1] if match else ""
    busy = ingest.push.refusals.count >= MOST_REFUSALS_A_SECOND
    try:
        return ingest.tokens.check(text) if busy else await ingest.tokens.admit(text)
    except TokenRefused:
        if busy:
            raise RequestError(
                503, "busy", "too many come with tokens that are none", "try again in some seconds", 5
            ) from None
        ingest.push.refusals.add()
        raise
    except StoreError:
        raise _no_store() from None


def _no_store() -> RequestError:
    """Where the tokens are, and why they cannot be read, the hub says on its own terminal."""
    return RequestError(503, "no_store", "the hub cannot look at its tokens just now", "try again", 30)


async def admit_node(hub: Hub, headers: Mapping[str, str]) -> NodeToken:
    """Only with a node's own token."""
    token = await _token(hub, headers)
    if not isinstance(token, NodeToken):
        raise RequestError(
            403,
            "join_token",
            "this is a join token, which a node first trades for one of its own",
            "POST it to api/v1/ingest/join; gpulse agent push does so by itself",
        )
    return token


async def admit_join(hub: Hub, headers: Mapping[str, str]) -> JoinToken:
    token = await _token(hub, headers)
    if not isinstance(token, JoinToken):
        raise RequestError(403, "node_token", f"this is the token of {token.node} already; there is nothing to join")
    return token


async def post_snapshot(hub: Hub, query: object, path: Mapping[str, str], incoming: Incoming) -> Taken:
    del query, path
    _ingest(hub).push.afford(_still_admitted(hub, incoming), len(incoming.body))
    return _post(hub, incoming, incoming.body)


async def post_gpustat(hub: Hub, query: object, path: Mapping[str, str], incoming: Incoming) -> Taken:
    del query, path
    node = _still_admitted(hub, incoming)
    _ingest(hub).push.afford(node, len(incoming.body))
    try:
        # Masking the secrets of a megabyte of command lines takes a quarter of a second.
        line = await asyncio.to_thread(gpustat.to_line, incoming.body, node)
    except BadLine as problem:
        raise RequestError(422, "bad_snapshot", f"this is not what gpustat --json prints: {problem}") from None
    return _post(hub, incoming, line)


def _still_admitted(hub: Hub, incoming: Incoming) -> str:
    """The token's node. It was admitted before its body came, and who is slow may have been revoked since."""
    refused = _ingest(hub).tokens.why_ended(incoming.admitted)
    if refused is not None:
        raise refused
    node: str = incoming.admitted.node
    return node


def _post(hub: Hub, incoming: Incoming, line: bytes) -> Taken:
    node = _still_admitted(hub, incoming)
    _ingest(hub).push.post(node, line)
    return Taken(node=node, gpus=hub.fleet.gpu_count(node))


async def post_join(hub: Hub, query: object, path: Mapping[str, str], incoming: Incoming) -> Joined:
    del query, path
    wanted = decode(incoming.body, JoinRequest)
    try:
        token = await _ingest(hub).tokens.trade(incoming.admitted, wanted.node, incoming.address)
    except StoreError:
        raise _no_store() from None
    return Joined(node=wanted.node, token=token)


async def get_agent(hub: Hub, query: object, path: Mapping[str, str], incoming: Incoming) -> Response:
    del query, path
    data = make_agent().data
    signature = _ingest(hub).upgrades.sign(incoming.admitted.node, data)
    headers = {"X-Gpulse-Version": __version__, "X-Gpulse-Signature": signature}
    return Response(data, headers=headers, media_type="application/zip")


async def refuse_get(request: Request) -> Response:
    """A plain GET of the address for lines."""
    del request
    error = RequestError(
        405, "method_not_allowed", "this address takes a POST, or speaks WebSocket", "see docs/push.md"
    )
    return error_response(error, headers={"Allow": "POST"})


class Lines:
    """The WebSocket of a node's agent."""

    def __init__(self, hub: Hub):
        self._hub = hub

    async def serve(self, websocket: WebSocket) -> None:
        try:
            token = await admit_node(self._hub, websocket.headers)
            instance = read_query(ConnectQuery, websocket.query_params).instance
            push = _ingest(self._hub).push
            push.admit(token.node, instance)
        except RequestError as error:
            self._hub.fleet.counters.refuse(error.code)
            await websocket.send_denial_response(error_response(error))
            return
        peer = websocket.client.host if websocket.client is not None else "an unknown address"
        await websocket.accept()
        ended = _ingest(self._hub).tokens.why_ended(token)
        if ended is not None:
            await websocket.close(REVOKED, ended.message)
            return

        def connect(line: Line) -> Connection:
            return push.connect(token, instance, peer, line)

        take_over: TakeOver = websocket.scope["extensions"][EXTENSION]
        take_over(connect)


ENDPOINTS = (
    Endpoint(
        path="/api/v1/ingest",
        name="postSnapshot",
        summary="Takes one Snapshot of the token's node. The same address is the WebSocket of gpulse agent push.",
        answer=Taken,
        handle=post_snapshot,
        may="node",
        method="POST",
        body=Snapshot,
        admit=admit_node,
        errors=(400, 401, 403, 406, 408, 409, 413, 415, 422, 429, 503),
    ),
    Endpoint(
        path="/api/v1/ingest/gpustat",
        name="postGpustat",
        summary="Takes what gpustat --json prints as a snapshot of the token's node.",
        answer=Taken,
        handle=post_gpustat,
        may="node",
        method="POST",
        body=dict[str, Any],
        admit=admit_node,
        errors=(400, 401, 403, 406, 408, 409, 413, 415, 422, 429, 503),
    ),
    Endpoint(
        path="/api/v1/ingest/join",
        name="join",
        summary="Trades a join token for a node's own.",
        answer=Joined,
        handle=post_join,
        may="node",
        method="POST",
        body=JoinRequest,
        status=201,
        admit=admit_join,
        errors=(400, 401, 403, 406, 408, 409, 413, 415, 429, 503),
    ),
    Endpoint(
        path="/api/v1/ingest/agent",
        name="getAgent",
        summary="This hub's own agent, signed for the token's node.",
        answer=None,
        handle=get_agent,
        may="node",
        query=NoQuery,
        admit=admit_node,
        media="application/zip",
        errors=(400, 401, 403, 406, 503),
    ),
)
