"""A real nginx that has signed people in: its word counts, and that of nobody else."""

import asyncio
import getpass
import re
import shlex
import socket
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import websockets

from tests.hub.running import GPULSE, RunningHub
from tests.patience import PATIENCE_SECONDS
from tests.system.test_nginx import nginx

SECRET = "a-secret-of-the-proxy-0001"  # noqa: S105 - of the test alone
ANSWER_SECONDS = 30
# Who asks is told by the address, in place of a login; as documented, with what a browser sends replaced.
LOCATION = """
    location ~ ^/as/-?(?<person>[a-z0-9_.-]*)/-?(?<groups>[a-z,-]*)/(?<rest>.*)$ {{
        proxy_pass {hub}/$rest$is_args$args;
        proxy_http_version 1.1;
        proxy_set_header Host $http_host;
        proxy_set_header Upgrade $http_upgrade;
        proxy_set_header Connection "upgrade";
        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        proxy_set_header X-Forwarded-Proto https;
        proxy_set_header X-Remote-User $person;
        proxy_set_header X-Remote-Groups $groups;
        proxy_set_header X-Gpulse-Proxy-Secret {secret};
    }}
    location /forgetful/ {{
        proxy_pass {hub}/;
        proxy_set_header Host $http_host;
    }}
"""


class Site:
    def __init__(self, front: str, hub: RunningHub, data: Path):
        self.front = front
        self.hub = hub
        self.data = data

    def nodes(self, person: str, groups: str) -> tuple[int, str]:
        """How somebody is refused."""
        answer = httpx.get(f"{self.front}/as/{person}/{groups}/api/v1/nodes", timeout=ANSWER_SECONDS)
        return answer.status_code, answer.json()["error"]["code"]

    def me(self, person: str, groups: str, **headers: str) -> Any:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return httpx.get(f"{self.front}/as/{person}/{groups}/api/v1/me", headers=named, timeout=ANSWER_SECONDS).json()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    (folder / "secret").touch(0o600)
    (folder / "secret").write_text(SECRET)
    (folder / "gpulse.toml").write_text("""
        hub.local = false
        [access]
        anonymous = "none"
        [access.proxy]
        header = "X-Remote-User"
        groups_header = "X-Remote-Groups"
        addresses = ["127.0.0.1"]
        secret_file = "secret"
        roles = { admin = ["gpu-admins"], member = ["staff"] }
        default_role = "none"
    """)
    with RunningHub("up", "--data", str(folder / "data"), directory=folder) as hub:
        location = LOCATION.format(hub=hub.url.rstrip("/"), secret=SECRET)
        with nginx(folder, location) as front:
            yield Site(front, hub, folder / "data")


def test_people_are_whom_the_proxy_says(site: Site):
    me = site.me("ann", "staff,others")
    assert (me["name"], me["role"], me["way"], me["may_read"]) == ("ann", "member", "proxy", True)
    assert site.me("ann", "gpu-admins,staff")["role"] == "admin"
    assert site.me("ann", "staff")["role"] == "member", "at once"
    assert site.me("-", "gpu-admins")["name"] is None
    assert site.me("eve", "others")["name"] is None
    assert "eve has no role here" in site.me("eve", "others")["refused"]
    assert site.nodes("eve", "others") == (403, "no_role")


def test_what_the_browser_sends_is_replaced(site: Site):
    me = site.me("ann", "staff", X_Remote_User="root", X_Remote_Groups="gpu-admins")
    assert (me["name"], me["role"]) == ("ann", "member")


def test_the_header_from_elsewhere_is_ignored(site: Site):
    spoofed = {"X-Remote-User": "ann", "X-Remote-Groups": "gpu-admins"}
    with httpx.Client(headers=spoofed, timeout=ANSWER_SECONDS) as client:
        # From the same address, but without the secret: by somebody with a login on this machine.
        assert client.get(site.hub.url + "api/v1/me").json()["name"] is None
        wrong = {"X-Gpulse-Proxy-Secret": "guessed-0123456789"}
        assert client.get(site.hub.url + "api/v1/me", headers=wrong).json()["name"] is None
        assert client.get(f"{site.front}/forgetful/api/v1/me").json()["name"] is None
        assert client.get(f"{site.front}/forgetful/api/v1/nodes").status_code == 401


