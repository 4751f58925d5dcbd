"""Reads HTTP/1.1 requests from whatever pieces they come in; what it holds is bounded, whatever is sent."""

from collections import namedtuple

LONGEST_HEAD = 8 << 10
LONGEST_BODY = 64 << 10

_END = b"\r\n\r\n"
_LETTERS = b"abcdefghijklmnopqrstuvwxyz"
_NAME = _LETTERS + _LETTERS.upper() + b"0123456789!#$%&'*+-.^_`|~"
_CONTROL = bytes(byte for byte in range(32) if byte != 9) + b"\x7f"

# query: {name: value} as they came; headers: {name in small letters: value}; texts but for the body.
Request = namedtuple("Request", "method path query headers body keep_alive")


class BadRequest(Exception):
    """What was sent is no request that can be answered: the status it gets, a word for programs, and words."""

    def __init__(self, status, code, message):
        Exception.__init__(self, message)
        self.status = status
        self.code = code
        self.message = message


class RequestParser:
    """Takes pieces with feed() and gives whole requests with next(), which is called until it gives None.

    After BadRequest nothing that comes later can be understood.
    """

    def __init__(self):
        self._received = bytearray()
        self._head = None
        self._body_size = 0

    @property
    def begun(self):
        """Whether a part of a request is there."""
        return self._head is not None or bool(self._received)

    @property
    def size(self):
        return len(self._received)

    def feed(self, data):
        self._received += data

    def next(self):
        """The next request, or None where it is not there as a whole."""
        if self._head is None:
            head = self._take_head()
            if head is None:
                return None
            self._head = _parsed(head)
            self._body_size = _body_size(self._head.headers)
        if len(self._received) < self._body_size:
            return None
        request = self._head._replace(body=bytes(self._received[: self._body_size]))
        del self._received[: self._body_size]
        self._head = None
        return request

    def _take_head(self):
        while self._received.startswith(b"\r\n"):
            # Some clients end a body with a line too many.
            del self._received[:2]
        end = self._received.find(_END)
        if max(end, len(self._received) if end < 0 else 0) > LONGEST_HEAD:
            raise BadRequest(431, "head_too_large", "the request's head is larger than %d bytes" % LONGEST_HEAD)
        if end < 0:
            return None
        head = bytes(self._received[:end])
        del self._received[: end + len(_END)]
        return head


def _parsed(head):
    first, _, rest = head.partition(b"\r\n")
    words = first.split(b" ")
    if len(words) != 3 or not words[0] or words[0].translate(None, _NAME) or not words[1].startswith(b"/"):
        raise BadRequest(400, "bad_request", "the first line is not that of an HTTP request")
    method, target, version = words
    if version not in (b"HTTP/1.1", b"HTTP/1.0"):
        raise BadRequest(505, "bad_version", "only HTTP/1.1 and HTTP/1.0 are spoken here")
    if target.translate(None, _CONTROL) != target:
        raise BadRequest(400, "bad_request", "the path has control characters")
    headers = _headers(rest.split(b"\r\n") if rest else ())
    path, _, query = target.decode("latin-1").partition("?")
    pairs = (pair.partition("=") for pair in query.split("&") if pair)
    wanted = headers.get("connection", "").lower()
    keep_alive = "keep-alive" in wanted if version == b"HTTP/1.0" else "close" not in wanted
    query = {name: value for name, _, value in pairs}
    return Request(method.decode("ascii"), path, query, headers, b"", keep_alive)


def _headers(lines):
    headers = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not name or name.translate(None, _NAME) or value.translate(None, _CONTROL) != value:
            raise BadRequest(400, "bad_request", "a line of the head is not a header")
        name = name.decode("ascii").lower()
        value = value.strip(b" \t").decode("latin-1")
        # Two lengths or two tokens are never right; joined, they are none.
        headers[name] = headers[name] + ", " + value if name in headers else value
    return headers


def _body_size(headers):
    if "transfer-encoding" in headers:
        raise BadRequest(411, "length_required", "a body is taken with a Content-Length only, not in chunks")
    text = headers.get("content-length", "0")
    if not text or text.strip("0123456789"):
        raise BadRequest(400, "bad_request", "Content-Length is not a number")
    if len(text) > 10 or int(text) > LONGEST_BODY:
        raise BadRequest(413, "body_too_large", "the body is larger than %d bytes" % LONGEST_BODY)
    return int(text)
