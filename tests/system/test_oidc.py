"""Single sign-on with a real provider process, from the first redirect to the session; and with one that lies."""

import asyncio
import getpass
import json
import re
import select
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from gpulse.auth.audit import AuditEntry
from gpulse.auth.directory import Directory
from gpulse.store import Records
from tests.hub.page_client import SIGNED_IN, PageClient
from tests.hub.running import GPULSE, RunningHub
from tests.patience import PATIENCE_SECONDS
from tests.system.oidc_provider import CLIENT, SECRET

ROOT = Path(__file__).parents[2]
ANN: dict[str, Any] = {"sub": "u-1", "preferred_username": "ann", "name": "Ann L.", "groups": ["staff"]}
SSO = "api/v1/session/sso"


class Site:
    """A hub that signs in at a provider, and browsers that come to it."""

    def __init__(self, issuer: str, hub: RunningHub, data: Path):
        self.issuer = issuer
        self.hub = hub
        self.data = data

    def set(self, claims: dict[str, Any], /, **lies: Any) -> None:
        httpx.post(
            f"{self.issuer}/set", json={"claims": claims, "lies": lies}, timeout=PATIENCE_SECONDS
        ).raise_for_status()

    def browser(self) -> PageClient:
        return PageClient(self.hub.url)

    def sign_in(self, browser: httpx.Client) -> httpx.Response:
        """The answer that the provider's redirect leads to."""
        away = browser.get(SSO)
        assert away.status_code == 303, away.text
        back = httpx.get(away.headers["location"], timeout=PATIENCE_SECONDS)
        assert back.status_code == 302, back.text
        return browser.get(back.headers["location"])

    def me(self, claims: dict[str, Any]) -> Any:
        self.set(claims)
        with self.browser() as browser:
            assert self.sign_in(browser).status_code == 303
            return browser.get("api/v1/me").json()

    def refusal(self, claims: dict[str, Any], /, **lies: Any) -> tuple[int, str]:
        self.set(claims, **lies)
        with self.browser() as browser:
            answer = self.sign_in(browser)
            assert browser.get("api/v1/me").json()["name"] is None
            return answer.status_code, answer.text


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.system.oidc_provider"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout
        assert select.select([process.stdout], [], [], PATIENCE_SECONDS)[0]
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


@contextmanager
def hub_with(issuer: str, folder: Path) -> Iterator[Site]:
    (folder / "secret").touch(0o600)
    (folder / "secret").write_text(SECRET)
    (folder / "gpulse.toml").write_text(f"""
        [hub]
        local = false
        data = "data"
        [access]
        anonymous = "none"
        [access.oidc]
        issuer = "{issuer}"
        client_id = "{CLIENT}"
        client_secret_file = "secret"
        label = "Lab login"
        roles = {{ admin = ["gpu-admins"], member = ["staff"], viewer = ["students"] }}
    """)
    with RunningHub("up", "--data", str(folder / "data"), directory=folder) as hub:
        yield Site(issuer, hub, folder / "data")