def test_a_name_of_an_account_of_the_hub_is_not_taken_over(site: Site):
    with httpx.Client(base_url=f"{site.front}/as/ann/gpu-admins/", timeout=ANSWER_SECONDS) as admin:
        own = {"Origin": site.front, "X-Gpulse": "1"}
        wanted = {"name": "boss", "role": "admin", "password": "a password of some length"}
        assert admin.post("api/v1/accounts", json=wanted, headers=own).status_code == 201
    me = site.me("boss", "staff")
    assert (me["name"], me["may_read"]) == (None, False)
    assert me["refused"].endswith("gpulse user connect boss --proxy")
    assert site.nodes("boss", "staff") == (403, "name_taken")


def test_who_runs_the_hub_is_connected_and_comes_by_the_proxy(site: Site):
    name = getpass.getuser()
    told = site.me(name, "gpu-admins")["refused"].rpartition(": ")[2]
    assert told == f"gpulse user connect {name} --proxy"
    command = [GPULSE, *shlex.split(told)[1:], "--data", site.data]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True)
    assert done.stdout == f"{name} signs in by the proxy\n"
    site.hub.until(lambda: site.me(name, "gpu-admins")["name"] == name)
    assert site.me(name, "gpu-admins")["way"] == "proxy"


def test_changes_need_a_page_of_ours_also_behind_a_proxy(site: Site):
    address = f"{site.front}/as/ann/gpu-admins/api/v1/accounts"
    wanted = {"name": "x", "role": "admin"}
    for headers in ({}, {"Origin": "https://evil.example.org", "X-Gpulse": "1"}, {"Origin": site.front}):
        refused = httpx.post(address, json=wanted, headers=headers, timeout=ANSWER_SECONDS)
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "cross_site")


def test_where_people_are_is_written_down(site: Site):
    with httpx.Client(base_url=f"{site.front}/as/ann/gpu-admins/", timeout=ANSWER_SECONDS) as admin:
        own = {"Origin": site.front, "X-Gpulse": "1", "X-Forwarded-For": "6.6.6.6"}
        assert admin.post("api/v1/accounts", json={"name": "carl", "role": "viewer"}, headers=own).status_code == 201
        entry = admin.get("api/v1/audit?limit=1").json()["items"][0]
    told = (entry["who"], entry["way"], entry["address"], entry["action"], entry["target"])
    assert told == ("ann", "proxy", "127.0.0.1", "account.add", "carl")


def test_cookies_are_for_https_where_the_proxy_speaks_that(site: Site):
    address = f"{site.front}/as/-/-/api/v1/session"
    wanted = {"name": "boss", "password": "a password of some length"}
    own = {"Origin": site.front, "X-Gpulse": "1"}
    signed_in = httpx.post(address, json=wanted, headers=own, timeout=ANSWER_SECONDS)
    assert signed_in.status_code == 200, signed_in.text
    assert signed_in.headers["set-cookie"].endswith("; Secure")


def test_the_live_stream(site: Site):
    async def first(person: str) -> Any:
        address = site.front.replace("http", "ws", 1) + f"/as/{person}/staff/api/v1/live"
        async with websockets.connect(address, open_timeout=PATIENCE_SECONDS) as stream:
            return await asyncio.wait_for(stream.recv(), 10)

    assert '"type":"full"' in asyncio.run(first("ann"))
    with pytest.raises(websockets.InvalidStatus) as refused:
        asyncio.run(first("-"))
    assert refused.value.response.status_code == 401


def test_the_name_of_this_machine_is_one_of_the_hubs(site: Site):
    for host, status in ((socket.gethostname(), 200), ("evil.example.org", 421)):
        answer = httpx.get(site.hub.url + "healthz", headers={"Host": host}, timeout=ANSWER_SECONDS)
        assert answer.status_code == status


