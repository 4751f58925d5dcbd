"""A hub of which every secret is known, used and misused: none is in what it says, writes, answers or is started by."""

import os
import re
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from gpulse.auth import local_socket
from tests.api.fleets import card, snapshot
from tests.hub.page_client import PageClient
from tests.hub.running import GPULSE
from tests.patience import PATIENCE_SECONDS
from tests.system.agents import Site
from tests.system.oidc_provider import CLIENT

PASSWORD = "an unmistakable password of ann"  # noqa: S105 - these are of the test alone
OIDC_SECRET = "an-unmistakable-client-secret-4711"  # noqa: S105
PROXY_SECRET = "an-unmistakable-proxy-secret-0815"  # noqa: S105
# Files that are secrets, for their owner alone.
MAY_HOLD = ("agent.key",)
SETTINGS = f"""
[access]
anonymous = "none"
[access.oidc]
issuer = "http://127.0.0.1:9/nobody"
client_id = "{CLIENT}"
client_secret_file = "oidc.secret"
[access.proxy]
header = "X-Remote-User"
addresses = ["127.0.0.1"]
secret_file = "proxy.secret"
default_role = "viewer"
"""


class Told:
    """A hub, its secrets, and all that could be heard of it."""

    def __init__(self, site: Site):
        self.site = site
        self.secrets: dict[str, str] = {}
        self.answers: list[str] = []
        # Where a secret is told to whom it belongs.
        self.meant = ""
        self._client = httpx.Client(base_url=site.url, timeout=PATIENCE_SECONDS)

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        answer = self._client.request(method, path, **options)
        self._client.cookies.clear()
        self.answers.append(f"{method} {path}: {answer.status_code} {dict(answer.headers)} {answer.text}")
        return answer

    def close(self) -> None:
        self._client.close()

    def key(self, text: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {text}"}

    def user(self, *words: str, told: str = "") -> str:
        command = [GPULSE, "user", *words, "--data", self.site.data]
        home = {**os.environ, "HOME": str(self.site.folder)}
        ran = subprocess.run(
            command, env=home, input=told, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
        )
        assert ran.returncode == 0, ran.stderr
        self.answers.append(ran.stderr)
        return ran.stdout


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    folder = tmp_path_factory.mktemp("site")
    for name, secret in {"oidc.secret": OIDC_SECRET, "proxy.secret": PROXY_SECRET}.items():
        (folder / name).write_text(secret)
        (folder / name).chmod(0o600)
    (folder / "gpulse.toml").write_text(SETTINGS)
    with Site(folder) as site:
        found = Told(site)
        try:
            _make_secrets(found)
            _misuse(found)
            yield found
        finally:
            found.close()


def _make_secrets(told: Told) -> None:
    site = told.site
    assert site.hub.process.stdout
    told.meant = site.hub.process.stdout.readline().decode()
    told.secrets["first link"] = told.meant.strip().rpartition("_")[2]
    told.user("add", "ann", "--role", "admin", "--password-stdin", told=PASSWORD + "\n")
    told.secrets |= {"password": PASSWORD, "client secret": OIDC_SECRET, "secret of the proxy": PROXY_SECRET}
    told.secrets["link"] = told.user("link", "ann").strip().rpartition("_")[2]
    with PageClient(site.url) as browser:
        browser.post("api/v1/session", json={"name": "ann", "password": PASSWORD}).raise_for_status()
        (cookie,) = browser.cookies.jar
        assert cookie.value
        told.secrets |= {"cookie": cookie.value, "page key": browser.page_key}
        made = browser.post("api/v1/me/keys", json={"label": "script", "scopes": ["read", "admin"]})
        told.secrets["key"] = re.search(r"gpk_\w+", made.text)[0]  # type: ignore[index] # it fails where there is none
    told.secrets["token"] = site.token("gpu1")
    told.secrets["token to join with"] = site.token_command("create", "--join", "gpu2")
    told.secrets["key of upgrades"] = (site.data / "agent.key").read_bytes().hex()


def _misuse(told: Told) -> None:
    """Each secret where it belongs, where it does not, and nearly right."""
    site, secrets = told.site, told.secrets
    site.agent("gpu1", token=secrets["token"])
    site.hub.until(lambda: told.ask("GET", "api/v1/nodes/gpu1", headers=told.key(secrets["key"])).status_code == 200)
    own = {"Origin": site.url.rstrip("/"), "X-Gpulse": "1"}
    for secret in secrets.values():
        for path in ("api/v1/me", "api/v1/nodes", "api/v1/audit", "metrics"):
            told.ask("GET", path, headers=told.key(secret))
            told.ask("GET", path, headers=told.key(secret[:-1]))
        told.ask("POST", "api/v1/ingest", headers=told.key(secret), content=snapshot("other", [card("GPU-1", 0)]))
        told.ask("POST", "api/v1/ingest", headers=told.key(secret + "x"), content=b"{")
        told.ask("POST", "get-status", json={"password": secret, "key": secret})
        told.ask("GET", "api/v1/me", headers={"Cookie": f"gpulse_00000000={secret}"})
        told.ask("GET", "api/v1/me", headers={"X-Gpulse": secret})
        told.ask("DELETE", "api/v1/session", headers=own | {"X-Gpulse": secret})
        told.ask("GET", "api/v1/live", headers={"Sec-WebSocket-Protocol": f"gpulse.live, gpulse.key.{secret}"})
        told.ask("GET", "api/v1/me", headers={"X-Remote-User": "ann", "X-Gpulse-Proxy-Secret": secret[:-1]})
    # People paste what they have into the field that is there; not often, as they have to wait then.
    for name, secret in secrets.items():
        if name in ("password", "key", "link", "cookie", "page key"):
            told.ask("POST", "api/v1/session", headers=own, json={"name": secret, "password": "x"})
            told.ask("POST", "api/v1/session/link", headers=own, json={"code": secret[:-1] + "_"})
            told.ask("POST", "api/v1/session", headers=own, content=f'{{"name":"ann","password":"{secret}"'.encode())
    told.ask("GET", "api/v1/session/sso")
    told.ask("GET", "api/v1/session/sso/callback?code=abc&state=abc")


def parts(told: Told) -> dict[str, str]:
    """Of a text with an id before it, the secret alone: the id may be told."""
    return {name: text.rpartition("_")[2] for name, text in told.secrets.items()}


def hidden(text: str, told: Told, where: str) -> None:
    for name, secret in parts(told).items():
        assert len(secret) >= 16, name
        assert secret not in text, f"the {name} is in {where}"


def test_not_in_answers(told: Told):
    assert len(told.answers) > 100
    for answer in told.answers:
        # What was sent in the address is not the hub's to hide.
        hidden(answer, told, answer[:80])


def test_not_in_what_the_hub_says(told: Told):
    hidden(told.site.hub.said(), told, "the log")
    # The link that it prints is for who started it; the code stands where no browser sends it.
    assert "#/sign-in/" in told.meant


def test_not_in_what_nodes_say(told: Told):
    hidden((told.site.folder / "gpu1" / "log").read_text("utf-8"), told, "the log of an agent")


def test_not_in_files(told: Told):
    """The database has digests, and what is a secret itself is for its owner alone."""
    checked = set()
    for path in sorted(told.site.data.rglob("*")):
        if path.is_file():
            checked.add(path.name)
            mode = stat.S_IMODE(path.stat().st_mode)
            assert mode & 0o077 == 0, f"{path.name} has mode {mode:o}"
            if not path.name.startswith(MAY_HOLD):
                hidden(path.read_bytes().decode("latin-1"), told, path.name)
    assert {"gpulse.db", local_socket.place(told.site.data, told.site.url).name} <= checked


def test_not_in_ps(told: Told):
    """Of no process on the machine, whoever runs it."""
    seen = 0
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            # It has ended.
            continue
        seen += str(told.site.data) in line or "agent.pyz" in line
        hidden(line, told, line[:100])
    assert seen >= 2, "the hub and an agent are among them"


def test_not_in_the_audit_log(told: Told):
    command = [GPULSE, "audit", "--json", "--data", told.site.data]
    home = {**os.environ, "HOME": str(told.site.folder)}
    ran = subprocess.run(command, env=home, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert ran.returncode == 0, ran.stderr
    assert '"session.refuse"' in ran.stdout
    hidden(ran.stdout, told, "the audit log")
