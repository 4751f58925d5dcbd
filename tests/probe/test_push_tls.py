"""Hubs at https: certificates are checked, and an old Python can do it too."""

import ssl
import subprocess

import pytest

from tests.interpreters import interpreters
from tests.patience import PATIENCE_SECONDS
from tests.probe.hub_stand_in import StandInHub
from tests.probe.pushing import RunningAgent, go_on, make_push


def certificate(folder, *names):
    """A server's context, and the file of its certificate."""
    key, file = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", file, "-days", "2"]
    command += ["-subj", "/CN=hub", "-addext", "subjectAltName=" + ",".join(names)]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file, key)
    return context, file


@pytest.fixture
def own(tmp_path):
    return certificate(tmp_path, "DNS:localhost", "IP:127.0.0.1")


@pytest.mark.parametrize("version", interpreters())
def test_trusted(version, own, tmp_path):
    context, file = own
    with (
        StandInHub(tls=context) as hub,
        RunningAgent(
            tmp_path / "a", f"https://localhost:{hub.port}", "--ca", str(file), python=interpreters()[version]
        ) as agent,
    ):
        visit = hub.visit()
        first = visit.line()
        assert visit.line()["update"] == first["seq"]
        assert agent.end() == 0
        assert visit.closed.wait(PATIENCE_SECONDS)
        assert visit.close_code == 1001


def test_by_address(own, tmp_path):
    context, file = own
    with StandInHub(tls=context) as hub, RunningAgent(tmp_path / "a", hub.url, "--ca", str(file)):
        assert hub.visit().line()["node"] == "n1"


def test_not_trusted(own, tmp_path):
    with StandInHub(tls=own[0]) as hub, RunningAgent(tmp_path / "a", hub.url) as agent:
        words = agent.says("its certificate is not trusted: ")
        assert "; name the one that signed it with --ca" in words
        assert hub.visits.empty()


@pytest.mark.parametrize("version", [next(iter(interpreters())), list(interpreters())[-1]])
def test_certificate_of_another_name(version, tmp_path):
    context, file = certificate(tmp_path, "DNS:another.example.org")
    python = interpreters()[version]
    with (
        StandInHub(tls=context) as hub,
        RunningAgent(tmp_path / "a", f"https://localhost:{hub.port}", "--ca", str(file), python=python) as agent,
    ):
        words = agent.says("its certificate is not trusted: ")
        assert "localhost" in words.partition("trusted: ")[2]
        assert "Traceback" not in words
        assert hub.visits.empty()


def test_certificates_that_are_none(tmp_path):
    file = tmp_path / "empty.pem"
    file.write_text("nothing")
    with StandInHub() as hub:
        push, words = make_push(tmp_path, f"https://127.0.0.1:{hub.port}", ca=str(file))
        go_on(push, lambda: words)
        assert f"certificates in {file}" in words[0]
        push.close()


def test_plain_http_behind_https(tmp_path):
    with StandInHub() as hub:
        push, words = make_push(tmp_path, f"https://127.0.0.1:{hub.port}")
        go_on(push, lambda: hub.tries.qsize() == 1)
        hub.stop()
        go_on(push, lambda: words)
        assert "TLS" in words[0]
        push.close()
        hub.start()


def test_long_lines_survive_tls(own, tmp_path):
    """Longer than a record of TLS, and than what the kernel takes at once."""
    context, file = own
    with StandInHub(tls=context) as hub:
        push, _ = make_push(tmp_path, hub.url, ca=str(file))
        line = b'{"schema":1,"x":"%s"}' % (b"0123456789" * 50_000)
        push.tick(line)
        go_on(push, lambda: not hub.visits.empty())
        visit = hub.visit()
        go_on(push, lambda: not visit.messages.empty())
        assert visit.next()[1] == line
        # What arrived is known to the byte, though TLS adds some.
        go_on(push, lambda: push._connection.link.acknowledged() == push._connection.link.queued)
        push.close()
