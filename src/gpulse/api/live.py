"""The live stream: one frame a tick for everybody who watches, over WebSocket.

Frames are made once for all listeners of the same kind.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Annotated, Literal

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from gpulse.api import page_key
from gpulse.api.access import NOTHING, Caller
from gpulse.api.cross_site import is_own_site
from gpulse.api.errors import error_response
from gpulse.api.hub import Hub
from gpulse.api.live_binary import BinarySource
from gpulse.api.live_json import JsonSource
from gpulse.api.live_places import Places
from gpulse.api.live_stream import Listener, Source, Stream
from gpulse.api.queries import Filtered, as_person, read_query
from gpulse.api.rules import May, permit
from gpulse.api.security import as_origin
from gpulse.auth.identity import Identity
from gpulse.errors import RequestError
from gpulse.fleet.sight import FULL, Sight

# How soon after a tick its frame goes out, at most.
_POLL_SECONDS = 0.05
# How soon somebody who was signed out sees nothing any more, at most.
_LOOK_SECONDS = 0.25
_GOODBYE_SECONDS = 1.0
MAY: May = "read"
POLICY_VIOLATION = 1008
# Ours: the page then asks who is signed in.
SIGNED_OUT = 4401
TRY_AGAIN_LATER = 1013


class LiveQuery(Filtered, frozen=True, kw_only=True):
    """What to watch."""

    format: Annotated[Literal["binary", "json"], Meta(description="How frames are encoded.")] = "json"
    limit: Annotated[int, Meta(ge=1, le=1000, description="JSON: how many nodes to tell of at most.")] = 1000


_BINARY = LiveQuery(format="binary")


class Live:
    """All streams of the hub. A task turns ticks into frames while anybody watches."""

    def __init__(self, hub: Hub, most_listeners: int, most_streams: int, origins: Sequence[str]):
        self._hub = hub
        self._places = Places(most_listeners, most_streams)
        self._origins = frozenset(origins)
        # By what is asked for, and what is seen of people.
        self._streams: dict[tuple[LiveQuery, Sight], Stream] = {}
        self._publisher: asyncio.Task[None] | None = None
        # Kept when nobody watches, as nodes keep their part of the layout.
        self._binary = {FULL: BinarySource(hub), NOTHING: BinarySource(hub, nameless=True)}

    @property
    def listeners(self) -> int:
        return self._places.taken

    async def serve(self, websocket: WebSocket) -> None:
        """One listener, from its hello to its goodbye."""
        if not self._same_site(websocket):
            # A page of another site must not read the fleet through its visitor's browser.
            await websocket.close(POLICY_VIOLATION)
            return
        try:
            caller = await self._hub.access.caller(websocket)
            permit(MAY, caller.who, changes=False)
        except RequestError as error:
            await websocket.send_denial_response(error_response(error))
            return
        await websocket.accept(page_key.protocol(websocket.headers))
        try:
            query = as_person(read_query(LiveQuery, websocket.query_params), caller.who.name)
            sight = caller.lowered(query.sight).sight
            key = _stream_key(query, sight)
            with self._places.take(caller.who, caller.address, None if _is_common(*key) else key):
                stream = self._join(*key)
                await self._watch(websocket, caller, stream, Listener(self._beside(query, sight)))
        except RequestError as error:
            code = TRY_AGAIN_LATER if error.status == 503 else POLICY_VIOLATION
            await websocket.close(code, _reason(error))

    async def _watch(self, websocket: WebSocket, caller: Caller, stream: Stream, listener: Listener) -> None:
        stream.listeners.add(listener)
        if stream.generation >= 0:
            listener.offer(stream.source)
        if self._publisher is None or self._publisher.done():
            self._publisher = asyncio.create_task(self._publish())
        try:
            await _until_first_ends(
                listener.feed(_sender(websocket)),
                _goodbye(websocket),
                _failure(self._publisher),
                self._signed_out(caller.who, caller.sight),
            )
            if not self._sees_the_same(caller.who, caller.sight):
                await _send_off(websocket)
        finally:
            stream.listeners.discard(listener)
            self._streams = {key: kept for key, kept in self._streams.items() if kept.listeners}
            if not self._streams and self._publisher is not None:
                self._publisher.cancel()
                self._publisher = None

    async def refuse_plain(self, request: Request) -> Response:
        """A plain GET of the stream's address."""
        error = RequestError(
            426, "upgrade_required", "this address speaks WebSocket", "connect with a WebSocket client: docs/api.md"
        )
        headers = {"Upgrade": "websocket", "Connection": "Upgrade"}
        try:
            caller = await self._hub.access.caller(request)
            permit(MAY, caller.who, changes=False)
            as_person(read_query(LiveQuery, request.query_params), caller.who.name).filter(caller.sight)
        except RequestError as refused:
            error, headers = refused, {}
        response = error_response(error, headers=headers)
        self._hub.access.mark(response, None)
        return response

    def _sees_the_same(self, who: Identity, sight: Sight) -> bool:
        """Whether somebody who watches is still signed in, and still sees as much of others."""
        now = self._hub.access.current(who)
        return now is not None and now.role is not None and self._hub.access.sight(now) == sight

    async def _signed_out(self, who: Identity, sight: Sight) -> None:
        """Ends when somebody may no longer watch what they watch."""
        while self._sees_the_same(who, sight):
            await asyncio.sleep(_LOOK_SECONDS)

    def _join(self, query: LiveQuery, sight: Sight) -> Stream:
        key = (query, sight)
        if key not in self._streams:
            source: Source
            if query.format == "binary":
                source = self._binary[sight]
            else:
                source = JsonSource(self._hub, query.filter(sight), query.q, query.limit, sight)
            self._streams[key] = Stream(source)
        return self._streams[key]

    def _beside(self, query: LiveQuery, sight: Sight) -> Callable[[], str | None]:
        """Frames without names are the same for all, so each is told apart which GPUs are their own."""
        nameless = self._binary[NOTHING]
        if query.format != "binary" or sight.level != "anonymous" or not sight.own:
            return lambda: None
        (user,) = sight.own
        return lambda: nameless.own(user)

    def _same_site(self, websocket: WebSocket) -> bool:
        return is_own_site(websocket.headers) or as_origin(websocket.headers.get("origin", "")) in self._origins

    async def _publish(self) -> None:
        while True:
            generation = self._hub.fleet.generation
            now = time.monotonic()
            for stream in tuple(self._streams.values()):
                if stream.generation != generation and now >= stream.not_before:
                    await stream.publish(generation)
            await asyncio.sleep(_POLL_SECONDS)


