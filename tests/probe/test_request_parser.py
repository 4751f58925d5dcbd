"""The agent's reader of HTTP requests: any bytes in any pieces, bounded memory, and one meaning for each request."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpulse_probe.request_parser import LONGEST_BODY, LONGEST_HEAD, BadRequest, RequestParser

PIECE = 16 << 10


def read(*pieces):
    """All requests, and the refusal if there was one; feeds as a server does."""
    parser = RequestParser()
    found = []
    for piece in pieces:
        parser.feed(piece)
        try:
            while (request := parser.next()) is not None:
                found.append(request)
        except BadRequest as bad:
            return found, bad.status
        assert parser.size <= max(LONGEST_HEAD + 4, LONGEST_BODY)
        assert parser.begun == (parser.size > 0 or parser._head is not None)
    return found, None


def cut(data, places):
    places = sorted({place % (len(data) + 1) for place in places})
    return [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]


def test_a_request():
    text = b'POST /get-status?a=1&b HTTP/1.1\r\nHost: x\r\nContent-LENGTH:  14\t\r\n\r\n{"passwd":"x"}'
    [request], refused = read(text)
    assert refused is None
    assert request.method == "POST"
    assert request.path == "/get-status"
    assert request.query == {"a": "1", "b": ""}
    assert request.headers == {"host": "x", "content-length": "14"}
    assert request.body == b'{"passwd":"x"}'
    assert request.keep_alive


@pytest.mark.parametrize(
    ("head", "kept"),
    [
        (b"GET / HTTP/1.1\r\n", True),
        (b"GET / HTTP/1.1\r\nConnection: Close\r\n", False),
        (b"GET / HTTP/1.0\r\n", False),
        (b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n", True),
    ],
)
def test_how_long_it_is_kept(head, kept):
    [request], _ = read(head + b"\r\n")
    assert request.keep_alive == kept


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET / HTTP/2\r\n\r\n", 505),
        (b"GET / HTTP/1.1 \r\n\r\n", 400),
        (b"GET  / HTTP/1.1\r\n\r\n", 400),
        (b"GET http://x/ HTTP/1.1\r\n\r\n", 400),
        (b"G(T / HTTP/1.1\r\n\r\n", 400),
        (b"GET /\x01 HTTP/1.1\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nA : b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nA: b\nC: d\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: 1_0\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nContent-Length: \u00b2\r\n\r\n".encode("latin-1"), 400),
        (b"GET / HTTP/1.1\r\nContent-Length: 65537\r\n\r\n", 413),
        (b"GET / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
        (b"GET / HTTP/1.1\r\nA: " + b"x" * LONGEST_HEAD + b"\r\n\r\n", 431),
        (b"x" * (LONGEST_HEAD + 1), 431),
    ],
)
def test_refusals(data, status):
    assert read(data) == ([], status)
    assert read(*[bytes([byte]) for byte in data]) == ([], status)


def test_the_longest_that_is_taken():
    head = b"POST / HTTP/1.1\r\nContent-Length: %d\r\nA: " % LONGEST_BODY
    head += b"x" * (LONGEST_HEAD - len(head))
    data = head + b"\r\n\r\n" + b"y" * LONGEST_BODY
    [request], refused = read(*cut(data, range(0, len(data), PIECE)))
    assert refused is None
    assert len(request.body) == LONGEST_BODY


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["GET", "POST", "HEAD"]),
            st.text("abc/-", max_size=20),
            st.binary(max_size=200),
            st.integers(0, 2),
        ),
        max_size=5,
    ),
    st.lists(st.integers(0, 1 << 16), max_size=8),
)
def test_pieces_do_not_matter(asked, places):
    data = b"".join(
        b"\r\n" * blanks + f"{method} /{path} HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
        for method, path, body, blanks in asked
    )
    found, refused = read(*cut(data, places))
    assert refused is None
    assert [(one.method, one.path, one.body) for one in found] == [
        (method, "/" + path, body) for method, path, body, _ in asked
    ]


WORDS = st.sampled_from(
    [
        b"GET",
        b" ",
        b"/",
        b"HTTP/1.1",
        b"\r\n",
        b"\r\n\r\n",
        b":",
        b"Content-Length",
        b"9",
        b"Transfer-Encoding: chunked",
        b"\n",
    ]
)


@given(st.lists(st.one_of(WORDS, st.binary(max_size=40)), max_size=60).map(b"".join), st.lists(st.integers(0, 4096)))
@example(b"\r\n" * 20000, [1, 2, 3])
@example(b"\r" * 10000, [])
def test_any_bytes_mean_the_same_in_any_pieces(data, places):
    whole = read(*[data[start : start + PIECE] for start in range(0, len(data), PIECE)])
    assert read(*cut(data, places)) == whole
