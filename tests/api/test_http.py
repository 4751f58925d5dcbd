"""How answers travel: errors, ETags, compression, HEAD, headers, sub-paths."""

import gzip
import re

import pytest

from gpulse.api.application import create_app
from gpulse.fleet.fleet import Fleet
from tests.api.asking import answer, ask, get, refusal
from tests.api.fleets import add, small
from tests.api.people import open_access


@pytest.mark.parametrize(
    ("path", "status", "code", "words"),
    [
        ("/api/v1/nodes?colour=red", 400, "unknown_parameter", ["colour", "limit", "sort"]),
        ("/healthz?x=1", 400, "unknown_parameter", ["x", "takes none"]),
        ("/api/v1/nodes?limit=0", 400, "bad_parameter", ["limit", '"0"', ">= 1"]),
        ("/api/v1/nodes?limit=1001", 400, "bad_parameter", ["limit", "<= 1000"]),
        ("/api/v1/nodes?limit=ten", 400, "bad_parameter", ["limit", "ten"]),
        ("/api/v1/nodes?limit=1_0", 400, "bad_parameter", ["limit", "1_0"]),
        ("/api/v1/nodes?limit=1&limit=2", 400, "repeated_parameter", ["limit", "twice"]),
        ("/api/v1/nodes?state=null", 400, "bad_parameter", ["state"]),
        ("/api/v1/nodes?sort=height", 400, "bad_parameter", ["sort", "height"]),
        ("/api/v1/nodes?q=colour:red", 422, "bad_filter", ["colour", "model:"]),
        ("/api/v1/gpus?q=mine", 422, "bad_filter", ["mine", "me="]),
        ("/api/v1/free?same_node=1", 400, "bad_parameter", ["same_node"]),
        ("/api/v1/free?n=99999999999999999999", 400, "bad_parameter", ["n"]),
        ("/api/v1/nothing", 404, "not_found", ["/api/v1/nothing", "api/docs"]),
        ("/api/v1/live", 426, "upgrade_required", ["WebSocket"]),
    ],
)
def test_errors_name_the_thing_and_what_is_allowed(path: str, status: int, code: str, words: list[str]):
    error = refusal(small(), path, status)
    assert error["code"] == code
    for word in words:
        assert word in error["message"] + error["detail"]


def test_only_reading_is_possible():
    response = ask(create_app(small(), access=open_access()), "/api/v1/nodes", "DELETE")
    assert response.status_code == 405
    assert set(response.headers["allow"].split(", ")) == {"GET", "HEAD"}
    assert response.json()["error"]["message"] == "DELETE is not possible at /api/v1/nodes"


def test_what_the_reader_does_not_accept():
    assert get(small(), "/api/v1/nodes", accept="text/html").status_code == 406
    assert get(small(), "/api/v1/nodes", accept="text/html, application/*;q=0.5").status_code == 200
    assert get(small(), "/free", accept="application/json").status_code == 406


def test_a_crash_keeps_the_shape_of_an_error():
    class Broken(Fleet):
        def summary(self):
            raise RuntimeError("secret")

    response = get(Broken(), "/api/v1/summary")
    assert response.status_code == 500
    assert response.json()["error"]["code"] == "internal_error"
    assert "secret" not in response.text
    assert response.headers["x-content-type-options"] == "nosniff"


def test_an_etag_holds_until_the_next_tick():
    fleet = small()
    app = create_app(fleet, access=open_access())
    first = ask(app, "/api/v1/nodes")
    tag = first.headers["etag"]
    assert re.fullmatch(r'W/"[0-9a-f]+-1-0-[0-9a-f]+"', tag)
    same = ask(app, "/api/v1/nodes", headers={"If-None-Match": f'"other", {tag}'})
    assert (same.status_code, same.content) == (304, b"")
    assert same.headers["etag"] == tag
    assert ask(app, "/api/v1/nodes?limit=5").headers["etag"] != tag
    assert ask(create_app(fleet, access=open_access()), "/api/v1/nodes").headers["etag"] != tag, (
        "another start of the hub"
    )
    fleet.tick()
    newer = ask(app, "/api/v1/nodes", headers={"If-None-Match": tag})
    assert newer.status_code == 200
    # Also where somebody has reserved something within the tick.
    fleet.reservations += 1
    assert ask(app, "/api/v1/nodes", headers={"If-None-Match": newer.headers["etag"]}).status_code == 200


