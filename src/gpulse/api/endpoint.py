"""An address of the API: declared once, for the router and for the OpenAPI document."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gpulse.api.answers import Answers, Body, Packed
from gpulse.api.bodies import Incoming, LastAnswer, decode, is_heard, read_body
from gpulse.api.errors import error_response
from gpulse.api.hub import Hub
from gpulse.api.media import choose
from gpulse.api.queries import NoQuery, read_query
from gpulse.errors import RequestError

Handler = Callable[..., Awaitable[Any]]
Admit = Callable[[Hub, Mapping[str, str]], Awaitable[Any]]
Respond = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class Endpoint:
    """What is asked for, what comes back, and who answers.

    The handler takes the hub, the query as its struct and the path's parameters; where there is a body, a token or a
    choice of media types, also what is Incoming, unless one answer is for all. It returns the `answer` type, or text
    where the media type is not JSON, or a Response of its own where it is not cached, and raises RequestError. It must
    not keep the loop for long.
    """

    path: str
    name: str
    summary: str
    answer: Any
    handle: Handler
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
    method: Literal["GET", "POST"] = "GET"
    # The type of the JSON in the body.
    body: Any = None
    status: int = 200
    # Whether it wants "Authorization: Bearer …"; then what comes back is never kept for others.
    token: bool = False
    # Called with the hub and the headers before anything of the body is read; raises RequestError.
    admit: Admit | None = None

    @property
    def kept(self) -> bool:
        """Whether one answer serves all who ask within a tick."""
        return self.cached and (self.method == "GET" or self.same_for_all) and not self.token

    @property
    def takes_incoming(self) -> bool:
        return (self.method == "POST" and not self.same_for_all) or self.token or bool(self.other_media)

    def respond(self, hub: Hub, answers: Answers) -> Respond:
        async def respond(request: Request) -> Response:
            try:
                media = choose(request.headers.get("accept", "*/*"), (self.media, *self.other_media))
                query = read_query(self.query, request.query_params)
                key = f"{self.name}?{media}?{request.url.path}?{request.url.query}"
                if self.same_for_all:
                    decode(await read_body(request), self.body)
                etag = answers.etag(key) if self.kept else None
                if etag is not None and self.method == "GET" and answers.unchanged(request, etag):
                    return answers.not_modified(etag)
                body = answers.kept(key) if self.kept else None
                if body is None and self.kept:
                    body = await answers.once(key, lambda: self._made(hub, query, request, media))
                    answers.keep(key, body, etag)
                elif body is None:
                    made = await self._made(hub, query, request, media)
                    if isinstance(made, Response):
                        return made
                    body = made
                response = await answers.response(request, body, etag if self.method == "GET" else None)
                response.status_code = self.status
            except RequestError as error:
                if self.token:
                    hub.fleet.counters.refuse(error.code)
                refusal = error_response(error, self.media)
                return refusal if is_heard(request) else LastAnswer.of(refusal)
            return response

        return respond

    async def _made(self, hub: Hub, query: Any, request: Request, media: str) -> Any:
        """A Body, or a Response of the handler's own."""
        admitted = await self.admit(hub, request.headers) if self.admit is not None else None
        read = await read_body(request) if self.method == "POST" and not self.same_for_all else b""
        told = (_incoming(request, media, read, admitted),) if self.takes_incoming else ()
        content = await self.handle(hub, query, request.path_params, *told)
        if isinstance(content, Response | Packed):
            return content
        return Body(content.encode() if isinstance(content, str) else msgspec.json.encode(content), media)


def routes(endpoints: Sequence[Endpoint], base: str, hub: Hub, answers: Answers) -> list[Route]:
    """One route for each address, whatever the methods, so that a 405 tells all that are allowed."""
    by_path: dict[str, dict[str, Endpoint]] = {}
    for endpoint in endpoints:
        by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint
    return [
        Route(base + _pattern(path), _by_method(methods, hub, answers), methods=list(methods))
        for path, methods in by_path.items()
    ]


def _by_method(endpoints: Mapping[str, Endpoint], hub: Hub, answers: Answers) -> Respond:
    responders = {method: endpoint.respond(hub, answers) for method, endpoint in endpoints.items()}

    async def respond(request: Request) -> Response:
        return await responders["GET" if request.method == "HEAD" else request.method](request)

    return respond


def _pattern(path: str) -> str:
    # The id of a card that has told no UUID is node/index.
    return re.sub(r"\{id\}", "{id:path}", path)


def _incoming(request: Request, media: str, body: bytes, admitted: Any) -> Incoming:
    return Incoming(
        headers=request.headers,
        media=media,
        body=body,
        admitted=admitted,
    )