def _stream_key(query: LiveQuery, sight: Sight) -> tuple[LiveQuery, Sight]:
    """The same for those who can watch the same stream; RequestError where there is none like this."""
    if query.format == "binary" and (query.q or query.me):
        raise RequestError(400, "bad_parameter", "a binary stream takes no filter; leave q out or take format=json")
    if query.format == "binary":
        return _BINARY, NOTHING if sight.level == "anonymous" else FULL
    if sight.level == "names" and not query.q:
        # Nodes without their processes look the same to all who see names.
        sight = sight.lowered("names")
    return query, sight


def _is_common(query: LiveQuery, sight: Sight) -> bool:
    """Whether it is one of the few that all can watch alike."""
    plain = not query.q and not query.me and query.limit == LiveQuery().limit
    return query.format == "binary" or (plain and not sight.own)


def _sender(websocket: WebSocket) -> Callable[[str | bytes], Awaitable[None]]:
    def send(frame: str | bytes) -> Awaitable[None]:
        return websocket.send_text(frame) if isinstance(frame, str) else websocket.send_bytes(frame)

    return send


async def _goodbye(websocket: WebSocket) -> None:
    while (await websocket.receive())["type"] != "websocket.disconnect":
        # Listeners have nothing to say; what they send is read so that their goodbye is seen.
        continue


async def _send_off(websocket: WebSocket) -> None:
    """Who does not even read the goodbye is not waited for."""
    if websocket.client_state == WebSocketState.CONNECTED:
        with suppress(TimeoutError):
            async with asyncio.timeout(_GOODBYE_SECONDS):
                await websocket.close(SIGNED_OUT, "signed out, or another role: sign in again, or connect anew")


async def _failure(publisher: "asyncio.Task[None]") -> None:
    """Ends when there will be no more frames: better no stream than one that has silently stopped."""
    await asyncio.shield(publisher)


async def _until_first_ends(*parts: Coroutine[None, None, None]) -> None:
    tasks = [asyncio.create_task(part) for part in parts]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    for outcome in outcomes:
        # Going without a goodbye is a way to go.
        if isinstance(outcome, Exception) and not isinstance(outcome, WebSocketDisconnect):
            raise outcome


def _reason(error: RequestError) -> str:
    # A close frame has room for 123 bytes.
    return error.message.encode()[:120].decode(errors="ignore")
