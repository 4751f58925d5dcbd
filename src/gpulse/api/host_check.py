"""Refuses requests for a host that is not this hub, before anything else looks at them."""

import re

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from gpulse.api.access import bearer
from gpulse.api.bodies import LastAnswer
from gpulse.api.errors import error_response
from gpulse.api.hosts_allowed import HostsAllowed
from gpulse.errors import RequestError

_PROOF = re.compile(r"/api/v1/keys/[^/]+/proof")


class HostCheck:
    """Not of those who show a key or token: no browser sends one by itself, and nodes may know the hub by any name.

    Nor of those who are about to show one and want the hub's proof first, which tells nothing.
    """

    def __init__(self, app: ASGIApp, hosts: HostsAllowed):
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            headers = Headers(scope=scope)
            try:
                if bearer(headers) is None and not _PROOF.search(scope["path"]):
                    self._hosts.check(headers.get("host"))
            except RequestError as error:
                refusal = error_response(error)
                has_body = scope["type"] == "http" and scope["method"] not in ("GET", "HEAD")
                await (LastAnswer.of(refusal) if has_body else refusal)(scope, receive, send)
                return
        await self._app(scope, receive, send)
