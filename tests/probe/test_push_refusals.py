"""Hubs, and what is in their place, that answer anything but a welcome: it is said in words, and tried on."""

import json
import time

import pytest

from gpulse_probe import uplink
from tests.probe.hub_stand_in import StandInHub, http, refusal
from tests.probe.pushing import NODE_TOKEN, RunningAgent, go_on, make_push, pauses

__all__ = ["pauses"]

CHUNKED = (
    b"HTTP/1.1 401 Unauthorized\r\nTransfer-Encoding: chunked\r\n\r\n"
    b'1a\r\n{"error":{"code":"revoked"\r\n15;x=y\r\n,"message":"go away"}\r\n1\r\n}\r\n0\r\n\r\n'
)


@pytest.fixture
def hub():
    with StandInHub() as stand_in:
        yield stand_in


@pytest.fixture
def calm(monkeypatch):
    """No chance: every pause is the longest it can be."""
    monkeypatch.setattr(uplink, "fraction", lambda: 1.0)


# (what is answered, what is said, seconds until the next try)
ANSWERS = {
    "unknown token": (
        refusal(401, "unknown_token", "this token is not known"),
        "refuses this node: this token is not known (401 unknown_token)",
        75,
    ),
    "not a node's": (refusal(403, "not_a_node", "a join token"), "a join token (403 not_a_node)", 75),
    "name taken": (refusal(409, "name_taken", "another n1 sends"), "another n1 sends (409 name_taken)", 75),
    "full": (refusal(503, "full", "too many", "Retry-After: 7"), "too many (503 full)", 9.5),
    "moved": (http(301, b"", "Location: https://elsewhere/"), "it answers 301, which leads to https://elsewhere/", 75),
    "not there": (http(404, b"<html>no", kind="text/html"), "it answers 404; is it the address of a gpulse hub?", 75),
    "other site": (http(200, b"<html>hello"), "it answers 200; is it the address of a gpulse hub?", 75),
    "proxy": (http(502, b"<html>bad gateway"), "it answers 502; it or the proxy before it is not ready", 2.5),
    "odd error": (http(400, b'{"error": "no object"}'), "it answers 400; is it", 75),
    "chunked": (CHUNKED, "go away (401 revoked)", 75),
    "no length": (b"HTTP/1.0 404 x\r\n\r\nwords", "it answers 404", 75),
    "no HTTP": (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "what comes is not what a gpulse hub says: no HTTP", 2.5),
    "garbage": (bytes(range(256)) * 100, "an endless head", 2.5),
    "half a head": (
        b"HTTP/1.1 101 Switching\r\nUpgrade: webs",
        "the connection was closed before there was an answer",
        2.5,
    ),
    "nothing": (b"", "before there was an answer", 2.5),
    "other accept": (
        b"HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: no\r\n\r\n",
        "an answer to another question",
        75,
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.usefixtures("calm")
def test_wrong_answers(name, hub, tmp_path, pauses):
    answer, said, pause = ANSWERS[name]
    hub.refuses = answer
    push, words = make_push(tmp_path, hub.url)
    go_on(push, lambda: words)
    assert said in words[0]
    assert str(hub.url) in words[0]
    assert pauses == [pause]
    # Again, and it is not said again.
    push._uplink._begin_at = 0.0
    go_on(push, lambda: hub.tries.qsize() == 2 and push._uplink._under_way is None)
    assert len(words) == 1
    # And when it is well again, it works.
    hub.refuses = None
    push._uplink._begin_at = 0.0
    go_on(push, lambda: push._connection is not None)
    assert words[1].startswith("connected to ")
    push.close()


# (code, words, what is said, seconds until the next try)
CLOSED = [
    (1012, "", "lost {}: closed with code 1012", 5),
    (1001, "the hub ends", "lost {}: the hub ends", 5),
    (4400, "five lines that cannot be read", "{} refuses this node: five lines that cannot be read", 75),
    (4401, "its token was revoked", "{} refuses this node: its token was revoked", 75),
    (4403, "the snapshot names n2", "{} refuses this node: the snapshot names n2", 75),
    (4408, "no line for 10 s", "lost {}: no line for 10 s", 5),
    (4409, "taken over", "{} refuses this node: taken over", 75),
    (4410, "n1 is read over SSH", "{} refuses this node: n1 is read over SSH", 75),
    (4429, "too much", "lost {}: too much", 5),
]


@pytest.mark.parametrize(("code", "reason", "said", "pause"), CLOSED)
@pytest.mark.usefixtures("calm")
def test_close_codes(code, reason, said, pause, hub, tmp_path, pauses):
    hub.hello["spread_seconds"] = 5.0
    push, words = make_push(tmp_path, hub.url)
    push.tick(b'{"schema":1}')
    go_on(push, lambda: push._connection is not None)
    hub.visit().close(code, reason)
    go_on(push, lambda: len(words) == 2)
    assert words[1] == said.format(hub.url) + "; trying on"
    assert pauses == [pause]
    push.close()


@pytest.mark.parametrize(
    "hello",
    [
        "hello",
        7,
        None,
        [],
        {"gpulse": "1"},
        {"gpulse": "1", "node": "n", "spread_seconds": "x"},
        {"gpulse": "1", "node": "n", "spread_seconds": int("9" * 400)},
    ],
)
def test_hellos_that_are_none(hello, hub, tmp_path):
    hub.hello = hello
    push, words = make_push(tmp_path, hub.url)
    go_on(push, lambda: words)
    assert "its first words are none" in words[0]
    push.close()


def test_spread_beyond_reason_is_bounded(hub, tmp_path):
    hub.hello["spread_seconds"] = 1e9
    push, _ = make_push(tmp_path, hub.url)
    go_on(push, lambda: push._connection is not None)
    assert push._connection.hello["spread_seconds"] == 600
    push.close()


def test_frames_that_are_none(hub, tmp_path):
    push, words = make_push(tmp_path, hub.url)
    go_on(push, lambda: push._connection is not None)
    hub.visit().send(b"\xff\xff\xff\xff")
    go_on(push, lambda: len(words) >= 2)
    assert "what comes is not what a gpulse hub says: a frame of an unknown kind" in words[1]
    push.close()


def test_messages_of_a_later_hub_are_passed_over(hub, tmp_path):
    push, words = make_push(tmp_path, hub.url)
    push.tick(b'{"schema":1}')
    go_on(push, lambda: push._connection is not None)
    visit = hub.visit()
    visit._protocol.send_text(b'{"please": "dance"}')
    visit._flush()
    go_on(push, lambda: not visit.messages.empty())
    push.wait_until(time.monotonic() + 0.1)
    assert push._connection is not None
    assert len(words) == 1
    push.close()


def test_an_answer_that_never_ends(hub, tmp_path, monkeypatch):
    monkeypatch.setattr("gpulse_probe.connection.OPEN_SECONDS", 0.3)
    monkeypatch.setattr(hub, "_serve", lambda link: link.recv(1) and time.sleep(1))
    push, words = make_push(tmp_path, hub.url)
    go_on(push, lambda: words)
    assert "no answer within 0.3 s" in words[0]
    push.close()


def test_words_of_a_hub_cannot_write_on_the_terminal(hub, tmp_path):
    hub.refuses = refusal(401, "x", "\x1b[2J evil\nline")
    with RunningAgent(tmp_path / "a", hub.url) as agent:
        words = agent.says("evil")
        assert "\x1b" not in words
        assert words.count("\n") == 1


def test_refused_node_says_so_once_and_stays(hub, tmp_path):
    hub.refuses = refusal(401, "unknown_token", "this token is not known")
    with RunningAgent(tmp_path / "a", hub.url) as agent:
        agent.says("this token is not known")
        assert agent.process.poll() is None
        assert agent.end() == 0
        assert agent.words.count("\n") == 1
        assert NODE_TOKEN not in agent.words


def test_error_bodies_are_json_with_details_left_out(hub, tmp_path):
    hub.refuses = http(409, json.dumps({"error": {"code": "c", "message": "m" * 9000, "detail": {"a": 1}}}).encode())
    push, words = make_push(tmp_path, hub.url)
    go_on(push, lambda: words)
    assert len(words[0]) < 700
    push.close()
