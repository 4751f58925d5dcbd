"""Asks a running hub by its API."""

import gzip
import socket
import ssl
import urllib.error
import urllib.request
import zlib
from copy import copy
from http.client import HTTPException, IncompleteRead, RemoteDisconnected
from pathlib import Path
from typing import NamedTuple, Self, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

import gpulse
from gpulse.cli import own_keys
from gpulse.cli.hub_url import DEFAULT_HUB, checked, is_loopback
from gpulse.cli.only_utf8 import only_utf8
from gpulse.cli.up import read_config
from gpulse.config import Config
from gpulse.errors import HubError, HubRefused, HubSilent

_TIMEOUT_SECONDS = 15.0
_PAGE_SIZE = 1000
# Refusals that another key, or any, would help against.
_SIGN_IN = ("sign_in", "key_malformed", "key_unknown", "key_expired", "key_revoked", "key_rests")

T = TypeVar("T")


class Page(msgspec.Struct):
    """A list as the hub gives it; `body` is its JSON. What is in the items is decoded by whom it concerns."""

    items: list[msgspec.Raw]
    total: int
    next: int | None = None
    body: bytes = b""
    # Of people: how many more there are, whose names are not told.
    others: int = 0
    # Of how many GPUs nobody knows who is on them.
    unknown_gpus: int = 0


class _Problem(msgspec.Struct):
    code: str
    message: str
    detail: str = ""
    conflicts: list[msgspec.Raw] = []
    alternatives: list[msgspec.Raw] = []


class _Refusal(msgspec.Struct):
    error: _Problem


class Session(NamedTuple):
    """What a page of the hub would send for somebody who has signed in."""

    cookie: str
    page_key: str


class _SignedIn(msgspec.Struct):
    page_key: str


class _Answer(NamedTuple):
    status: int
    body: bytes
    cookie: str | None