@pytest.fixture(scope="module")
def site(issuer: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with hub_with(issuer, tmp_path_factory.mktemp("site")) as site:
        yield site


@pytest.fixture(scope="module")
def lied_to(issuer: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Another hub: after twenty failures from one address it lets nobody try for a while."""
    with hub_with(issuer, tmp_path_factory.mktemp("lied_to")) as site:
        yield site


def test_from_the_first_redirect_to_the_session(site: Site):
    site.set(ANN)
    with site.browser() as browser:
        before = browser.get("api/v1/me").json()
        assert (before["sign_in"], before["sso"], before["may_read"]) == (["password", "oidc"], "Lab login", False)
        done = site.sign_in(browser)
        assert done.status_code == 303
        page, signed_in, key = done.headers["location"].partition(SIGNED_IN)
        assert (page, signed_in) == ("../../../../", SIGNED_IN)
        assert re.fullmatch(r"gpp_[0-9a-f]{12}_[0-9a-f]{48}", key)
        assert str(httpx.URL(str(done.url)).join(page)) == site.hub.url
        cookies = done.headers.get_list("set-cookie")
        assert all("HttpOnly" in one and "SameSite=Lax" in one for one in cookies)
        assert "_sso=; " in cookies[1], "the trip is over"
        me = browser.get("api/v1/me").json()
        assert (me["name"], me["display"], me["role"], me["way"]) == ("ann", "Ann L.", "member", "session")
        assert browser.get("api/v1/nodes").status_code == 200
        # The cookie alone, which other ports of the machine are sent too.
        browser.headers["X-Gpulse"] = "1"
        assert browser.get("api/v1/nodes").status_code == 401


def test_groups_decide_each_time_and_the_account_is_the_subjects(site: Site):
    bob = {"sub": "u-2", "preferred_username": "bob", "groups": ["students", "others"]}
    assert site.me(bob)["role"] == "viewer"
    assert site.me(bob | {"groups": "gpu-admins"})["role"] == "admin"
    assert site.me(bob | {"groups": ["students"]})["role"] == "viewer"
    # Who calls themselves otherwise is who they were.
    assert site.me(bob | {"preferred_username": "ann"})["name"] == "bob"


def test_a_refusal_is_told_by_the_page_and_noted(site: Site):
    site.set(ANN | {"sub": "u-9", "preferred_username": "eve", "groups": ["guests"]})
    with site.browser() as browser:
        browser.headers["Accept"] = "text/html,*/*"
        refused = site.sign_in(browser)
        assert (refused.status_code, refused.headers["location"]) == (303, "../../../../#/sign-in?refused=no_role")
        assert "_sso=; " in refused.headers["set-cookie"], "the trip is over"
        assert browser.get("api/v1/me").json()["name"] is None
    noted = subprocess.run(
        [GPULSE, "audit", "--json", "--data", str(site.data)], capture_output=True, text=True, check=True
    ).stdout
    newest = [json.loads(line) for line in noted.splitlines()][-1]
    assert (newest["action"], newest["detail"]) == ("session.refuse", {"why": "no_role", "by": "oidc"})


def test_what_the_id_token_lacks_is_asked_for(site: Site):
    told = {"sub": "u-3", "preferred_username": "cid", "groups": ["staff"]}
    site.set({"sub": "u-3"}, userinfo=told)
    with site.browser() as browser:
        assert site.sign_in(browser).status_code == 303
        assert browser.get("api/v1/me").json()["name"] == "cid"
    status, text = site.refusal({"sub": "u-4"}, userinfo=told)
    assert status == 401, "that was of somebody else"
    assert "preferred_username" in text


def test_who_has_no_role_is_not_let_in(site: Site):
    status, text = site.refusal({"sub": "u-5", "preferred_username": "eve", "groups": ["wheel"]})
    assert status == 403
    assert "eve has no role here" in text


def test_a_name_that_is_another_account_is_not_taken_over(site: Site):
    command = [GPULSE, "user", "list", "--json", "--data", site.data]
    listed = subprocess.run(command, capture_output=True, check=True, timeout=PATIENCE_SECONDS).stdout
    operator = next(one["name"] for one in json.loads(listed) if one["name"] not in ("ann", "bob", "cid"))
    for name in (operator, operator.upper()):
        status, text = site.refusal({"sub": "u-6", "preferred_username": name, "groups": ["gpu-admins"]})
        assert status == 403
        assert "signs in another way" in text
    status, _ = site.refusal(ANN | {"sub": "u-7"})
    assert status == 403, "also where that one came from the same provider"


@pytest.mark.parametrize(
    ("lies", "status"),
    [
        ({"strange_key": True}, 401),
        ({"unsigned": True}, 401),
        ({"claims": {"nonce": "another"}}, 401),
        ({"claims": {"aud": "another"}}, 401),
        ({"claims": {"aud": [CLIENT, "another"]}}, 401),
        ({"claims": {"iss": "https://evil.example.org"}}, 401),
        ({"claims": {"exp": 1}}, 401),
        ({"claims": {"sub": None}}, 401),
        ({"claims": {"preferred_username": ["ann"]}}, 401),
        ({"error": "access_denied"}, 401),
    ],
    ids=str,
)
def test_a_provider_that_lies(lied_to: Site, lies: dict[str, Any], status: int):
    assert lied_to.refusal(ANN, **lies)[0] == status


def test_each_trip_is_of_one_browser(site: Site):
    site.set(ANN)
    with site.browser() as one, site.browser() as other:
        away = one.get(SSO)
        back = httpx.get(away.headers["location"], timeout=PATIENCE_SECONDS).headers["location"]
        # A link that signs the visitor in as somebody else.
        assert other.get(back).status_code == 401
        other.get(SSO)
        assert other.get(back).status_code == 401
        assert other.get("api/v1/me").json()["name"] is None
        assert one.get(back.replace("code=", "code=0")).status_code == 502
        assert one.get(back).status_code == 303
        assert one.get(back).status_code == 401, "a second time"


def test_secrets_are_in_no_answer(site: Site):
    site.set(ANN)
    with site.browser() as browser:
        away = browser.get(SSO)
        assert SECRET not in away.text + away.headers["location"]
        assert "code_verifier" not in away.headers["location"]
        trip = away.headers["set-cookie"].split(";")[0].split("=")[1]
        assert trip not in away.headers["location"]
    assert SECRET not in site.hub.said()


def audited(site: Site) -> list[AuditEntry]:
    """The last first."""
    with Records(site.data) as records:
        return asyncio.run(Directory(records).audit.entries())


def test_strays_keep_nobody_from_signing_in(issuer: str, tmp_path: Path):
    """Who opens the address has tried nothing; who fails at the provider keeps nobody from a password or a link."""
    with hub_with(issuer, tmp_path) as site, site.browser() as stray:
        site.set(ANN)
        for number in range(40):
            if number == 20:
                # With a trip of their own, and the state of another.
                stray.get(SSO)
            assert stray.get(f"{SSO}/callback?code=x&state={number}").status_code == 401
        assert [one for one in audited(site) if one.action == "session.refuse"] == []
        with site.browser() as browser:
            assert site.sign_in(browser).status_code == 303
        for _ in range(20):
            state = httpx.URL(stray.get(SSO).headers["location"]).params["state"]
            assert stray.get(f"{SSO}/callback", params={"code": "x", "state": state}).status_code == 502
        state = httpx.URL(stray.get(SSO).headers["location"]).params["state"]
        assert stray.get(f"{SSO}/callback", params={"code": "x", "state": state}).status_code == 429
        assert sum(one.action == "session.refuse" for one in audited(site)) == 20
        own = {"Origin": site.hub.url.rstrip("/"), "X-Gpulse": "1"}
        wrong = stray.post("api/v1/session", json={"name": "ann", "password": "a guess of it"}, headers=own)
        assert wrong.status_code == 401
        command = [GPULSE, "user", "link", "ann", "--data", site.data]
        link = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_SECONDS).stdout
        code = {"code": link.strip().rpartition("/")[2]}
        assert stray.post("api/v1/session/link", json=code, headers=own).json()["name"] == "ann"


def test_who_runs_the_hub_is_connected_by_what_the_refusal_says(issuer: str, tmp_path: Path):
    name = getpass.getuser()
    claims = {"sub": "u-8 with 'quotes'", "preferred_username": name, "groups": ["gpu-admins"]}
    with hub_with(issuer, tmp_path) as site:
        status, text = site.refusal(claims)
        assert status == 403
        told = text.partition("machine: ")[2].strip()
        assert shlex.split(told) == ["gpulse", "user", "connect", name, "--issuer", issuer, "--subject", claims["sub"]]
        assert audited(site)[0].detail == {"why": "name_taken", "by": "oidc", "subject": claims["sub"]}
        command = [GPULSE, *shlex.split(told)[1:], "--data", site.data]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_SECONDS)
        assert done.stdout == f"{name} signs in by {issuer}\n"
        assert (audited(site)[0].action, audited(site)[0].target) == ("account.connect", name)

        def signs_in() -> bool:
            with site.browser() as browser:
                return site.sign_in(browser).status_code == 303

        site.hub.until(signs_in)
        assert site.refusal(claims | {"sub": "u-9"})[0] == 403, "another who is called like that is still another"


@pytest.mark.parametrize(
    "name",
    [
        "x" * 300_000,
        "<img src=x onerror=alert(1)>",
        "ann\x1b[2J",
        "ann\u202ebob",
        "ann\nbob",
        "../../ann",
        "ann\0",
        " ",
    ],
    ids=lambda name: repr(name[:30]),
)
def test_names_that_no_account_can_have(lied_to: Site, name: str):
    """They are refused in few words, and nothing of them is in the log as it came."""
    status, text = lied_to.refusal({**ANN, "sub": f"u-{name[:20]!r}", "preferred_username": name})
    assert status in (400, 401, 403, 422, 429), text[:200]
    assert len(text) < 2000
    assert not set("\x1b\u202e\0") & set(lied_to.hub.said())
    listed = subprocess.run(
        [GPULSE, "user", "list", "--json", "--data", lied_to.data],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    assert name not in [one["name"] for one in json.loads(listed)]


def test_a_display_name_is_text_of_a_bounded_length(issuer: str, tmp_path: Path):
    with hub_with(issuer, tmp_path) as site:
        for number, display in enumerate(["x" * 5000, "Ann\x1b[2J\u202e\n", "<img src=x onerror=alert(1)>"]):
            me = site.me({**ANN, "sub": f"d-{number}", "preferred_username": f"d{number}", "name": display})
            assert len(me["display"] or "") <= 200
            assert not set("\x1b\u202e\n") & set(me["display"] or "")
