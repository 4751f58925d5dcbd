"""What agents are told to do, and what is refused before anybody is asked."""

import tomllib

import pytest

from gpulse.agents.order import Order
from gpulse.errors import AgentError


def test_command_lines():
    push = " ".join(Order(hub="https://hub/gpulse", interval_seconds=2.0).arguments("gpu01"))
    assert push == "push --hub https://hub/gpulse --folder {folder} --upgrade --node gpu01 --interval 2"
    serve = " ".join(Order(way="serve", listen="10.0.0.7", port=7090).arguments("n"))
    assert serve == "serve --host 10.0.0.7 --port 7090 --token-file {folder}/token --node n"
    assert Order(way="drop", drop="/shared/a b").arguments("n") == ["drop", "/shared/a b", "--node", "n"]


def test_certificates_travel_with_the_order():
    order = Order(hub="https://hub", certificates="-----BEGIN CERTIFICATE-----\n")
    assert order.files() == {"ca.pem": "-----BEGIN CERTIFICATE-----\n"}
    assert "--ca {folder}/ca.pem" in " ".join(order.arguments("n"))
    assert Order(hub="https://hub").files() == {}


def test_fingerprints_travel_with_the_order():
    known_by = "sha256:" + "0" * 64
    order = Order(hub="https://hub", fingerprint=known_by)
    order.check()
    assert f"push --hub https://hub --fingerprint {known_by} " in " ".join(order.arguments("n"))
    assert order.files() == {}
    with pytest.raises(AgentError, match="without --ca"):
        Order(hub="https://hub", fingerprint=known_by, certificates="x").check()


@pytest.mark.parametrize(
    ("hub", "host", "behind", "refused"),
    [
        ("http://127.0.0.1:7070", "gpu01", False, True),
        ("http://localhost:7070", "10.0.0.7", False, True),
        ("http://[::1]:7070", "gpu01", False, True),
        ("http://127.0.0.1:7070", "localhost", False, False),
        ("http://127.0.0.1:7070", "::1", False, False),
        ("http://127.0.0.1:7070", "localhost", True, True),
        ("http://hub:7070", "gpu01", True, False),
    ],
)
def test_a_hub_that_would_be_the_node_itself(hub, host, behind, refused):
    assert Order(hub=hub).unreachable_from(host, behind) == refused


@pytest.mark.parametrize(
    ("order", "clear"),
    [
        (Order(hub="http://hub:7070"), True),
        (Order(hub="https://hub"), False),
        (Order(hub="http://127.0.0.1:7070"), False),
        (Order(way="drop", drop="/x"), False),
    ],
)
def test_tokens_that_others_could_read(order, clear):
    assert order.in_clear() == clear


@pytest.mark.parametrize(
    "hub", ["", "hub", "hub:7070", "http://", "ftp://hub", "http://me:pw@hub", "http://h:x", "http://h?q"]
)
def test_what_is_no_hub(hub):
    with pytest.raises(AgentError, match="--hub"):
        Order(hub=hub).check()


def test_tables_for_the_settings():
    serve = Order(way="serve", listen="10.0.0.7")
    assert tomllib.loads(serve.table(["gpu01", "gpu02"], '/data/"x"')) == {
        "nodes": [{"hosts": ["gpu01", "gpu02"], "transport": "pull", "token_file": '/data/"x"'}]
    }
    assert tomllib.loads(Order(way="drop", drop="/a\\b").table([], "")) == {"drop_folders": [{"path": "/a\\b"}]}