def test_an_answer_is_made_once_a_tick():
    fleet = small()
    asked = []

    class Counting(Fleet):
        def summary(self):
            asked.append(1)
            return fleet.summary()

    counting = Counting()
    app = create_app(counting, access=open_access())
    assert ask(app, "/api/v1/summary").json() == ask(app, "/api/v1/summary").json()
    assert len(asked) == 1
    counting.tick()
    ask(app, "/api/v1/summary")
    assert len(asked) == 2


def test_larger_answers_are_compressed_for_those_who_can():
    fleet = small()
    plain = get(fleet, "/api/v1/nodes", accept_encoding="identity")
    assert "content-encoding" not in plain.headers
    packed = get(fleet, "/api/v1/nodes", accept_encoding="gzip")
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["vary"] == "Accept-Encoding, Authorization, Cookie, X-Gpulse"
    assert int(packed.headers["content-length"]) < len(plain.content) / 2
    assert [node["name"] for node in packed.json()["items"]] == [node["name"] for node in plain.json()["items"]]
    assert "content-encoding" not in get(fleet, "/api/v1/nodes", accept_encoding="gzip;q=0").headers
    assert "content-encoding" not in get(fleet, "/healthz", accept_encoding="gzip").headers


def test_a_large_answer_is_whole_when_compressed():
    fleet = Fleet()
    for number in range(300):
        add(fleet, f"gpu{number}", 4)
    fleet.tick()
    page = get(fleet, "/api/v1/nodes?limit=1000", accept_encoding="gzip").json()
    assert len(page["items"]) == page["total"] == 300


def test_head_is_get_without_the_body():
    app = create_app(small(), access=open_access())
    for path in ("/api/v1/summary", "/", "/free"):
        whole = ask(app, path, headers={"Accept-Encoding": "identity"})
        head = ask(app, path, "HEAD", headers={"Accept-Encoding": "identity"})
        assert head.status_code == 200
        assert head.content == b""
        assert head.headers["content-length"] == str(len(whole.content))
        assert head.headers["content-type"] == whole.headers["content-type"]


@pytest.mark.parametrize("path", ["/", "/api/v1/nodes", "/api/docs", "/nothing", "/api/v1/nodes?x=1"])
def test_headers_close_what_nobody_needs(path: str):
    headers = get(small(), path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "SAMEORIGIN"
    assert "no-cache" in headers["cache-control"] or "no-store" in headers["cache-control"]
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self' 'unsafe" not in policy


def test_everything_is_under_the_sub_path():
    app = create_app(small(), access=open_access(), base_path="gpulse/")
    assert ask(app, "/gpulse/api/v1/summary").json()["nodes"] == 4
    assert ask(app, "/gpulse/healthz").status_code == 200
    assert "text/html" in ask(app, "/gpulse/").headers["content-type"]
    assert ask(app, "/gpulse/api/docs").status_code == 200
    assert ask(app, "/api/v1/summary").status_code == 404
    assert (ask(app, "/gpulse").status_code, ask(app, "/gpulse").headers["location"]) == (308, "/gpulse/")
    forwarded = ask(app, "/api/v1/summary", headers={"X-Forwarded-Prefix": "/gpulse"})
    assert forwarded.status_code == 404


def test_no_other_file_can_be_read():
    app = create_app(small(), access=open_access())
    for path in ("/assets/../application.py", "/assets/%2e%2e/application.py", "/assets/", "/api/docs/../../errors.py"):
        assert ask(app, path).status_code == 404


def test_gzip_is_what_it_says():
    import asyncio

    from gpulse.api.answers import Body

    content = b"0123456789" * 50_000
    assert gzip.decompress(asyncio.run(Body(content, "text/plain").gzip())) == content


def test_the_hub_tells_its_title_and_notices():
    app = create_app(small(), access=open_access(), title="Lab", notices=lambda: ["no GPU here"])
    hub = ask(app, "/api/v1/hub").json()
    assert (hub["title"], hub["notices"], hub["generation"]) == ("Lab", ["no GPU here"], 1)
    assert answer(small(), "/api/v1/hub")["notices"] == []
