"""Requests to a node's own agent."""

from typing import Any

from gpulse_probe.request_parser import LONGEST_BODY, LONGEST_HEAD, BadRequest, RequestParser
from tests.fuzz.targets.pieces import pieces

SEEDS = [
    b"GET /snapshot?a=b HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer abc\r\n\r\n",
    b'POST /get-status HTTP/1.0\r\nContent-Length: 13\r\n\r\n{"passwd":""}GET / HTTP/1.1\r\nConnection: close\r\n\r\n',
    b"\r\nGET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
]
WORDS = ["\\x0d\\x0a\\x0d\\x0a", "Content-Length:", "HTTP/1.1", "GET /", "Connection: keep-alive", ", "]


def fuzz(data: bytes) -> None:
    whole = _read(data, max(1, len(data)))
    assert whole == _read(data, 1)
    for request in whole:
        assert isinstance(request, str) or len(request.body) <= LONGEST_BODY


def _read(data: bytes, size: int) -> list[Any]:
    """The requests, and the code of what was refused at last."""
    parser = RequestParser()
    found: list[Any] = []
    for piece in pieces(data, size):
        parser.feed(piece)
        try:
            while (request := parser.next()) is not None:
                found.append(request)
        except BadRequest as refused:
            assert refused.message
            assert 400 <= refused.status < 600
            return [*found, refused.code]
        assert parser.size <= max(LONGEST_HEAD, LONGEST_BODY) + size
    return found
