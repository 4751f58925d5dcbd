"""Bodies of requests: limits before and after unpacking, broken and slow ones, and answers that arrive."""

import gzip
import json
import resource
import socket
import time
import zlib
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from gpulse.api.answers import Answers
from gpulse.api.bodies import MOST_BYTES, Incoming, LastAnswer, decode, read_body
from gpulse.api.endpoint import Endpoint, routes
from gpulse.api.errors import error_response, on_http_exception
from gpulse.api.hub import Hub
from gpulse.api.openapi import document
from gpulse.errors import RequestError
from tests.api.asking import ask
from tests.api.fleets import small
from tests.api.people import open_access
from tests.api.serving import exchange, served
from tests.patience import PATIENCE_SECONDS


class Echo(msgspec.Struct):
    """What came."""

    size: int
    word: str


async def echo(hub: Hub, query: object, path: Mapping[str, str], incoming: Incoming) -> Echo:
    del hub, query, path
    return Echo(size=len(incoming.body), word=incoming.headers.get("x-word", ""))


async def told(hub: Hub, query: object, path: Mapping[str, str]) -> Echo:
    del hub, query, path
    return Echo(size=0, word="read")


async def doorkeeper(hub: Hub, headers: Mapping[str, str]) -> str:
    del hub
    if headers.get("authorization") != "Bearer right":
        raise RequestError(401, "no_token", "there is no token")
    return "somebody"


async def admitted(hub: Hub, query: object, path: Mapping[str, str], incoming: Incoming) -> Echo:
    del hub, query, path
    return Echo(size=len(incoming.body), word=incoming.admitted)


ENDPOINTS = (
    Endpoint(path="/echo", name="readEcho", summary="Reads.", answer=Echo, handle=told, may="read"),
    Endpoint(
        path="/echo",
        name="echo",
        summary="Tells what came.",
        answer=Echo,
        handle=echo,
        may="read",
        method="POST",
        body=Echo,
        status=201,
        errors=(400, 401, 413, 415),
    ),
    Endpoint(
        path="/closed",
        name="closed",
        summary="Needs a token.",
        answer=Echo,
        handle=admitted,
        may="node",
        method="POST",
        admit=doorkeeper,
    ),
)


async def impatient(request: Request) -> Response:
    try:
        return Response(await read_body(request, seconds=0.3))
    except RequestError as error:
        return LastAnswer.of(error_response(error))


async def greet(websocket: WebSocket) -> None:
    await websocket.accept()
    await websocket.close()


def make_app() -> Starlette:
    access = open_access()
    hub = Hub(small(), "gpulse", lambda: (), access)
    return Starlette(
        routes=[
            *routes(ENDPOINTS, "", hub, Answers(hub), access),
            WebSocketRoute("/echo", greet),
            Route("/impatient", impatient, methods=["POST"]),
        ],
        exception_handlers={405: on_http_exception},
    )


APP = make_app()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with served(APP) as port:
        yield port


