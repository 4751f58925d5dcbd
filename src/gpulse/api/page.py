"""The page and its files; everything it needs comes from the hub."""

import hashlib
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from gpulse.api.answers import Answers, Body

STATIC = Path(__file__).parent / "static"
TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)


class File:
    """A file that is read and compressed once."""

    def __init__(self, path: Path, policy: str = POLICY):
        content = path.read_bytes()
        self._body = Body(content, TYPES[path.suffix])
        self._etag = f'W/"{hashlib.blake2s(content, digest_size=8).hexdigest()}"'
        self._policy = policy

    async def respond(self, request: Request, answers: Answers) -> Response:
        if answers.unchanged(request, self._etag):
            response = answers.not_modified(self._etag)
        else:
            response = await answers.response(request, self._body, self._etag)
        # A 304 replaces the headers of the answer the browser has kept: it must say the same.
        response.headers["Content-Security-Policy"] = self._policy
        return response
