"""How commands connect to a hub and know that it is the hub, before they send it a key.

At https by its certificate (`https.py`). Over the UNIX socket of one's own hub by the kernel's word on who is at the
other end. At plain http by a proof: the hub knows the key's digest, and whoever took its port does not. Whoever has
accepted a connection while the hub was down could wait until it is up and pass its proof on, so the proof says how long
the hub has been up, and a connection that is older gets no key.
"""

import hmac
import http.client
import secrets
import socket
import time
import urllib.request
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import msgspec

from gpulse.auth import secret_text
from gpulse.errors import HubError, HubRefused

_MOST_BYTES = 1 << 16


class _Proof(msgspec.Struct):
    proof: str
    up_milliseconds: int


class _Problem(msgspec.Struct):
    code: str
    message: str


class _Refusal(msgspec.Struct):
    error: _Problem


class LocalHandler(urllib.request.AbstractHTTPHandler):
    """Sends a request over a UNIX socket that is connected, whatever the scheme of its URL."""

    # Before the handlers for TCP.
    handler_order = 100

    def __init__(self, connected: socket.socket) -> None:
        super().__init__()
        self._connected = connected

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(partial(_Connected, connected=self._connected), req)

    https_open = http_open
    http_request = https_request = urllib.request.AbstractHTTPHandler.do_request_


class _Connected(http.client.HTTPConnection):
    def __init__(self, *place: Any, connected: socket.socket, **options: Any) -> None:
        super().__init__(*place, **options)
        self._connected = connected

    def connect(self) -> None:
        self._connected.settimeout(self.timeout)
        self.sock = self._connected


class ProvingHandler(urllib.request.HTTPHandler):
    """Lets the hub at `url` prove on each connection that it knows the key, before anything else is sent on it."""

    def __init__(self, url: str, key: str) -> None:
        super().__init__()
        self._url = url
        self._key = key

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        if req.host != urlsplit(self._url).netloc and not req.has_proxy():
            # Where a hub leads to gets no key, so it need not prove anything.
            return super().http_open(req)
        base = self._url if req.has_proxy() else urlsplit(self._url).path
        return self.do_open(partial(_Proving, url=self._url, base=base, key=self._key), req)


class _Proving(http.client.HTTPConnection):
    def __init__(self, *place: Any, url: str, base: str, key: str, **options: Any) -> None:
        super().__init__(*place, **options)
        self._url = url
        self._base = base
        self._own_key = key

    def connect(self) -> None:
        began = time.monotonic()
        super().connect()
        try:
            self._check(began)
        except BaseException:
            self.close()
            raise

    def _check(self, began: float) -> None:
        """Ask on this very connection, which is no older than `began`: on the next one somebody else might answer."""
        parts = secret_text.read(self._own_key)
        if parts is None:
            raise HubError("this is no key: one is gpk_ID_SECRET; was all of it copied?")
        nonce = secrets.token_hex(32)
        asking = http.client.HTTPConnection(urlsplit(self._url).netloc)
        asking.sock = self.sock
        asking.request("GET", f"{self._base}/api/v1/keys/{parts.id}/proof?nonce={nonce}")
        answer = asking.getresponse()
        body = answer.read(_MOST_BYTES)
        if answer.status != 200:
            raise self._refused(answer.status, body)
        try:
            told = msgspec.json.decode(body, type=_Proof)
        except (msgspec.DecodeError, UnicodeDecodeError):
            told = _Proof("", 0)
        right = secret_text.proof(parts.digest, nonce, told.up_milliseconds)
        if not hmac.compare_digest(told.proof.encode("utf-8", "replace"), right.encode()):
            raise HubError(
                f"what answers at {self._url} does not know this key: it is another hub, the key is none of this hub's,"
                " or somebody else has taken the hub's port. The key was not sent. If the hub is right, sign in again:"
                f" gpulse logout --hub {self._url}; gpulse login --hub {self._url}"
            )
        if told.up_milliseconds < 1000 * (time.monotonic() - began):
            raise HubError(
                f"the hub at {self._url} was started after this connection was made, so somebody else may have accepted"
                " it. The key was not sent. Try again"
            )
        if answer.will_close:
            raise HubError(
                f"what answers at {self._url} ends each connection, so the hub can't prove itself on it; the key was"
                " not sent. Let the proxy in front of the hub keep connections, or use https"
            )

    def _refused(self, status: int, body: bytes) -> HubError:
        try:
            problem = msgspec.json.decode(body, type=_Refusal).error
        except (msgspec.DecodeError, UnicodeDecodeError):
            return HubError(
                f"what answers at {self._url} can't prove that it is the hub (HTTP {status}), so the key was not sent;"
                " name the hub with --hub URL"
            )
        if problem.code == "not_found":
            return HubError(
                f"the hub at {self._url} is older than this gpulse and can't prove that it is the hub, so the key was"
                " not sent; upgrade the hub, or use https"
            )
        return HubRefused(problem.code, problem.message, "the key was not sent", status)
