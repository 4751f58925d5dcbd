"""Secrets that are empty: whoever knows nothing would know them. They are refused where they are read."""

import os
import subprocess
from pathlib import Path

import httpx
import pytest

from gpulse.agents.node_secrets import PULL_TOKENS, PullSecrets
from gpulse.auth.upgrades import FILE, Upgrades
from gpulse.errors import AgentError, NodeLost, StoreError
from gpulse.hub_side import Asked, _token
from gpulse_probe import upgrade
from gpulse_probe.options import UsageError
from gpulse_probe.outlets.serve import read_token
from tests.attacks.speaking import asked, status_of
from tests.hub.running import GPULSE
from tests.system.agents import Site

INGEST = "/api/v1/ingest"
EMPTY = ("", "\n", " \t\r\n ", "\0")
OIDC = '[access.oidc]\nissuer = "http://127.0.0.1:9"\nclient_id = "x"\nclient_secret_file = "secret"\n'
PROXY = '[access.proxy]\nheader = "X-Remote-User"\naddresses = ["10.0.0.1"]\nsecret_file = "secret"\n'


@pytest.mark.parametrize("text", EMPTY, ids=repr)
@pytest.mark.parametrize(("table", "setting"), [(OIDC, "access.oidc"), (PROXY, "access.proxy")])
def test_the_hub_does_not_start(tmp_path: Path, table: str, setting: str, text: str):
    (tmp_path / "secret").touch(0o600)
    (tmp_path / "secret").write_text(text)
    (tmp_path / "gpulse.toml").write_text(table)
    command = [GPULSE, "up", "--no-local", "--port", "0", "--data", str(tmp_path / "data")]
    home = {**os.environ, "HOME": str(tmp_path)}
    ran = subprocess.run(command, cwd=tmp_path, env=home, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode != 0
    assert setting in ran.stderr and "secret" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_short_secret_of_a_proxy(tmp_path: Path):
    test_the_hub_does_not_start(tmp_path, PROXY, "access.proxy", "x" * 15)


@pytest.mark.parametrize("key", [b"", b"\n", b"x" * 31, b"\0" * 33])
def test_the_key_of_upgrades(tmp_path: Path, key: bytes):
    (tmp_path / FILE).write_bytes(key)
    with pytest.raises(StoreError, match="damaged"):
        Upgrades(tmp_path)


@pytest.mark.parametrize("key", ["", "\n", "  \n", "x", "abc123\n", "f" * 31])
def test_an_agents_key_of_upgrades(tmp_path: Path, key: str, monkeypatch: pytest.MonkeyPatch):
    """Nothing is even asked for: what came would be signed by anybody."""
    file = tmp_path / "upgrade-key"
    file.write_text(key)
    monkeypatch.setattr("gpulse_probe.http_request.request", lambda *_a, **_k: pytest.fail("the hub was asked"))
    with pytest.raises(upgrade.UpgradeFailed, match="upgrade-key"):
        upgrade.fetch("http://127.0.0.1:9", "gpn_x", str(file), str(tmp_path / "agent.pyz"), None)


@pytest.mark.parametrize("text", [*EMPTY, "short"], ids=repr)
def test_an_agent_that_is_asked(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("GPULSE_TOKEN", raising=False)
    (tmp_path / "token").write_text(text)
    with pytest.raises(UsageError):
        read_token(str(tmp_path / "token"))
    monkeypatch.setenv("GPULSE_TOKEN", text.replace("\0", " "))
    with pytest.raises(UsageError):
        read_token(None)


@pytest.mark.parametrize("text", EMPTY, ids=repr)
def test_a_token_by_which_the_hub_asks(tmp_path: Path, text: str):
    (tmp_path / "token").write_text(text)
    target = Asked(name="n", host="h", port=1, tls=False, token_file=tmp_path / "token", interval_seconds=1.0)
    with pytest.raises(NodeLost, match="token"):
        _token(target)


@pytest.mark.parametrize("text", EMPTY, ids=repr)
def test_a_token_that_agents_would_be_given(tmp_path: Path, text: str):
    (tmp_path / PULL_TOKENS).mkdir()
    (tmp_path / PULL_TOKENS / "gpu1").write_text(text)
    with pytest.raises(AgentError, match="gpu1"):
        PullSecrets(tmp_path).files("gpu1", None)
    assert len(PullSecrets(tmp_path).files("gpu2", None)["token"].strip()) == 48


def test_empty_secrets_open_nothing(tmp_path: Path):
    (tmp_path / "gpulse.toml").write_text('[access]\nanonymous = "none"\n')
    with Site(tmp_path) as site:
        token = site.token("gpu1")
        identity = token.split("_")[1]
        texts = ["", " ", "gpn", "gpn_", "gpn__", f"gpn_{identity}_", f"gpn_{identity}_{'0' * 48}", "gpk__", "null"]
        for text in texts:
            headers = [f"Authorization: Bearer {text}", f"X-Gpulse: {text}", f"X-Gpulse-Proxy-Secret: {text}"]
            headers.append(f"Cookie: gpulse_session={text}; gpulse={text}; __Host-gpulse={text}")
            for address in ("api/v1/nodes", "api/v1/accounts", "api/v1/me/keys", f"feeds/{text or 'x'}.ics"):
                target = "/" + address.replace(" ", "%20")
                assert status_of(asked(site.url, target, *headers)) in (401, 403, 404), (text, address)
            body = ["Content-Type: application/json", "Content-Length: 0"]
            assert status_of(asked(site.url, INGEST, *headers, *body, method="POST")) in (401, 403), text
        assert httpx.get(f"{site.url}api/v1/me", timeout=30).json()["name"] is None
