"""A real nginx that has signed people in: its word counts, and that of nobody else."""

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import websockets

from tests.hub.running import RunningHub
from tests.system.test_nginx import nginx

SECRET = "a-secret-of-the-proxy-0001"  # noqa: S105 - of the test alone
# Who asks is told by the address, in place of a login; as documented, with what a browser sends replaced.
LOCATION = """
    location ~ ^/as/-?(?<person>[a-z]*)/-?(?<groups>[a-z,-]*)/(?<rest>.*)$ {{
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
    def __init__(self, front: str, hub: RunningHub):
        self.front = front
        self.hub = hub

    def me(self, person: str, groups: str, **headers: str) -> Any:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return httpx.get(f"{self.front}/as/{person}/{groups}/api/v1/me", headers=named, timeout=15).json()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
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
    with RunningHub("up", directory=folder) as hub:
        location = LOCATION.format(hub=hub.url.rstrip("/"), secret=SECRET)
        with nginx(folder, location) as front:
            yield Site(front, hub)


def test_people_are_whom_the_proxy_says(site: Site):
    me = site.me("ann", "staff,others")
    assert (me["name"], me["role"], me["way"], me["may_read"]) == ("ann", "member", "proxy", True)
    assert site.me("ann", "gpu-admins,staff")["role"] == "admin"
    assert site.me("ann", "staff")["role"] == "member", "at once"
    assert site.me("-", "gpu-admins")["name"] is None
    assert site.me("eve", "others")["error"]["code"] == "no_role"


def test_what_the_browser_sends_is_replaced(site: Site):
    me = site.me("ann", "staff", X_Remote_User="root", X_Remote_Groups="gpu-admins")
    assert (me["name"], me["role"]) == ("ann", "member")


def test_the_header_from_elsewhere_is_ignored(site: Site):
    spoofed = {"X-Remote-User": "ann", "X-Remote-Groups": "gpu-admins"}
    # From the same address, but without the secret: by somebody with a login on this machine.
    assert httpx.get(site.hub.url + "api/v1/me", headers=spoofed).json()["name"] is None
    wrong = spoofed | {"X-Gpulse-Proxy-Secret": "guessed-0123456789"}
    assert httpx.get(site.hub.url + "api/v1/me", headers=wrong).json()["name"] is None
    assert httpx.get(f"{site.front}/forgetful/api/v1/me", headers=spoofed).json()["name"] is None
    assert httpx.get(f"{site.front}/forgetful/api/v1/nodes", headers=spoofed).status_code == 401


def test_a_name_of_an_account_of_the_hub_is_not_taken_over(site: Site):
    with httpx.Client(base_url=f"{site.front}/as/ann/gpu-admins/") as admin:
        own = {"Origin": site.front, "X-Gpulse": "1"}
        wanted = {"name": "boss", "role": "admin", "password": "a password of some length"}
        assert admin.post("api/v1/accounts", json=wanted, headers=own).status_code == 201
    assert site.me("boss", "staff")["error"]["code"] == "name_taken"


def test_changes_need_a_page_of_ours_also_behind_a_proxy(site: Site):
    address = f"{site.front}/as/ann/gpu-admins/api/v1/accounts"
    wanted = {"name": "x", "role": "admin"}
    for headers in ({}, {"Origin": "https://evil.example.org", "X-Gpulse": "1"}, {"Origin": site.front}):
        refused = httpx.post(address, json=wanted, headers=headers)
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "cross_site")


def test_where_people_are_is_written_down(site: Site):
    with httpx.Client(base_url=f"{site.front}/as/ann/gpu-admins/") as admin:
        own = {"Origin": site.front, "X-Gpulse": "1", "X-Forwarded-For": "6.6.6.6"}
        assert admin.post("api/v1/accounts", json={"name": "carl", "role": "viewer"}, headers=own).status_code == 201
        entry = admin.get("api/v1/audit?limit=1").json()["items"][0]
    told = (entry["who"], entry["way"], entry["address"], entry["action"], entry["target"])
    assert told == ("ann", "proxy", "127.0.0.1", "account.add", "carl")


def test_cookies_are_for_https_where_the_proxy_speaks_that(site: Site):
    address = f"{site.front}/as/-/-/api/v1/session"
    wanted = {"name": "boss", "password": "a password of some length"}
    signed_in = httpx.post(address, json=wanted, headers={"Origin": site.front, "X-Gpulse": "1"})
    assert signed_in.status_code == 200, signed_in.text
    assert signed_in.headers["set-cookie"].endswith("; Secure")


def test_the_live_stream(site: Site):
    async def first(person: str) -> Any:
        address = site.front.replace("http", "ws", 1) + f"/as/{person}/staff/api/v1/live"
        async with websockets.connect(address, open_timeout=10) as stream:
            return await asyncio.wait_for(stream.recv(), 10)

    assert '"type":"full"' in asyncio.run(first("ann"))
    with pytest.raises(websockets.InvalidStatus) as refused:
        asyncio.run(first("-"))
    assert refused.value.response.status_code == 401


def test_the_name_of_this_machine_is_one_of_the_hubs(site: Site):
    named = {"Host": socket.gethostname()}
    assert httpx.get(site.hub.url + "healthz", headers=named).status_code == 200
    assert httpx.get(site.hub.url + "healthz", headers={"Host": "evil.example.org"}).status_code == 421