DOCUMENT = Path(__file__).parents[2] / "docs" / "access.md"
# Of the users that the documentation names, one more who is in no group.
PEOPLE = {"ann": ("ann", "admin"), "bob": ("bob", "member"), "eve": ("eve", "viewer")}
BELIEVED = {
    "X-Remote-User": "ann",
    "X-Remote-Groups": "gpu-admins",
    "X-Gpulse-Proxy-Secret": "guessed-0123456789",
    "X-Forwarded-For": "6.6.6.6",
    "X-Forwarded-Proto": "https",
}


def documented(language: str) -> str:
    """The block of that language about a proxy."""
    chapter = DOCUMENT.read_text("utf-8").partition("## A reverse proxy that signs in")[2].partition("\n## ")[0]
    (block,) = re.findall(rf"```{language}\n(.*?)```", chapter, re.DOTALL)
    return block


@pytest.fixture(scope="module")
def as_documented(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an nginx that was set up by doing what the documentation says."""
    folder = tmp_path_factory.mktemp("documented")
    (folder / "gpulse.toml").write_text("hub.local = false\n" + documented("toml"))
    shell = documented("sh").replace("/etc/nginx/", f"{folder}/")
    subprocess.run(["sh", "-ec", shell], cwd=folder, check=True, timeout=PATIENCE_SECONDS)
    for name in ("proxy.secret", "gpulse-secret.conf"):
        assert (folder / name).stat().st_mode & 0o777 == 0o600, name
    (folder / "gpulse.htpasswd").write_text("".join(f"{name}:{{PLAIN}}of {name}\n" for name in PEOPLE))
    beside, line, location = documented("nginx").partition('# In "server"')
    with RunningHub("up", directory=folder) as hub:
        assert "http://127.0.0.1:7070/" in location
        with nginx(folder, line + location.replace("http://127.0.0.1:7070/", hub.url), beside) as front:
            yield front


def who(front: str, person: str, headers: list[tuple[str, str]]) -> tuple[str, str]:
    answer = httpx.get(f"{front}/api/v1/me", auth=(person, f"of {person}"), headers=headers, timeout=ANSWER_SECONDS)
    assert answer.status_code == 200, answer.text
    return answer.json()["name"], answer.json()["role"]


@pytest.mark.parametrize("person", PEOPLE)
def test_as_documented_people_are_whom_nginx_says(as_documented: str, person: str):
    assert who(as_documented, person, []) == PEOPLE[person]


def test_as_documented_nobody_else_comes_in(as_documented: str):
    for auth in (None, ("ann", "a guess"), ("root", "")):
        answer = httpx.get(f"{as_documented}/api/v1/me", auth=auth, headers=BELIEVED, timeout=ANSWER_SECONDS)
        assert answer.status_code == 401
        assert "WWW-Authenticate" in answer.headers


@pytest.mark.parametrize("header", BELIEVED)
def test_as_documented_no_header_makes_anybody_more(as_documented: str, header: str):
    value = BELIEVED[header]
    ways = [header, header.lower(), header.upper(), header.replace("-", "_"), header.lower().replace("-", "_")]
    for name in ways:
        for sent in ([(name, value)], [(name, value), (name, value)], [(name, ""), (name, value)]):
            for person in ("bob", "eve"):
                assert who(as_documented, person, sent) == PEOPLE[person], sent
    everything = [(name, told) for name, told in BELIEVED.items() for _ in range(2)]
    assert who(as_documented, "eve", everything) == PEOPLE["eve"]
    # Nor by what a proxy would leave out because it belongs to the connection.
    assert who(as_documented, "eve", [*everything, ("Connection", header)]) == PEOPLE["eve"]


def test_as_documented_every_header_that_is_believed_is_set():
    """One that is only in the settings would be the browser's own."""
    settings = tomllib.loads(documented("toml"))["access"]["proxy"]
    believed = {settings["header"], settings["groups_header"], "X-Gpulse-Proxy-Secret", *BELIEVED}
    text = documented("nginx") + documented("sh")
    assert {name for name in believed if f"proxy_set_header {name} " not in text} == set()
