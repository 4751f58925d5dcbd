"""What a hub, or whatever stands in its place, answers an agent that wants to connect."""

from gpulse_probe import connection, tokens, upgrade
from gpulse_probe.connection import Lost
from gpulse_probe.refusal import Refused, refused
from gpulse_probe.websocket import BINARY, TEXT

_ERROR = b'{"error":{"code":"name_taken","message":"another agent","detail":""}}'
SEEDS = [
    b"HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: abc\r\n\r\n"
    b'{"gpulse":"0.1","node":"x","spread_seconds":2.5}',
    b"HTTP/1.1 409 Conflict\r\nContent-Length: 70\r\nRetry-After: 5\r\n\r\n" + _ERROR,
    b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\nRetry-After: 3\r\n\r\n46\r\n" + _ERROR + b"\r\n0\r\n\r\n",
    b"HTTP/1.0 301 Moved\r\nLocation: https://elsewhere/\r\n\r\n",
    b'HTTP/1.1 201 Created\r\n\r\n{"node":"x","token":"gpn_0123456789ab_0123"}',
    # Found here.
    b"HTTP/1.1 3\xb2\r\n\r\n",
    b"HTTP/1.1 503 Busy\r\nRetry-After: \xb2\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 5000,
    # Found by people.
    b'HTTP/1.1 101 x\r\n\r\n{"gpulse":"0.1","node":"x","spread_seconds":' + b"9" * 400 + b"}",
    b'HTTP/1.1 101 x\r\n\r\n{"gpulse":"' + b"9" * 5000 + b'","node":"x"}',
]
WORDS = ["Retry-After:", "\\xb2", "HTTP/1.1 ", "[[[[[[[[", '"spread_seconds":1e999', '"error":', "\\x0d\\x0a"]


def fuzz(data: bytes) -> None:
    head, _, body = data.partition(b"\r\n\r\n")
    try:
        status, headers = connection._read_head(head)
    except Lost as lost:
        assert str(lost)
        return
    assert isinstance(refused(status, headers, body), Refused)
    connection._joined(body)
    for kind in (TEXT, BINARY):
        try:
            hello = connection._read_hello(kind, body)
        except Lost as lost:
            assert str(lost)
        else:
            assert 0 <= hello["spread_seconds"] <= 600
            upgrade.numbers(hello["version"])
    try:
        assert tokens._got(body).isascii()
    except tokens.NoToken as missing:
        assert str(missing)
