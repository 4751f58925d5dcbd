"""The page and its files; everything it needs comes from the hub."""

import hashlib
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gpulse.api.answers import Answers, Body
from gpulse.config import Web
from gpulse.config.files import read_bytes, reason
from gpulse.errors import ConfigError

STATIC = Path(__file__).parent / "static"
# Made by `make web`.
BUILT = STATIC / "web"
TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".json": "application/json",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
# A picture of a site may style its own parts, and do nothing else.
_PICTURE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
_PICTURES = (".svg", ".png")
# A name has the hash of what is in the file: what it names never changes.
_NAMED_BY_CONTENT = "assets"
_FOR_GOOD = "public, max-age=31536000, immutable"
_GZIP = 16 + zlib.MAX_WBITS


class File:
    """Something that is read and compressed once, while the hub runs."""

    def __init__(self, content: bytes, media: str, policy: str = POLICY, cache: str | None = None):
        self._body = _Packed(content, media)
        self._etag = f'W/"{hashlib.blake2s(content, digest_size=8).hexdigest()}"'
        self._headers = {"Content-Security-Policy": policy, **({"Cache-Control": cache} if cache else {})}

    @classmethod
    def read(cls, path: Path, policy: str = POLICY, cache: str | None = None) -> "File":
        return cls(path.read_bytes(), TYPES[path.suffix], policy, cache)

    async def respond(self, request: Request, answers: Answers) -> Response:
        if answers.unchanged(request, self._etag):
            response = answers.not_modified(self._etag)
        else:
            response = await answers.response(request, self._body, self._etag)
        # A 304 replaces the headers of the answer the browser has kept: it must say the same.
        response.headers.update(self._headers)
        return response


class _Packed(Body):
    """Compressed as well as can be, as it is done once."""

    async def gzip(self) -> bytes:
        if self._gzip is None:
            squeezer = zlib.compressobj(9, wbits=_GZIP)
            self._gzip = squeezer.compress(self.plain) + squeezer.flush()
        return self._gzip


class OwnFiles(NamedTuple):
    """What a site adds to the page."""

    logo: File | None = None
    custom_css: File | None = None

    @classmethod
    def read(cls, web: Web) -> "OwnFiles":
        """As the settings name them; ConfigError where one cannot be read."""
        logo = custom_css = None
        if web.logo is not None:
            if web.logo.suffix.lower() not in _PICTURES:
                raise ConfigError([f"web.logo: {web.logo} is no picture the page can show; allowed: .svg and .png"])
            logo = File(_content("logo", web.logo), TYPES[web.logo.suffix.lower()], _PICTURE_POLICY)
        if web.custom_css is not None:
            custom_css = File(_content("custom_css", web.custom_css), TYPES[".css"])
        return cls(logo, custom_css)


def _content(key: str, path: Path) -> bytes:
    try:
        return read_bytes(path)
    except OSError as error:
        words = f"web.{key}: {path} cannot be read ({reason(error)}); put it there, or take the setting away"
        raise ConfigError([words]) from None


def page_routes(base: str, title: str, own: OwnFiles, answers: Answers, built: Path = BUILT) -> list[Route]:
    """The page at `base` and its files below, those that a site can set first."""
    config = {"hub": "", "title": title, "logo": "logo" if own.logo else None, "custom_css": own.custom_css is not None}
    files: dict[str, File] = {"config.json": File(msgspec.json.encode(config), TYPES[".json"])}
    if own.logo is not None:
        files["logo"] = own.logo
    if own.custom_css is not None:
        files["custom.css"] = own.custom_css
    if (built / "index.html").exists():
        files = {**_built_files(built), **files}
    else:
        files[""] = File.read(STATIC / "unbuilt.html")
    return file_routes(base + "/", files, answers)


def file_routes(base: str, files: Mapping[str, File], answers: Answers) -> list[Route]:
    return [_route(base + name, file, answers) for name, file in files.items()]


def _built_files(built: Path) -> dict[str, File]:
    """By address; maps of the sources and the like stay here."""
    found = {}
    for path in sorted(built.rglob("*")):
        if path.suffix in TYPES and path.is_file():
            name = path.relative_to(built).as_posix()
            for_good = name.startswith(_NAMED_BY_CONTENT + "/")
            found["" if name == "index.html" else name] = File.read(path, cache=_FOR_GOOD if for_good else None)
    return found


def _route(path: str, file: File, answers: Answers) -> Route:
    async def respond(request: Request) -> Response:
        return await file.respond(request, answers)

    return Route(path, respond)