class Hub:
    """A hub at an address. What goes wrong is one sentence."""

    def __init__(self, url: str, fingerprint: str | None = None, data: Path | None = None) -> None:
        """`fingerprint` is that of its key at https; `data` where a hub of ours keeps its certificate and a key for us.

        Without `data` it is as of `gpulse up`, for a hub elsewhere whatever the settings of this folder say: whose
        certificate is trusted must not depend on where one happens to be.
        """
        self.url = checked(url)
        if fingerprint is not None and not self._secure():
            raise HubError(f"--fingerprint goes with a hub at https://, and {self.url} is not; name it with --hub URL")
        self._fingerprint = fingerprint
        settings = read_config(None)[0] if is_loopback(self.url) else Config()
        self._data = data or settings.hub.data
        self._opener = self._open()
        self._key = own_keys.find(self.url, self._data, here=is_loopback(self.url))

    def with_key(self, key: str) -> Self:
        """The same hub, asked with another key."""
        other = copy(self)
        other._key = own_keys.OwnKey(key)
        return other

    def _open(self) -> urllib.request.OpenerDirector:
        # A proxy for the Internet cannot reach this machine's own loopback.
        handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})] if is_loopback(self.url) else []
        if self._secure():
            # For TLS alone.
            from gpulse.cli.https import opening

            handlers.append(opening(self._fingerprint, self._data))
        return urllib.request.build_opener(*handlers)

    @property
    def in_the_clear(self) -> bool:
        """Whether others on the network can read along what is sent."""
        return not self._secure() and not is_loopback(self.url)

    def _secure(self) -> bool:
        return urlsplit(self.url).scheme == "https"

    def get(self, path: str, query: dict[str, str] | None = None) -> bytes:
        """The JSON at a path below /api/v1."""
        with only_utf8():
            parameters = "?" + urlencode(query) if query else ""
        return self._ask(f"/api/v1{path}", parameters, "application/json")

    def file(self, path: str) -> bytes:
        """A file of the page: /config.json."""
        return self._ask(path, "", "*/*")

    def sign_in(self, name: str, password: str) -> Session:
        """A new one."""
        answer = self._tell("POST", "/api/v1/session", {"name": name, "password": password}, None)
        return Session((answer.cookie or "").partition(";")[0], self.decode(answer.body, _SignedIn).page_key)

    def send(self, method: str, path: str, content: object = None, session: Session | None = None) -> bytes:
        """Change something below /api/v1, in the name of a session where one is given."""
        return self._tell(method, f"/api/v1{path}", content, session).body

    def _tell(self, method: str, path: str, content: object, session: Session | None) -> "_Answer":
        parts = urlsplit(self.url)
        # What a page of the hub would send.
        own = {"X-Gpulse": "1", "Origin": f"{parts.scheme}://{parts.netloc}"}
        if session is not None:
            own |= {"X-Gpulse": session.page_key, "Cookie": session.cookie}
        with only_utf8():
            data = None if content is None else msgspec.json.encode(content)
        request = self._request(path, "application/json", method, data)
        for name, value in own.items():
            request.add_unredirected_header(name, value)
        signing_in = session is not None or path == "/api/v1/session"
        return self._answered(request, path, None if signing_in else self._key)

    def _ask(self, path: str, parameters: str, accept: str) -> bytes:
        try:
            return self._answered(self._request(path + parameters, accept), path, self._key).body
        except HubRefused as refusal:
            if refusal.status == 401 and self._key is not None and self._key.of_folder:
                # What answers is not the hub of the folder; it may let everybody read.
                self._key = None
            elif self.url == DEFAULT_HUB and refusal.code == "this_is_https":
                # Nobody has said how it is reached.
                self.url = DEFAULT_HUB.replace("http:", "https:")
                self._opener = self._open()
                self._key = own_keys.find(self.url, self._data, here=True)
            else:
                raise
        return self._ask(path, parameters, accept)

    def _request(
        self, path: str, accept: str, method: str = "GET", data: bytes | None = None
    ) -> urllib.request.Request:
        headers = {
            "Accept": accept,
            "Accept-Encoding": "gzip",
            "User-Agent": f"gpulse/{gpulse.__version__}",
        }
        address = f"{self.url}{path}"
        return urllib.request.Request(address, data, headers, method=method)  # noqa: S310 - the scheme was checked

    def _answered(self, request: urllib.request.Request, path: str, key: "own_keys.OwnKey | None") -> "_Answer":
        if key is not None:
            # Wherever the hub may lead to, the key goes no further.
            request.add_unredirected_header("Authorization", f"Bearer {key.text}")
        try:
            answer = self._fetch(request)
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
        if answer.status >= 400:
            raise self._refusal(answer.status, answer.body, path)
        return answer

    def _fetch(self, request: urllib.request.Request) -> "_Answer":
        try:
            answer = self._opener.open(request, timeout=_TIMEOUT_SECONDS)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            body = bytes(answer.read())
            plain = gzip.decompress(body) if answer.headers["Content-Encoding"] == "gzip" else body
            return _Answer(int(answer.status), plain, answer.headers["Set-Cookie"])

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
        more = b',"others":%d' % page.others if page.others else b""
        more += b',"unknown_gpus":%d' % page.unknown_gpus if page.unknown_gpus else b""
        body = b'{"items":[%s],"total":%d,"next":null%s}' % (b",".join(items), page.total, more)
        return Page(items, page.total, None, body, page.others, page.unknown_gpus)

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
        if status == 401 and problem.code in _SIGN_IN:
            here = ", or name the data folder of your hub with --data DIR" if is_loopback(self.url) else ""
            wanted = f"sign in with: gpulse login --hub {self.url}{here}"
            return HubRefused(problem.code, problem.message, wanted, status)
        refusal = HubRefused(problem.code, problem.message, problem.detail, status)
        refusal.conflicts, refusal.alternatives = problem.conflicts, problem.alternatives
        return refusal

    def _silent(self, reason: str) -> HubSilent:
        return HubSilent(
            f"no gpulse hub answers at {self.url} ({reason}); start one with `gpulse up` or name it with --hub URL"
        )

    def _stranger(self, reason: str) -> HubError:
        return HubError(f"what answers at {self.url} is not a gpulse hub ({reason}); name the hub with --hub URL")


def quoted(name: str) -> str:
    """A name as a part of a path."""
    with only_utf8():
        return quote(name, safe="")


def _reason(error: OSError) -> str:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, TimeoutError):
        return f"no answer within {_TIMEOUT_SECONDS:.0f} s"
    if isinstance(cause, socket.gaierror):
        return "its name is not known here"
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {cause.verify_message}; --fingerprint names the hub's own key"
    if isinstance(cause, ssl.SSLError):
        return "it does not speak TLS; is it http:// instead?"
    text = cause.strerror if isinstance(cause, OSError) and cause.strerror else str(cause)
    return text[:1].lower() + text[1:]
