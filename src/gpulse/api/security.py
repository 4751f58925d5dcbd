"""Headers on every answer that cost nothing and close what nobody needs; and which other sites may read."""

from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'self'",
    "Cache-Control": "no-store",
}
# Half a year. Browsers hold it against every port of the host: so only a hub that has the host's usual one may say it.
STRICT_TRANSPORT = "max-age=15552000"
_USUAL_PORTS = {"http": 80, "https": 443}


class SecurityHeaders:
    """Adds them where an answer does not say otherwise.

    Pages of the `origins` may read what anybody can GET, or what a key lets them: browsers ask first for anything
    more, and are told no. That they may send cookies is never said.
    """

    def __init__(self, app: ASGIApp, origins: frozenset[str] = frozenset(), strict_transport: bool = False):
        """`strict_transport`: browsers shall ask this host by https alone."""
        self._app = app
        self._origins = origins
        self._headers = HEADERS | ({"Strict-Transport-Security": STRICT_TRANSPORT} if strict_transport else {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if self._origins:
                    self._let_in(Headers(scope=scope).get("origin"), headers)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)

        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif self._asks_first(scope):
            allowed = {"Access-Control-Allow-Headers": "authorization", "Access-Control-Allow-Methods": "GET"}
            await Response(status_code=204, headers=allowed)(scope, receive, send_with_headers)
        else:
            await self._app(scope, receive, send_with_headers)

    def _asks_first(self, scope: Scope) -> bool:
        """Whether a browser asks if a page of such a site may GET with a key."""
        headers = Headers(scope=scope)
        listed = as_origin(headers.get("origin", "")) in self._origins
        return listed and scope["method"] == "OPTIONS" and headers.get("access-control-request-method") == "GET"

    def _let_in(self, origin: str | None, headers: MutableHeaders) -> None:
        # What is kept on the way must not go to a site that may not have it.
        headers.add_vary_header("Origin")
        if origin is not None and as_origin(origin) in self._origins:
            headers["Access-Control-Allow-Origin"] = origin
            headers["Cross-Origin-Resource-Policy"] = "cross-origin"


def as_origin(text: str) -> str:
    """A site as browsers write it: in small letters, and without the port that is usual."""
    try:
        parts = urlsplit(text.lower())
        port = parts.port
    except ValueError:
        return text
    if port is not None and port == _USUAL_PORTS.get(parts.scheme):
        return f"{parts.scheme}://{parts.netloc.rpartition(':')[0]}"
    return text.lower()


def as_origins(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(map(as_origin, texts))
