"""An address of the API: declared once, for the router and for the OpenAPI document."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gpulse.api.answers import Answers, Body
from gpulse.api.errors import error_response
from gpulse.api.hub import Hub
from gpulse.api.queries import NoQuery, read_query
from gpulse.errors import RequestError

Handler = Callable[[Hub, Any, Mapping[str, str]], Awaitable[Any]]


@dataclass(frozen=True)
class Endpoint:
    """What is asked for, what comes back, and who answers.

    The handler takes the hub, the query as its struct and the path's parameters. It returns the `answer` type, or
    text where the media type is not JSON, and raises RequestError. It must not keep the loop for long.
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
    # Whether the answer stays true until the fleet's next tick.
    cached: bool = True

    def respond(self, hub: Hub, answers: Answers) -> Callable[[Request], Awaitable[Response]]:
        async def respond(request: Request) -> Response:
            try:
                _accepts(request, self.media)
                query = read_query(self.query, request.query_params)
                key = f"{self.name}?{request.url.path}?{request.url.query}"
                etag = answers.etag(key) if self.cached else None
                if etag is not None and answers.unchanged(request, etag):
                    return answers.not_modified(etag)
                body = answers.kept(key) if self.cached else None
                if body is None:
                    content = await self.handle(hub, query, request.path_params)
                    text = content.encode() if isinstance(content, str) else msgspec.json.encode(content)
                    body = Body(text, self.media)
                    if self.cached:
                        answers.keep(key, body, etag)
                return await answers.response(request, body, etag)
            except RequestError as error:
                return error_response(error, self.media)

        return respond


def _accepts(request: Request, media: str) -> None:
    accepted = request.headers.get("accept", "*/*")
    kinds = [part.split(";")[0].strip().lower() for part in accepted.split(",")]
    if not {media, media.split("/", maxsplit=1)[0] + "/*", "*/*", ""} & set(kinds):
        raise RequestError(
            406,
            "not_acceptable",
            f"this address answers in {media}, the request accepts only {accepted[:100]}",
            f"send Accept: {media}",
        )
