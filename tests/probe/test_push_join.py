"""Tokens: from a file, from the environment, from the agent's folder; and one that is traded for the node's own."""

import json

import pytest

from gpulse_probe.tokens import NoToken, Tokens
from tests.interpreters import interpreters
from tests.probe.hub_stand_in import StandInHub, http, refusal
from tests.probe.pushing import JOIN_TOKEN, NODE_TOKEN, OTHER_TOKEN, RunningAgent, files

JOIN = "/api/v1/ingest/join"


@pytest.fixture
def hub():
    with StandInHub() as stand_in:
        yield stand_in


class Trades:
    """The hub's answers to those who want to join: one token after the other."""

    def __init__(self, *tokens):
        self.tokens = list(tokens)
        self.asked = []

    def __call__(self, headers, body):
        self.asked.append((headers["Authorization"], json.loads(body)))
        if not self.tokens:
            return refusal(409, "already_joined", "n1 has joined already")
        return http(201, json.dumps({"node": "n1", "token": self.tokens.pop(0)}).encode())


@pytest.mark.parametrize("version", [next(iter(interpreters())), list(interpreters())[-1]])
def test_join_token_is_traded_once(version, hub, tmp_path):
    hub.pages[JOIN] = trades = Trades(NODE_TOKEN)
    python = interpreters()[version]
    with RunningAgent(tmp_path / "a", hub.url, token=JOIN_TOKEN, python=python) as agent:
        assert hub.visit().headers["Authorization"] == f"Bearer {NODE_TOKEN}"
        agent.says(f"joined {hub.url} as n1")
    assert trades.asked == [(f"Bearer {JOIN_TOKEN}", {"node": "n1"})]
    kept = tmp_path / "a" / "token"
    assert kept.read_text("ascii").strip() == NODE_TOKEN
    assert kept.stat().st_mode & 0o777 == 0o600
    assert files(tmp_path / "a") == ["log", "token"]
    with RunningAgent(tmp_path / "a", hub.url, token=JOIN_TOKEN, python=python):
        assert hub.visit().headers["Authorization"] == f"Bearer {NODE_TOKEN}"
    assert len(trades.asked) == 1


def test_kept_token_that_is_refused_is_replaced(hub, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "token").write_text(NODE_TOKEN)
    hub.refuses = refusal(401, "unknown_token", "not known")

    def trade(_headers, _body):
        hub.refuses = None
        return http(201, json.dumps({"node": "n1", "token": OTHER_TOKEN}).encode())

    hub.pages[JOIN] = trade
    file = tmp_path / "join"
    file.write_text(JOIN_TOKEN + "\n")
    with RunningAgent(tmp_path / "a", hub.url, "--token-file", str(file), token=None) as agent:
        assert hub.visit().headers["Authorization"] == f"Bearer {OTHER_TOKEN}"
        assert "refuses" not in agent.words
    assert (tmp_path / "a" / "token").read_text("ascii").strip() == OTHER_TOKEN


def test_fresh_token_that_is_refused_is_no_reason_to_join_for_ever(hub, tmp_path):
    hub.pages[JOIN] = trades = Trades(NODE_TOKEN, OTHER_TOKEN)
    hub.refuses = refusal(401, "unknown_token", "not known")
    with RunningAgent(tmp_path / "a", hub.url, token=JOIN_TOKEN) as agent:
        agent.says("refuses this node: not known")
        assert len(trades.asked) == 1


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (refusal(403, "not_in_set", "n1 is not among gpu[01-16]"), "refuses this node: n1 is not among gpu[01-16]"),
        (refusal(409, "already_joined", "n1 has joined"), "refuses this node: n1 has joined (409 already_joined)"),
        (refusal(401, "expired", "it has expired"), "refuses this node: it has expired (401 expired)"),
        (http(201, b'{"node": "n1"}'), "joining: the hub gave no token"),
        (http(201, b"["), "joining: the hub gave no token"),
        (http(201, b'{"token": "gpj_0_0"}'), "joining: the hub gave no token"),
        (http(201, b"x" * 100_000), "joining: its answer is longer than 65536 bytes"),
        (b"nonsense\r\n\r\n", "joining: its answer cannot be read"),
    ],
)
def test_joining_that_fails(answer, said, hub, tmp_path):
    hub.pages[JOIN] = lambda _headers, _body: answer
    with RunningAgent(tmp_path / "a", hub.url, token=JOIN_TOKEN) as agent:
        agent.says(said)
        assert files(tmp_path / "a") == ["log"]
        assert JOIN_TOKEN not in agent.words


def test_folder_that_cannot_be_written(hub, tmp_path):
    """Nothing is asked of the hub when the answer could not be kept."""
    hub.pages[JOIN] = trades = Trades(NODE_TOKEN)
    (tmp_path / "file").write_text("")
    with RunningAgent(tmp_path / "a", hub.url, "--folder", str(tmp_path / "file" / "b"), token=JOIN_TOKEN) as agent:
        agent.says("joining: ")
        assert trades.asked == []


def test_replaced_token_is_used_without_a_restart(hub, tmp_path):
    file = tmp_path / "token"
    file.write_text(NODE_TOKEN)
    with RunningAgent(tmp_path / "a", hub.url, "--token-file", str(file), token=None):
        visit = hub.visit()
        assert visit.headers["Authorization"] == f"Bearer {NODE_TOKEN}"
        file.write_text(OTHER_TOKEN)
        visit.drop()
        assert hub.visit().headers["Authorization"] == f"Bearer {OTHER_TOKEN}"


def test_own_folder_is_that_of_the_node_in_the_home(hub, tmp_path):
    folder = tmp_path / ".local" / "share" / "gpulse-agent" / "n1"
    folder.mkdir(parents=True)
    (folder / "token").write_text(NODE_TOKEN)
    environment = {"HOME": str(tmp_path), "GPULSE_TOKEN": ""}
    with RunningAgent(tmp_path / "log", hub.url, token=None, environment=environment, default_folder=True):
        assert hub.visit().headers["Authorization"] == f"Bearer {NODE_TOKEN}"


def test_order_of_tokens(tmp_path):
    folder = str(tmp_path)
    with pytest.raises(
        NoToken, match=r"there is no token in .*token, and GPULSE_TOKEN is not set; make one on the hub"
    ):
        Tokens(folder).current()
    with pytest.raises(NoToken, match="there is no token in /nowhere; make one"):
        Tokens(folder, "/nowhere").current()
    assert Tokens(folder, None, NODE_TOKEN).current() == NODE_TOKEN
    assert Tokens(folder, None, JOIN_TOKEN).current() == JOIN_TOKEN
    (tmp_path / "token").write_text(OTHER_TOKEN)
    assert Tokens(folder, None, NODE_TOKEN).current() == NODE_TOKEN
    tokens = Tokens(folder, None, JOIN_TOKEN)
    assert tokens.current() == OTHER_TOKEN
    assert tokens.refuse(OTHER_TOKEN)
    assert tokens.current() == JOIN_TOKEN
    tokens.forgive()
    assert tokens.current() == OTHER_TOKEN
    alone = Tokens(folder)
    assert not alone.refuse(OTHER_TOKEN)
    assert alone.current() == OTHER_TOKEN


@pytest.mark.parametrize("text", ["secret", "gpn_x\r\nX: y", "gpn_é", "gpn_" + "1" * 500, "Bearer gpn_1_1"])
def test_what_is_no_token(text, tmp_path):
    with pytest.raises(NoToken, match="is no token of a gpulse hub"):
        Tokens(str(tmp_path), None, text).current()
