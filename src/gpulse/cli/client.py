"""Asks a running hub by its API."""

import gzip
import ipaddress
import socket
import ssl
import urllib.error
import urllib.request
import zlib
from http.client import HTTPException, IncompleteRead, RemoteDisconnected
from typing import TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

import gpulse
from gpulse.errors import HubError, HubRefused, HubSilent

DEFAULT_HUB = "http://127.0.0.1:7070"
_TIMEOUT_SECONDS = 15.0
_PAGE_SIZE = 1000

T = TypeVar("T")


class Page(msgspec.Struct):
    """A list as the hub gives it; `body` is its JSON. What is in the items is decoded by whom it concerns."""

    items: list[msgspec.Raw]
    total: int
    next: int | None = None
    body: bytes = b""


class _Problem(msgspec.Struct):
    code: str
    message: str
    detail: str = ""


class _Refusal(msgspec.Struct):
    error: _Problem


class Hub:
    """A hub at an address. What goes wrong is one sentence."""

    def __init__(self, url: str) -> None:
        self.url = _checked(url)
        # A proxy for the Internet cannot reach this machine's own loopback.
        handlers = [urllib.request.ProxyHandler({})] if _is_loopback(self.url) else []
        self._opener = urllib.request.build_opener(*handlers)

    def get(self, path: str, query: dict[str, str] | None = None) -> bytes:
        """The JSON at a path below /api/v1."""
        return self._ask(f"/api/v1{path}", "?" + urlencode(query) if query else "", "application/json")

    def file(self, path: str) -> bytes:
        """A file of the page: /config.json."""
        return self._ask(path, "", "*/*")

    def _ask(self, path: str, parameters: str, accept: str) -> bytes:
        address = f"{self.url}{path}{parameters}"
        headers = {
            "Accept": accept,
            "Accept-Encoding": "gzip",
            "User-Agent": f"gpulse/{gpulse.__version__}",
        }
        # The scheme is checked when the hub is named.
        request = urllib.request.Request(address, headers=headers)  # noqa: S310
        try:
            status, body = self._fetch(request)
        except (gzip.BadGzipFile, zlib.error, EOFError):
            raise self._stranger("its answer cannot be unpacked") from None
        except RemoteDisconnected:
            raise self._silent("it closed the connection without an answer") from None
        except IncompleteRead:
            raise self._silent("the connection broke in the middle of its answer") from None
        except HTTPException as error:
            raise self._stranger(f"its answer is not HTTP: {type(error).__name__}") from None
        except OSError as error:
            raise self._silent(_reason(error)) from None
        if status >= 400:
            raise self._refusal(status, body, path)
        return body

    def _fetch(self, request: urllib.request.Request) -> tuple[int, bytes]:
        try:
            answer = self._opener.open(request, timeout=_TIMEOUT_SECONDS)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            body = bytes(answer.read())
            return int(answer.status), gzip.decompress(body) if answer.headers["Content-Encoding"] == "gzip" else body

    def pages(self, path: str, query: dict[str, str], size: int = _PAGE_SIZE) -> Page:
        """All of a list, however many pages it has."""
        page = self._page(path, query | {"limit": str(size)})
        if page.next is None:
            return page
        items, seen = page.items, 0
        while page.next is not None and page.next > seen:
            seen = page.next
            page = self._page(path, query | {"limit": str(size), "offset": str(seen)})
            items += page.items
        return Page(items, page.total, None, b'{"items":[%s],"total":%d,"next":null}' % (b",".join(items), page.total))

    def decode(self, body: bytes | msgspec.Raw, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(body, type=kind)
        except (msgspec.ValidationError, UnicodeDecodeError) as error:
            raise HubError(
                f"the hub at {self.url} answers in a way gpulse {gpulse.__version__} does not know ({error}); "
                "install the hub's version here"
            ) from None
        except msgspec.DecodeError:
            raise self._stranger("its answer is not JSON") from None

    def _page(self, path: str, query: dict[str, str]) -> Page:
        body = self.get(path, query)
        try:
            page = msgspec.json.decode(body, type=Page)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._stranger(f"its answer for /api/v1{path} is not a list of gpulse") from None
        page.body = body
        return page

    def _refusal(self, status: int, body: bytes, path: str) -> HubError:
        try:
            problem = msgspec.json.decode(body, type=_Refusal).error
        except (msgspec.DecodeError, UnicodeDecodeError):
            if status in {401, 403}:
                return HubError(f"the hub at {self.url} wants a login first (HTTP {status})")
            if status in {502, 503, 504}:
                return self._silent(f"HTTP {status} from a proxy in front of it")
            return self._stranger(f"HTTP {status} for {path}")
        if problem.code == "not_found":
            return HubError(
                f"the hub at {self.url} has no {path}; it is of another version than gpulse "
                f"{gpulse.__version__}: install the hub's version here"
            )
        return HubRefused(problem.code, problem.message, problem.detail)

    def _silent(self, reason: str) -> HubSilent:
        return HubSilent(
            f"no gpulse hub answers at {self.url} ({reason}); start one with `gpulse up` or name it with --hub URL"
        )

    def _stranger(self, reason: str) -> HubError:
        return HubError(f"what answers at {self.url} is not a gpulse hub ({reason}); name the hub with --hub URL")


def quoted(name: str) -> str:
    """A name as a part of a path."""
    return quote(name, safe="")


def _checked(url: str) -> str:
    wanted = f"--hub {url!r} is not an address; write it like {DEFAULT_HUB}"
    address = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        raise HubError(wanted) from None
    plain = all("!" <= one <= "~" for one in address)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment or not plain:
        raise HubError(wanted)
    return address.rstrip("/")


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _reason(error: OSError) -> str:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, TimeoutError):
        return f"no answer within {_TIMEOUT_SECONDS:.0f} s"
    if isinstance(cause, socket.gaierror):
        return "its name is not known here"
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {cause.verify_message}"
    if isinstance(cause, ssl.SSLError):
        return "it does not speak TLS; is it http:// instead?"
    text = cause.strerror if isinstance(cause, OSError) and cause.strerror else str(cause)
    return text[:1].lower() + text[1:]
