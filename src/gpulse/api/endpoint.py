"""An address of the API: declared once, for the router and for the OpenAPI document."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
from msgspec import UNSET
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gpulse.api.access import NOBODY, NOTHING, Access, Caller
from gpulse.api.answers import Answers, Body, Packed
from gpulse.api.bodies import MOST_BYTES, Incoming, LastAnswer, decode, is_heard, read_body
from gpulse.api.errors import error_response
from gpulse.api.hub import Hub
from gpulse.api.media import choose
from gpulse.api.queries import NoQuery, as_person, read_query
from gpulse.api.rules import May, permit
from gpulse.errors import RequestError, StoreError

Handler = Callable[..., Awaitable[Any]]
Admit = Callable[[Hub, Mapping[str, str]], Awaitable[Any]]
Respond = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class Endpoint:
    """What is asked for, what comes back, and who answers.

    The handler takes the hub, the query as its struct and the path's parameters; where there is a body, a token or a
    choice of media types, and where it matters who asks, also what is Incoming, unless one answer is for all. It
    returns the `answer` type, or text where the media type is not JSON, or a Response of its own where it is not
    cached, and raises RequestError. It must not keep the loop for long.
    """

    path: str
    name: str
    summary: str
    answer: Any
    handle: Handler
    # Who may ask. There is no default, so that no address is written without a thought about it.
    may: May
    query: type[msgspec.Struct] = NoQuery
    path_parameters: Mapping[str, str] = field(default_factory=dict)
    errors: tuple[int, ...] = ()
    media: str = "application/json"
    # Further media types the answer can have; the reader's Accept chooses.
    other_media: tuple[str, ...] = ()
    # Whether the answer to a GET stays true until the fleet's next tick.
    cached: bool = True
    # The same of a POST: its body is checked, and what it says makes no difference.
    same_for_all: bool = False
    method: Literal["GET", "POST", "PATCH", "DELETE"] = "GET"
    # The type of the JSON in the body.
    body: Any = None
    # How large the body may be.
    most_bytes: int = MOST_BYTES
    # The key of who asks, where it stands in the body.
    key_in_body: Callable[[Any], str] | None = None
    status: int = 200
    # What it means when the same comes with another status.
    also: Mapping[int, str] = field(default_factory=dict)
    # Whether it tells of people: then an answer is kept only for those who see the same of others.
    of_people: bool = False
    # Whether it is another one for who has a reservation; of all others nobody is told who asks.
    of_owner: bool = False
    # Whether the answer is for who asks alone, though everybody may ask.
    personal: bool = False
    # Scopes of keys that suffice beside the usual one.
    scopes: frozenset[str] = frozenset()
    # Called with the hub and the headers before anything of the body is read; raises RequestError.
    admit: Admit | None = None

    @property
    def kept(self) -> bool:
        """Whether one answer serves all who ask within a tick, and see the same."""
        for_all = self.may in ("read", "anyone") and not self.personal
        return for_all and self.cached and (self.method == "GET" or self.same_for_all)

    @property
    def token(self) -> bool:
        """Whether it wants the token of a node."""
        return self.may == "node"

    @property
    def changes(self) -> bool:
        """Whether something is another way afterwards, in the name of who asks."""
        return self.method != "GET" and self.may not in ("read", "node")

    @property
    def asks_who(self) -> bool:
        """Whether it matters who asks; else not even a bad key does."""
        return not self.token and (self.may != "anyone" or self.personal or self.changes)

    @property
    def takes_body(self) -> bool:
        return self.method in ("POST", "PATCH")

    @property
    def takes_incoming(self) -> bool:
        alone = self.personal or self.may not in ("read", "anyone")
        return self.of_people or alone or bool(self.other_media) or (self.method != "GET" and not self.same_for_all)

    def respond(self, hub: Hub, answers: Answers, access: Access) -> Respond:
        async def respond(request: Request) -> Response:
            caller = None
            try:
                caller = await self._caller(request, access)
                response = await self._answer(request, hub, answers, caller)
            except (RequestError, StoreError) as trouble:
                error = trouble if isinstance(trouble, RequestError) else _no_store(trouble, caller)
                if self.token:
                    hub.fleet.counters.refuse(error.code)
                refusal = error_response(error, self.media)
                response = refusal if is_heard(request) else LastAnswer.of(refusal)
            if not self.token:
                access.mark(response, caller)
            return response

        return respond

    async def _caller(self, request: Request, access: Access) -> Caller:
        """Who asks, once it is sure that they may."""
        if not self.asks_who:
            return Caller(NOBODY, NOTHING)
        caller = await access.caller(request, self.changes, self.may == "anyone")
        if self.same_for_all:
            told = decode(await read_body(request, self.most_bytes), self.body)
            if self.key_in_body is not None and caller.who.name is None:
                caller = await access.with_key(caller, self.key_in_body(told))
        permit(self.may, caller.who, self.changes, self.scopes, request.headers.get("user-agent", ""))
        return caller

    async def _answer(self, request: Request, hub: Hub, answers: Answers, caller: Caller) -> Response:
        media = choose(request.headers.get("accept", "*/*"), (self.media, *self.other_media))
        query = as_person(read_query(self.query, request.query_params), caller.who.name)
        caller = caller.lowered(getattr(query, "sight", UNSET))
        if not self.kept:
            made = await self._made(hub, query, request, media, caller)
            if isinstance(made, Response):
                return made
            response = await answers.response(request, made, None)
            response.status_code = self.status
            return response
        # What is kept for others must not know who asked.
        owner = caller.who if self.of_owner and caller.who.name in hub.fleet.bookings.people else NOBODY
        caller = Caller(owner, hub.fleet.narrowed(caller.sight) if self.of_people else NOTHING)
        seen = caller.sight.key() if self.of_people else ""
        me = getattr(query, "me", "")
        key = f"{self.name}?{media}?{seen}?{me}?{owner.name or ''}?{request.url.path}?{request.url.query}"
        etag = answers.etag(key)
        if self.method == "GET" and answers.unchanged(request, etag):
            return answers.not_modified(etag)
        body = answers.kept(key)
        if body is None:
            body = await answers.once(key, lambda: self._made(hub, query, request, media, caller))
            answers.keep(key, body, etag)
        response = await answers.response(request, body, etag if self.method == "GET" else None)
        response.status_code = self.status
        return response

    async def _made(self, hub: Hub, query: Any, request: Request, media: str, caller: Caller) -> Any:
        """A Body, or a Response of the handler's own."""
        admitted = await self.admit(hub, request.headers) if self.admit is not None else None
        read = await read_body(request, self.most_bytes) if self.takes_body and not self.same_for_all else b""
        incoming = Incoming(
            headers=request.headers,
            media=media,
            body=read,
            admitted=admitted,
            who=caller.who,
            sight=caller.sight,
            address=caller.address,
            secure=caller.secure,
            refused=caller.refused,
        )
        content = await self.handle(hub, query, request.path_params, *((incoming,) if self.takes_incoming else ()))
        if isinstance(content, Response | Packed):
            return content
        # A long answer is a step of its own.
        await asyncio.sleep(0)
        return Body(content.encode() if isinstance(content, str) else msgspec.json.encode(content), media)