def post(port: int, content: bytes, path: str = "/echo", **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.post(f"http://127.0.0.1:{port}{path}", content=content, headers=named, timeout=PATIENCE_SECONDS)


def refused(response: httpx.Response, status: int, *words: str) -> None:
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert set(error) == {"code", "message", "detail"}
    for word in words:
        assert word in error["message"] + error["detail"]


def head(path: str, *lines: str) -> bytes:
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: hub", *lines, "", ""]).encode()


def bare(content: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(content) + packer.flush()


@pytest.mark.parametrize(
    ("coding", "pack"),
    [
        ("identity", bytes),
        ("gzip", gzip.compress),
        ("x-gzip", gzip.compress),
        ("GZIP", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", bare),
    ],
)
def test_what_came_is_unpacked(port: int, coding: str, pack):
    for size in (0, 1, 5000, MOST_BYTES):
        response = post(port, pack(b"x" * size), Content_Encoding=coding, X_Word="hello")
        assert response.status_code == 201, response.text
        assert response.json() == {"size": size, "word": "hello"}


def test_one_byte_too_many(port: int):
    limit = f"{MOST_BYTES:,}"
    refused(post(port, b"x" * (MOST_BYTES + 1)), 413, limit, "unpacks")
    refused(post(port, gzip.compress(b"x" * (MOST_BYTES + 1)), Content_Encoding="gzip"), 413, limit)
    refused(post(port, zlib.compress(b"x" * (MOST_BYTES + 1)), Content_Encoding="deflate"), 413, limit)


def test_in_pieces_of_unknown_number(port: int):
    def pieces(count: int) -> Iterator[bytes]:
        for _ in range(count):
            yield b"x" * 65536

    url = f"http://127.0.0.1:{port}/echo"
    assert httpx.post(url, content=pieces(16), timeout=PATIENCE_SECONDS).json()["size"] == MOST_BYTES
    refused(httpx.post(url, content=pieces(17), timeout=PATIENCE_SECONDS), 413)


def bomb(megabytes: int) -> bytes:
    """A deflate stream that unpacks to so much: one block, over and over."""
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    block = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return block * megabytes + bare(b"")


@pytest.mark.parametrize("gigabytes", [0.9, 10])
def test_what_unpacks_to_gigabytes_costs_no_memory(port: int, gigabytes: float):
    packed = bomb(int(gigabytes * 1024))
    assert (len(packed) > MOST_BYTES) == (gigabytes > 1), "one that has to be unpacked to be seen, one that is not"

    def pieces() -> Iterator[bytes]:
        for start in range(0, len(packed), 65536):
            yield packed[start : start + 65536]

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.monotonic()
    packing = {"Content-Encoding": "deflate"}
    refused(
        httpx.post(f"http://127.0.0.1:{port}/echo", content=pieces(), headers=packing, timeout=PATIENCE_SECONDS), 413
    )
    assert time.monotonic() - began < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20 * 1024


@pytest.mark.parametrize(
    ("coding", "content", "words"),
    [
        ("gzip", b"not packed", ["gzip", "incorrect header"]),
        ("gzip", gzip.compress(b"x" * 5000)[:-9], ["ends too early"]),
        ("gzip", gzip.compress(b"x") + gzip.compress(b"y"), ["follow after its end"]),
        ("gzip", gzip.compress(b"x") + b"\0", ["1 bytes follow"]),
        ("gzip", b"", ["ends too early"]),
        ("deflate", zlib.compress(b"x" * 5000)[:-1], ["ends too early"]),
        ("deflate", zlib.compress(b"x") + b"more", ["4 bytes follow"]),
        ("deflate", b"\xff\xff\xff", ["deflate"]),
    ],
)
def test_what_cannot_be_unpacked_is_told(port: int, coding: str, content: bytes, words: list[str]):
    refused(post(port, content, Content_Encoding=coding), 400, *words)


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip", "compress"])
def test_other_ways_to_pack(port: int, coding: str):
    refused(post(port, b"x", Content_Encoding=coding), 415, coding, "gzip, deflate or identity")


@given(content=st.binary(max_size=200), coding=st.sampled_from(["gzip", "deflate"]), start=st.booleans())
def test_no_bytes_break_the_unpacking(content: bytes, coding: str, start: bool):
    packed = (gzip.compress(b"abc")[:12] if start else b"") + content
    response = ask(APP, "/echo", "POST", {"Content-Encoding": coding}, packed)
    assert response.status_code in (201, 400)


def test_a_slow_sender_is_not_waited_for(port: int):
    began = time.monotonic()
    answer = exchange(port, head("/impatient", "Content-Length: 100") + b"only this")
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"0.3 s" in answer
    assert time.monotonic() - began < 3


def test_a_body_shorter_than_told_harms_nobody(port: int):
    with socket.create_connection(("127.0.0.1", port), 5) as connection:
        connection.sendall(head("/echo", "Content-Length: 100") + b"only this")
        connection.shutdown(socket.SHUT_WR)
        connection.recv(65536)
    assert post(port, b"next").status_code == 201


@pytest.mark.parametrize("told", ["-1", "ten", "1, 2", "99999999999999999999999"])
def test_a_length_that_is_none(port: int, told: str):
    answer = exchange(port, head("/echo", f"Content-Length: {told}", "Connection: close") + b"x")
    assert answer[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 413")


def test_a_refusal_arrives_while_the_body_still_comes(port: int):
    with socket.create_connection(("127.0.0.1", port), 5) as connection:
        connection.sendall(head("/echo", f"Content-Length: {1 << 40}"))
        answer = connection.recv(65536)
        assert answer.startswith(b"HTTP/1.1 413")
        assert b"connection: close" in answer.lower()
        # A sender that only writes does not hang either: the connection ends.
        with pytest.raises(OSError, match=r"reset|pipe"):
            for _ in range(100_000):
                connection.sendall(bytes(65536))


def test_a_refusal_survives_a_sender_that_reads_last(port: int):
    size = 8 << 20
    answer = exchange(port, head("/echo", f"Content-Length: {size}") + bytes(size))
    assert answer.startswith(b"HTTP/1.1 413")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "too_large"


def test_who_asks_first_is_not_told_to_go_on(port: int):
    for request, status in (
        (head("/echo", f"Content-Length: {1 << 30}", "Expect: 100-continue"), b"HTTP/1.1 413"),
        (head("/closed", "Content-Length: 10", "Expect: 100-continue"), b"HTTP/1.1 401"),
    ):
        answer = exchange(port, request)
        assert answer.startswith(status)
        assert b"100 Continue" not in answer


def test_the_doorkeeper_comes_before_the_body(port: int):
    response = post(port, b"not packed", "/closed", Content_Encoding="br")
    refused(response, 401)
    assert response.headers["www-authenticate"] == "Bearer"
    response = post(port, b"four", "/closed", Authorization="Bearer right")
    assert response.json() == {"size": 4, "word": "somebody"}
    assert "etag" not in response.headers


def test_several_methods_at_one_address(port: int):
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_SECONDS) as client:
        assert client.get("/echo").json()["word"] == "read"
        assert client.head("/echo").status_code == 200
        response = client.delete("/echo")
        assert response.status_code == 405
        assert set(response.headers["allow"].split(", ")) == {"GET", "HEAD", "POST"}
        assert set(client.get("/closed").headers["allow"].split(", ")) == {"POST"}


def test_a_websocket_at_the_address_of_a_post(port: int):
    from websockets.sync.client import connect

    with connect(f"ws://127.0.0.1:{port}/echo"):
        assert post(port, b"x").status_code == 201


def test_when_to_ask_again_is_told():
    response = error_response(RequestError(503, "full", "the hub is full", retry_seconds=7))
    assert response.headers["retry-after"] == "7"


def test_the_description_has_bodies_statuses_and_tokens():
    paths = document(ENDPOINTS, "gpulse")["paths"]
    assert set(paths["/echo"]) == {"get", "post"}
    described = paths["/echo"]["post"]
    schema = {"$ref": "#/components/schemas/Echo"}
    assert described["requestBody"] == {"required": True, "content": {"application/json": {"schema": schema}}}
    assert set(described["responses"]) == {"201", "400", "401", "403", "413", "415", "421"}
    assert paths["/closed"]["post"]["security"] == [{"token": []}]
    assert described["security"] == [{"key": []}, {"session": [], "page_key": []}, {}]


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"size":"x"}', b"\xff", b"[" * 100_000, b'{"x":' * 100_000], ids=lambda body: body[:9]
)
def test_json_that_is_not_as_it_should_be(body: bytes):
    with pytest.raises(RequestError) as caught:
        decode(body, Echo)
    assert (caught.value.status, caught.value.code) == (400, "bad_body")


class Part(msgspec.Struct):
    """Something within."""

    name: Annotated[str, Meta(min_length=1, max_length=5)] = "x"
    code: Annotated[str, Meta(min_length=2)] = "xx"


class Bounded(msgspec.Struct):
    """A body with limits."""

    comment: Annotated[str, Meta(max_length=2000)] | None = None
    parts: Annotated[list[Part], Meta(max_length=2)] = []
    scopes: Annotated[list[str], Meta(min_length=1)] | None = None
    count: Annotated[int, Meta(ge=1, le=7)] = 1
    ratio: Annotated[float, Meta(gt=0, lt=1)] = 0.5


@pytest.mark.parametrize(
    ("given", "message", "detail"),
    [
        ({"comment": "x" * 2001}, "the comment is longer than 2000 characters", "shorten it"),
        ({"parts": [{}, {"name": "x" * 6}]}, '"parts[1].name" is longer than 5 characters', "shorten it"),
        ({"parts": [{"name": ""}]}, '"parts[0].name" is empty', "see api/docs"),
        ({"parts": [{"code": ""}]}, '"parts[0].code" is shorter than 2 characters', "see api/docs"),
        ({"parts": [{}] * 3}, '"parts" has more than 2 entries', "see api/docs"),
        ({"scopes": []}, '"scopes" is empty', "see api/docs"),
        ({"count": 0}, '"count" is less than 1', "see api/docs"),
        ({"count": 8}, '"count" is more than 7', "see api/docs"),
        ({"ratio": 0.0}, '"ratio" is not more than 0.0', "see api/docs"),
        ({"ratio": 1.5}, '"ratio" is not less than 1.0', "see api/docs"),
    ],
)
def test_what_is_beyond_a_limit_is_named(given: dict[str, Any], message: str, detail: str):
    with pytest.raises(RequestError) as caught:
        decode(msgspec.json.encode(given), Bounded)
    told = (caught.value.status, caught.value.code, caught.value.message, caught.value.detail)
    assert told == (400, "bad_body", message, detail)


@pytest.mark.parametrize(
    ("given", "detail"),
    [
        (b'{"count": "7"}', "Expected `int`, got `str` - at `$.count`"),
        (b'{"comment": 7}', "Expected `str | null`, got `int` - at `$.comment`"),
        (b'{"comment": "x"', "Input data was truncated"),
    ],
)
def test_other_faults_are_told_as_they_are(given: bytes, detail: str):
    with pytest.raises(RequestError) as caught:
        decode(given, Bounded)
    assert (caught.value.message, caught.value.detail) == ("the body is not as it should be", f"{detail}; see api/docs")


def test_posting_where_one_only_reads():
    response = ask(APP, "/closed", "GET")
    assert response.status_code == 405
