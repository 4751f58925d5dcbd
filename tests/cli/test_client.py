"""What goes wrong between a command and its hub is one sentence, and the exit code 2."""

import gzip
import socket
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.cli.client import Hub, quoted
from gpulse.errors import HubError, HubRefused, HubSilent
from tests.cli.hub import gpu, gpulse, listing


def test_no_hub_is_running():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        done = gpulse("nodes", "--hub", url)
    assert done.stderr == (
        f"gpulse: no gpulse hub answers at {url} (connection refused); "
        "start one with `gpulse up` or name it with --hub URL\n"
    )
    assert (done.returncode, done.stdout) == (2, "")


def test_the_hub_comes_from_the_environment_and_proxies_are_not_asked(hub):
    hub.answers["/gpus"] = listing()
    done = gpulse("gpus", hub=hub.url, http_proxy="http://127.0.0.1:1", no_proxy="")
    assert (done.returncode, done.stdout) == (0, "the hub knows of no GPU yet\n")


def test_a_bad_filter_is_told_in_the_hubs_words(hub):
    hub.refuse("/gpus", 400, "bad_filter", "“mem>x” is not a size; write it like mem>40G")
    done = gpulse("gpus", "mem>x", hub=hub.url)
    assert (done.returncode, done.stderr) == (2, "gpulse: “mem>x” is not a size; write it like mem>40G\n")


@pytest.mark.parametrize("body", [b"<html>hello</html>", b"", b"\xff", b'{"hello":1}', b"[]", b'{"items":3,"total":1}'])
def test_something_else_answers(hub, body):
    hub.answers["/nodes"] = body
    with pytest.raises(HubError, match=f"what answers at {hub.url} is not a gpulse hub"):
        Hub(hub.url).pages("/nodes", {})


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (404, b"Not Found", HubError, "is not a gpulse hub .HTTP 404 for /api/v1/nodes"),
        (404, b"\x1f\x8b", HubError, "is not a gpulse hub"),
        (401, b"", HubError, "wants a login first"),
        (502, b"<html>", HubSilent, "HTTP 502 from a proxy"),
        (500, b'{"error":{"code":"broken","message":"it broke"}}', HubRefused, "^it broke$"),
        (
            404,
            b'{"error":{"code":"not_found","message":"no"}}',
            HubError,
            "has no /api/v1/nodes; it is of another version",
        ),
    ],
)
def test_refusals(hub, status, body, kind, words):
    hub.answers["/nodes"] = (status, body)
    with pytest.raises(kind, match=words):
        Hub(hub.url).pages("/nodes", {})


def test_answers_may_be_packed(hub):
    hub.answers["/nodes"] = gzip.compress(b'{"items":[],"total":7,"next":null}')
    with pytest.raises(HubError, match="is not a gpulse hub"):
        Hub(hub.url).pages("/nodes", {})
    hub.headers["Content-Encoding"] = "gzip"
    assert Hub(hub.url).pages("/nodes", {}).total == 7
    hub.answers["/nodes"] = b"not packed"
    with pytest.raises(HubError, match="cannot be unpacked"):
        Hub(hub.url).pages("/nodes", {})


def test_a_newer_hub_is_named(hub):
    hub.answers["/gpus"] = listing(gpu("gpu1", 0, "levitating"))
    done = gpulse("gpus", hub=hub.url)
    assert done.returncode == 2
    assert "answers in a way gpulse" in done.stderr
    assert "levitating" in done.stderr
    assert "install the hub's version here" in done.stderr


@pytest.mark.parametrize("answer", [b"", b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"])
def test_a_server_that_does_not_speak_http(answer):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            with server.accept()[0] as connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(HubError, match=r"not a gpulse hub|closed the connection|broke in the middle"):
            Hub(f"http://127.0.0.1:{server.getsockname()[1]}").get("/nodes")
        thread.join()


def test_an_unknown_host():
    with pytest.raises(HubSilent, match="its name is not known here"):
        Hub("http://no-such-host.invalid:7070").get("/nodes")


@pytest.mark.parametrize(
    "url", ["", "ftp://x", "http://", "http://a:b:c", "http://x:99999", "http://x/?q=1", "a b", "ü"]
)
def test_what_is_no_address(url):
    with pytest.raises(HubError, match="is not an address; write it like"):
        Hub(url)


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("gpu01:7070", "http://gpu01:7070"),
        ("https://hub.example/gpulse/", "https://hub.example/gpulse"),
        ("http://[::1]:7070", "http://[::1]:7070"),
    ],
)
def test_addresses(url, meant):
    assert Hub(url).url == meant


@given(st.text())
def test_any_address_is_taken_or_refused_in_words(url):
    try:
        assert Hub(url).url.startswith(("http://", "https://"))
    except HubError as error:
        assert "is not an address" in str(error)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_name_stays_one_part_of_a_path(name):
    assert "/" not in quoted(name)