def routes(endpoints: Sequence[Endpoint], base: str, hub: Hub, answers: Answers, access: Access) -> list[Route]:
    """One route for each address, whatever the methods, so that a 405 tells all that are allowed."""
    by_path: dict[str, dict[str, Endpoint]] = {}
    for endpoint in endpoints:
        by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint
    return [
        Route(base + _pattern(path), _by_method(methods, hub, answers, access), methods=list(methods))
        for path, methods in by_path.items()
    ]


def _by_method(endpoints: Mapping[str, Endpoint], hub: Hub, answers: Answers, access: Access) -> Respond:
    responders = {method: endpoint.respond(hub, answers, access) for method, endpoint in endpoints.items()}

    async def respond(request: Request) -> Response:
        return await responders["GET" if request.method == "HEAD" else request.method](request)

    return respond


def _pattern(path: str) -> str:
    # The id of a card that has told no UUID is node/index.
    return re.sub(r"\{id\}", "{id:path}", path)


def _no_store(trouble: StoreError, caller: Caller | None) -> RequestError:
    """Where the records are, and what is the matter with them, is for admins; the hub says it on its own terminal."""
    why = f": {trouble}" if caller is not None and caller.who.role == "admin" else " just now"
    return RequestError(503, "no_store", f"what the hub keeps cannot be used{why}", "try again", 30)
