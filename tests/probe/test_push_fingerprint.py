"""Agents that know their hub by the fingerprint of its key, on every Python; whoever else answers learns nothing."""

import json
import subprocess
import sys
import time
from datetime import UTC, datetime

import pytest

from gpulse_probe import hub_address, trust, uplink
from gpulse_probe.http_request import request
from gpulse_probe.link import Distrusted
from gpulse_probe.options import UsageError
from gpulse_probe.trust import Trust
from tests.certificates import make
from tests.eavesdropper import Eavesdropper
from tests.interpreters import interpreters
from tests.patience import PATIENCE_SECONDS
from tests.probe.hub_stand_in import StandInHub, http
from tests.probe.pushing import JOIN_TOKEN, NODE_TOKEN, SOURCES, RunningAgent, files, go_on, make_push

VERSIONS = list(interpreters())
ENDS = [VERSIONS[0], VERSIONS[-1]]


@pytest.fixture
def own():
    """A name that is nobody's here: what is pinned is the key, and nothing else matters."""
    return make("somewhere.example.org")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_right_key(version, own, tmp_path):
    python = interpreters()[version]
    with (
        StandInHub(tls=own.server(tmp_path)) as hub,
        RunningAgent(tmp_path / "a", hub.url, "--fingerprint", own.fingerprint.upper(), python=python) as agent,
    ):
        visit = hub.visit()
        assert NODE_TOKEN in visit.head
        first = visit.line()
        assert visit.line()["update"] == first["seq"]
        assert agent.end() == 0
        assert visit.closed.wait(PATIENCE_SECONDS)
        assert visit.close_code == 1001


@pytest.mark.parametrize("version", VERSIONS)
def test_a_wrong_key_is_told_nothing(version, own, tmp_path):
    python = interpreters()[version]
    other = make("localhost", "127.0.0.1")
    with (
        Eavesdropper(other.server(tmp_path)) as stranger,
        RunningAgent(tmp_path / "a", stranger.url, "--fingerprint", own.fingerprint, python=python) as agent,
    ):
        words = agent.says("nothing was sent to it")
        assert f"no connection to {stranger.url}: it has another key than it should: {other.fingerprint}" in words
        assert f"instead of {own.fingerprint}" in words
        assert "Traceback" not in words
        assert stranger.visits == 1
        assert agent.end() == 0
    assert stranger.heard == b""


@pytest.mark.parametrize("version", ENDS)
def test_who_would_join_tells_a_stranger_nothing(version, own, tmp_path):
    with Eavesdropper(make().server(tmp_path)) as stranger:
        options = ("--fingerprint", own.fingerprint)
        with RunningAgent(
            tmp_path / "a", stranger.url, *options, token=JOIN_TOKEN, python=interpreters()[version]
        ) as agent:
            agent.says("it has another key than it should")
            assert agent.end() == 0
        assert files(tmp_path / "a") == ["log"]
    assert stranger.heard == b""


@pytest.mark.parametrize("version", ENDS)
def test_joining(version, own, tmp_path):
    with StandInHub(tls=own.server(tmp_path)) as hub:
        hub.pages["/api/v1/ingest/join"] = lambda headers, _body: http(
            201 if headers["Authorization"] == f"Bearer {JOIN_TOKEN}" else 401,
            json.dumps({"token": NODE_TOKEN}).encode(),
        )
        options = ("--fingerprint", own.fingerprint)
        with RunningAgent(tmp_path / "a", hub.url, *options, token=JOIN_TOKEN, python=interpreters()[version]):
            assert NODE_TOKEN in hub.visit().head


def test_a_wrong_key_is_tried_slowly_and_told_once(own, tmp_path):
    with Eavesdropper(make().server(tmp_path)) as stranger:
        push, words = make_push(tmp_path, stranger.url, fingerprint=own.fingerprint)
        go_on(push, lambda: words)
        wait = push._uplink.wants()[2]
        go_on(push, lambda: stranger.visits == 1)
        assert len(words) == 1
        assert 40 < wait - time.monotonic() < 80
        push.close()


