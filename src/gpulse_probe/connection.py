"""One WebSocket to the hub, from its name to its end. Nothing here waits: step() does what can be done now."""

import json
import time

from gpulse_probe import __version__, websocket
from gpulse_probe.link import Link, Lost
from gpulse_probe.refusal import Refused, refused
from gpulse_probe.trust import SYSTEM

OPEN_SECONDS = 30.0
PING_SECONDS = 20.0
PONG_SECONDS = 20.0
_BODY_SECONDS = 5.0
# Of any kind; the hub has little to say.
MOST_FRAMES_A_SECOND = 100
# A hub that asks for pongs and does not read them must not fill this node's memory.
_MOST_UNSENT = 1 << 16
_MOST_HEAD_BYTES = 1 << 14
_MOST_BODY_BYTES = 1 << 16
_HEAD_END = b"\r\n\r\n"
_NOT_A_HUB = "what comes is not what a gpulse hub says: %s; is the address right?"


class Closed(Lost):
    """The hub closed it, with a code and words."""

    def __init__(self, code, words):
        super().__init__(words or "closed with code %d" % code)
        self.code = code


class Connection:
    """hello: what the hub said first, None before that. link: where the bytes go.

    step() is to be called when what it wants() is there, or when it is due. It raises Lost or Refused when it is over,
    and has let go of everything then.
    """

    def __init__(self, hub, token, instance, trust=SYSTEM):
        self.hello = None
        self.link = Link(hub, trust)
        self._hub = hub
        self._token = token
        self._instance = instance
        self._frames = websocket.Frames()
        self._second = 0.0
        self._frames_this_second = 0
        self._deadline = time.monotonic() + OPEN_SECONDS
        self._pong_awaited = False
        self._opening = self._open()

    def wants(self):
        return self.link.wants()

    @property
    def due(self):
        return self._deadline if self.link.due is None else min(self._deadline, self.link.due)

    def step(self):
        try:
            if self._opening is None:
                self._go_on()
            else:
                self._go_on_opening()
        except (Lost, Refused):
            self.close()
            raise
        except websocket.ProtocolError as error:
            self.close()
            raise Lost(_NOT_A_HUB % error)

    def send(self, kind, payload):
        self.link.write(websocket.frame(kind, payload))

    def close(self, code=None):
        """Let go of it; with a code the hub is told first, if that can be done at once."""
        if code is not None and self.hello is not None and self.link.ended is None:
            self.link.write(websocket.close_frame(code))
        self.link.close()

    def _go_on_opening(self):
        try:
            next(self._opening)
        except StopIteration:
            self._opening = None
            self._deadline = time.monotonic() + PING_SECONDS
            return
        if time.monotonic() >= self._deadline:
            raise Lost("no answer within %g s" % OPEN_SECONDS)

    def _open(self):
        """The way to an open connection, in steps."""
        yield from self.link.open()
        key = websocket.new_key()
        self.link.write(self._request(key))
        received = self.link.read()
        while _HEAD_END not in received:
            if len(received) > _MOST_HEAD_BYTES:
                raise Lost(_NOT_A_HUB % "an endless head")
            if self.link.ended:
                raise Lost(self.link.ended + " before there was an answer")
            yield
            self.link.flush()
            received += self.link.read()
        head, _, rest = received.partition(_HEAD_END)
        status, headers = _read_head(head)
        if status != 101:
            body = yield from self._body(headers, rest)
            raise refused(status, headers, body)
        if headers.get("sec-websocket-accept") != websocket.accepted(key):
            raise Refused(_NOT_A_HUB % "an answer to another question", status)
        self._take(rest)
        while self.hello is None:
            yield
            self._take(self.link.read())

    def _request(self, key):
        return (
            "GET %s?instance=%s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\nAuthorization: Bearer %s\r\n"
            "User-Agent: gpulse-agent/%s\r\n\r\n"
            % (self._hub.path, self._instance, self._hub.authority, key, self._token, __version__)
        ).encode("ascii")

    def _body(self, headers, received):
        """What follows the head of a refusal, as far as it comes soon: it only has words."""
        end = self._deadline = min(self._deadline, time.monotonic() + _BODY_SECONDS)
        size = headers.get("content-length", "")
        most = min(int(size), _MOST_BODY_BYTES) if _is_number(size) else _MOST_BODY_BYTES
        chunked = headers.get("transfer-encoding", "").lower() == "chunked"
        while len(received) < most and not self.link.ended and time.monotonic() < end:
            if chunked and received.endswith(b"0" + _HEAD_END):
                break
            yield
            received += self.link.read()
        return _joined(received) if chunked else received[:most]

    def _go_on(self):
        self.link.flush()
        self._take(self.link.read())
        if time.monotonic() < self._deadline:
            return
        if self._pong_awaited:
            raise Lost("the hub has not answered for %g s" % PONG_SECONDS)
        self._pong_awaited = True
        self._deadline = time.monotonic() + PONG_SECONDS
        self.send(websocket.PING, b"")

    def _take(self, data):
        for kind, payload in self._frames.feed(data):
            self._count()
            if kind == websocket.PING:
                if self.link.pending <= _MOST_UNSENT:
                    self.send(websocket.PONG, payload)
            elif kind == websocket.PONG:
                if self._pong_awaited:
                    self._pong_awaited = False
                    self._deadline = time.monotonic() + PING_SECONDS
            elif kind == websocket.CLOSE:
                code, words = websocket.closing(payload)
                self.link.write(websocket.close_frame(websocket.NORMAL))
                raise Closed(code, words)
            elif self.hello is None:
                self.hello = _read_hello(kind, payload)
        if self.link.ended:
            raise Lost(self.link.ended)

    def _count(self):
        now = time.monotonic()
        if now - self._second >= 1.0:
            self._second = now
            self._frames_this_second = 0
        self._frames_this_second += 1
        if self._frames_this_second > MOST_FRAMES_A_SECOND:
            raise Lost("the hub sends more than %d frames a second" % MOST_FRAMES_A_SECOND)


def _read_head(head):
    """The status and the headers, by lower-case name, of an HTTP answer."""
    first, *rest = head.decode("latin-1").split("\r\n")
    words = first.split(None, 2)
    if len(words) < 2 or not words[0].startswith("HTTP/1.") or not _is_number(words[1]):
        raise Lost(_NOT_A_HUB % "no HTTP")
    headers = {}
    for line in rest:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    return int(words[1]), headers


def _is_number(text):
    """isdigit() also takes digits that are none for int()."""
    return 0 < len(text) < 10 and not text.strip("0123456789")


def _joined(chunks):
    """The text of a chunked body, as far as it can be read."""
    text = b""
    while True:
        head, found, rest = chunks.partition(b"\r\n")
        try:
            size = int(head.partition(b";")[0], 16)
        except ValueError:
            return text
        if not found or size <= 0:
            return text
        text += rest[:size]
        chunks = rest[size + 2 :]


def _read_hello(kind, payload):
    try:
        hello = json.loads(payload.decode("utf-8")) if kind == websocket.TEXT else None
        return {
            "version": str(hello["gpulse"]),
            "node": str(hello["node"]),
            "spread_seconds": min(600.0, max(0.0, float(hello.get("spread_seconds", 0.0)))),
        }
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
        raise Lost(_NOT_A_HUB % "its first words are none")
