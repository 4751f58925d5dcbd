"""Puts the API, the live stream and the page together into one ASGI application."""

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute

from gpulse.api import viewer
from gpulse.api.access import Access
from gpulse.api.answers import Answers, Body
from gpulse.api.endpoint import routes as endpoint_routes
from gpulse.api.errors import on_crash, on_http_exception
from gpulse.api.heads import HttpProtocol
from gpulse.api.host_check import HostCheck
from gpulse.api.hub import Examine, Hub, Ingest, nothing_to_examine
from gpulse.api.ingest import Lines, refuse_get
from gpulse.api.live import Live
from gpulse.api.openapi import document
from gpulse.api.page import BUILT, STATIC, File, OwnFiles, file_routes, page_routes
from gpulse.api.routes import ENDPOINTS
from gpulse.api.security import SecurityHeaders, as_origins
from gpulse.api.takeover import WebSocketProtocol
from gpulse.fleet.fleet import Fleet
from gpulse.reservations.desk import Desk

# How uvicorn must run it: compressing every frame for every listener would cost more than all the rest.
SERVER_OPTIONS: dict[str, Any] = {
    "http": HttpProtocol,
    "ws": WebSocketProtocol,
    "ws_per_message_deflate": False,
    "ws_ping_interval": 20.0,
    "ws_ping_timeout": 20.0,
    "ws_max_size": 65536,
    "server_header": False,
    # Longer than proxies keep theirs (nginx: 60 s): where the hub ends one while a request is on its way, that is lost.
    "timeout_keep_alive": 65,
    # Whoever is on this machine could say with X-Forwarded-For that they are the proxy; who is one is in the settings.
    "proxy_headers": False,
}


def create_app(
    fleet: Fleet,
    *,
    access: Access,
    base_path: str = "",
    title: str = "gpulse",
    notices: Callable[[], Sequence[str]] = lambda: (),
    most_listeners: int = 500,
    most_streams: int = 32,
    origins: Sequence[str] = (),
    own_files: OwnFiles | None = None,
    built_page: Path = BUILT,
    ingest: Ingest | None = None,
    strict_transport: bool = False,
    examine: Examine = nothing_to_examine,
    desk: Desk | None = None,
) -> Starlette:
    """The application. `base_path` is a sub-path that a reverse proxy leaves in place: "/gpulse".

    `access` says who may ask; what is served beside the addresses of ENDPOINTS tells nothing of the cluster.
    `origins` are other sites ("https://portal.example.org") whose pages may read everything and the live stream.
    `strict_transport`: browsers shall ask this host by https alone.
    """
    base = "/" + base_path.strip("/") if base_path.strip("/") else ""
    hub = Hub(fleet, title, notices, access, ingest, examine, desk)
    answers = Answers(hub)
    allowed = as_origins(origins)
    live = Live(hub, most_listeners, most_streams, sorted(allowed))
    hub.listeners = lambda: live.listeners
    description = functools.cache(lambda: document(ENDPOINTS, title))
    routes: list[BaseRoute] = [
        *endpoint_routes(ENDPOINTS, base, hub, answers, access),
        Route(base + "/api/v1/live", live.refuse_plain, name="live"),
        WebSocketRoute(base + "/api/v1/live", live.serve),
        Route(base + "/api/v1/ingest", refuse_get),
        WebSocketRoute(base + "/api/v1/ingest", Lines(hub).serve),
        _fixed(base + "/api/openapi.json", description, answers),
        _fixed(base + "/api/docs/openapi.json", lambda: viewer.for_viewer(description()), answers),
        # Relative, as a proxy may have taken a sub-path away.
        _redirect(base + "/api/docs/", "../docs"),
        *file_routes(base + "/api/docs", _viewer_files(), answers),
        *page_routes(base, title, own_files or OwnFiles(), answers, built_page),
    ]
    if base:
        routes.append(_redirect(base, base + "/"))
    app = Starlette(
        routes=routes,
        middleware=[Middleware(SecurityHeaders, allowed, strict_transport), Middleware(HostCheck, access.hosts)],
        exception_handlers={HTTPException: on_http_exception, Exception: on_crash},
    )
    app.router.redirect_slashes = False
    app.state.live = live
    return app


def _redirect(path: str, target: str) -> Route:
    async def respond(request: Request) -> Response:
        del request
        return RedirectResponse(target, 308)

    return Route(path, respond)


def _fixed(path: str, make: Callable[[], object], answers: Answers) -> Route:
    """Made when somebody first asks for it: most never do, and a hub starts without it."""
    body = functools.cache(lambda: Body(msgspec.json.encode(make()), "application/json"))

    async def respond(request: Request) -> Response:
        return await answers.response(request, body(), None)

    return Route(path, respond)


def _viewer_files() -> dict[str, File]:
    """By what follows /api/docs."""
    return {
        "": File.read(STATIC / "docs" / "index.html", viewer.POLICY),
        "/docs.js": File.read(STATIC / "docs" / "docs.js"),
        **{f"/{name}": File.read(viewer.asset_folder() / name) for name in viewer.ASSETS},
    }
