"""Errors of the API: one shape for programs, words for people."""

import msgspec
from msgspec import UNSET, UnsetType
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from gpulse.api.reservation_views import AlternativeView, Refused, ReservationView
from gpulse.api.security import HEADERS
from gpulse.auth.secret_text import without_secrets
from gpulse.errors import RequestError

CODES = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    406: "not_acceptable",
    408: "too_slow",
    409: "conflict",
    413: "too_large",
    415: "unknown_encoding",
    421: "unknown_host",
    422: "bad_filter",
    426: "upgrade_required",
    429: "too_many_requests",
    431: "head_too_large",
    500: "internal_error",
    502: "sso_trouble",
    503: "not_ready",
}
MEANINGS = {
    400: "A parameter is unknown or has a value that is not allowed, or the body is not as it should be.",
    401: "Nobody is signed in, or the key or token is unknown, revoked or at its end.",
    403: "Who asks may not do this, or another site's page asks for it.",
    404: "There is no such thing.",
    405: "This is not done at this address.",
    406: "The answer cannot be given in a form the request accepts.",
    408: "The request did not arrive in time.",
    409: "It is taken already, or has changed meanwhile.",
    413: "The body is too large, as it is or unpacked.",
    415: "The body is packed in a way the hub does not know.",
    421: "The hub is not known by the name it was asked by.",
    422: "The filter, a time, or what a node sent, is not understood; or a reservation is not within the rules.",
    426: "This address speaks WebSocket.",
    429: "Too much was sent; send less, later.",
    431: "The address and headers are too large.",
    502: "The provider of single sign-on does not answer as it should.",
    503: "The hub does not work as it should.",
}


class ErrorDetail(msgspec.Struct, kw_only=True):
    """What went wrong: a word for programs, a sentence for people, and what is allowed instead."""

    code: str
    message: str
    detail: str
    # Of a reservation that cannot be: those in the way, and what could be had instead.
    conflicts: list[ReservationView] | UnsetType = UNSET
    alternatives: list[AlternativeView] | UnsetType = UNSET


class ErrorAnswer(msgspec.Struct, kw_only=True):
    """Every answer with a status of 400 or more."""

    error: ErrorDetail


def error_response(
    error: RequestError, media: str = "application/json", headers: dict[str, str] | None = None
) -> Response:
    """The error in the form of the address that was asked."""
    headers = dict(headers or {})
    if error.status == 401:
        headers.setdefault("WWW-Authenticate", "Bearer")
    if error.retry_seconds is not None:
        headers.setdefault("Retry-After", str(error.retry_seconds))
    # People send secrets where none belongs, and what is refused is kept by proxies, shells and tickets.
    message, detail = without_secrets(error.message), without_secrets(error.detail)
    if media.startswith("text/plain"):
        text = message + (f"\n{detail}" if detail else "") + "\n"
        return Response(text, error.status, headers, "text/plain")
    told = ErrorDetail(code=error.code, message=message, detail=detail)
    if isinstance(error, Refused):
        told.conflicts = error.conflicts
        told.alternatives = error.alternatives
    return Response(msgspec.json.encode(ErrorAnswer(error=told)), error.status, headers, "application/json")


def on_http_exception(request: Request, exception: Exception) -> Response:
    """What the router refuses: unknown addresses and methods."""
    status = exception.status_code if isinstance(exception, HTTPException) else 500
    headers = dict(exception.headers or {}) if isinstance(exception, HTTPException) else {}
    path = request.url.path
    if status == 404:
        error = RequestError(404, CODES[404], f"there is nothing at {path}", "GET api/docs lists what there is")
    elif status == 405:
        allowed = headers.get("allow") or headers.get("Allow") or "GET, HEAD"
        error = RequestError(405, CODES[405], f"{request.method} is not possible at {path}", f"allowed here: {allowed}")
        headers = {"Allow": allowed}
    else:
        error = RequestError(status, CODES.get(status, "error"), f"{path} cannot be answered", "")
    return error_response(error, headers=headers)


def on_crash(request: Request, exception: Exception) -> Response:
    """A mistake of ours: the log has the traceback, the answer keeps its shape."""
    del exception
    message = f"the hub failed to answer {request.url.path}"
    error = RequestError(500, CODES[500], message, "this is a bug; the hub's log has the details")
    # It is made outside of what adds them to all other answers.
    return error_response(error, headers=dict(HEADERS))