def test_errands_tell_a_stranger_nothing(own, tmp_path):
    """Joining, and fetching a newer agent."""
    with Eavesdropper(make().server(tmp_path)) as stranger:
        hub = hub_address.read(stranger.url)
        with pytest.raises(Distrusted, match="another key"):
            request(hub, "GET", "/agent", NODE_TOKEN, trust=Trust(None, own.fingerprint))
    assert stranger.heard == b""


def test_a_key_that_changes_while_the_agent_runs(own, tmp_path):
    other = make()
    with StandInHub(tls=own.server(tmp_path)) as hub:
        push, words = make_push(tmp_path, hub.url, fingerprint=own.fingerprint)
        push.tick(b'{"schema":1}')
        go_on(push, lambda: not hub.visits.empty())
        hub.stop()
        with Eavesdropper(other.server(tmp_path), hub.port) as stranger:
            go_on(push, lambda: any("another key" in line for line in words))
            push.close()
        assert stranger.heard == b""
        hub.start()


def test_a_certificate_that_is_renewed_with_its_key(own, tmp_path):
    with StandInHub(tls=own.server(tmp_path)) as hub:
        push, words = make_push(tmp_path, hub.url, fingerprint=own.fingerprint)
        go_on(push, lambda: not hub.visits.empty())
        hub.stop()
        hub._tls = make("hub.example.org", key=own.key, signed_by=make("authority")).server(tmp_path)
        hub.start()
        go_on(push, lambda: hub.visits.qsize() == 2)
        assert not any("another key" in line for line in words)
        push.close()


def test_an_expired_certificate_with_the_right_key(tmp_path):
    """The key is what is trusted; nobody renews a certificate that nobody checks."""
    old = make(begin=datetime(2020, 1, 1, tzinfo=UTC), end=datetime(2021, 1, 1, tzinfo=UTC))
    with StandInHub(tls=old.server(tmp_path)) as hub:
        push, _ = make_push(tmp_path, hub.url, fingerprint=old.fingerprint)
        go_on(push, lambda: not hub.visits.empty())
        push.close()


def test_the_end_is_noticed_though_the_socket_stays_open(own, tmp_path):
    """A server that says goodbye by TLS alone, and waits for ours."""
    with StandInHub(tls=own.server(tmp_path)) as hub:
        push, words = make_push(tmp_path, hub.url, fingerprint=own.fingerprint)
        go_on(push, lambda: push._uplink.connection is not None)
        visit = hub.visit()
        secured = visit._link
        secured.settimeout(0.2)
        with pytest.raises(OSError, match=r"."):
            secured.unwrap()
        go_on(push, lambda: any(line.startswith("lost ") for line in words))
        assert "the connection was closed" in words[-1]
        push.close()


@pytest.mark.parametrize(
    ("hub", "ca", "text", "words"),
    [
        ("http://hub:7070", None, "sha256:" + "0" * 64, "--fingerprint goes with a hub at https://"),
        ("https://hub", __file__, "sha256:" + "0" * 64, "--ca and --fingerprint exclude each other"),
        ("https://hub", None, "sha256:0", "--fingerprint: a fingerprint is sha256: and 64 digits"),
        ("https://hub", "/nonexistent", None, "--ca: /nonexistent cannot be read"),
    ],
)
def test_options_that_do_not_go_together(hub, ca, text, words):
    with pytest.raises(UsageError, match=words):
        trust.read(hub_address.read(hub), ca, text)


def test_http_agents_do_not_load_tls():
    """It costs a node 5 MB."""
    script = (
        "import sys\nfrom gpulse_probe import hub_address, trust\nfrom gpulse_probe.outlets import push\n"
        "trust.read(hub_address.read('http://hub'), None, None)\n"
        "print(sorted({'ssl', 'hashlib', 'gpulse_probe.fingerprint'} & set(sys.modules)))"
    )
    ran = subprocess.run(
        [sys.executable, "-S", "-c", script],
        env={"PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.strip() == "[]"


def test_a_stranger_is_tried_again_and_still_told_nothing(own, tmp_path, monkeypatch):
    monkeypatch.setattr(uplink, "REFUSED_PAUSE_SECONDS", 0.2)
    with Eavesdropper(make().server(tmp_path)) as stranger:
        push, words = make_push(tmp_path, stranger.url, fingerprint=own.fingerprint)
        go_on(push, lambda: stranger.visits >= 3)
        assert len(words) == 1
        push.close()
    assert stranger.heard == b""
