"""Ends of lines in everything that somebody can name: none becomes a header, none a line of the hub's log."""

import itertools
import json
import re
from collections.abc import Iterator

import httpx
import msgspec
import pytest

from gpulse.api.endpoint import Endpoint
from gpulse.api.routes import ENDPOINTS
from tests.api.fleets import card, snapshot
from tests.attacks.speaking import asked, exchange, head_of, status_of
from tests.patience import PATIENCE_SECONDS
from tests.system.agents import CALM, Site
from tests.system.test_oidc import Site as SsoSite
from tests.system.test_oidc import hub_with, issuer  # noqa: F401 - a fixture

ENDS = ("%0d%0a", "%0a", "%0d", "%E5%98%8A%E5%98%8D", "%c0%8d%c0%8a", "%250d%250a")
INJECTED = "X-Injected:%20yes"
NAME = "a\r\nX-Injected: yes\r\n\r\n\x1b[31m<b>"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    shown = json.dumps(NAME)
    (folder / "gpulse.toml").write_text(
        f"[web]\ntitle = {shown}\n"
        f'[[nodes]]\nhosts = ["gpu1"]\ntransport = "push"\ndisplay_name = {shown}\ngroup = {shown}\n'
    )
    with Site(folder) as found:
        cards = [card(NAME, 0, name=NAME)]
        processes = [{"pid": 1, "user": NAME, "name": NAME, "command": NAME, "gpus": [{"uuid": NAME}]}]
        host = {"hostname": NAME, "os": NAME, "kernel": NAME}
        reports = [{"collector": NAME, "message": NAME}]
        body = snapshot("gpu1", cards, processes, host=host, reports=reports, probe=CALM)
        answer = found.post(found.token("gpu1"), body)
        assert answer.status_code == 200, answer.text
        found.until_up("gpu1")
        yield found


def clean(answer: bytes, told: str) -> None:
    assert answer.startswith(b"HTTP/1.1 "), told
    for name, value in head_of(answer):
        assert re.fullmatch(r"[a-z0-9-]+", name), told
        assert name != "x-injected", told
        assert not re.search(r"[\x00-\x08\x0a-\x1f\x7f]", value), told
    # Nor a second answer in the place of the body.
    assert answer.count(b"HTTP/1.1 ") == 1, told


def addresses(endpoint: Endpoint) -> Iterator[str]:
    """With such text for each part of the path and each parameter, and as one that does not exist."""
    for end in ENDS:
        word = f"x{end}{INJECTED}{end}{end}<b>"
        path = re.sub(r"\{[^}]+\}", word, endpoint.path)
        yield path
        for name in msgspec.structs.fields(endpoint.query):
            yield f"{path}?{name.encode_name}={word}"
        yield f"{path}?{word}=1"
        yield f"{path}{end}{INJECTED}"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_in_every_address(site: Site, method: str):
    mine = [endpoint for endpoint in ENDPOINTS if endpoint.method == method]
    # One address of each kind is enough for the ends of lines that nothing knows.
    for endpoint in mine:
        for target in itertools.islice(addresses(endpoint), 60):
            clean(asked(site.url, target, "Content-Length: 0", method=method), f"{method} {target}")


@pytest.mark.parametrize("path", ["/", "/api/docs/", "/api/docs", "/config.json", "/nowhere", "/api/v1/live"])
@pytest.mark.parametrize("end", ENDS)
def test_in_redirects_and_files(site: Site, path: str, end: str):
    for target in (f"{path}{end}{INJECTED}", f"{path}?{end}{INJECTED}", f"/{end}{INJECTED}/..{path}"):
        clean(asked(site.url, target), target)


@pytest.mark.parametrize(
    "header", ["Origin", "Referer", "Accept", "If-None-Match", "Cookie", "Authorization", "X-Forwarded-Host"]
)
@pytest.mark.parametrize(
    "value", ["a\rX-Injected: yes", "a\nX-Injected: yes", "a\0b", "a%0d%0aX-Injected: yes", "\x1b[31m"]
)
def test_in_headers(site: Site, header: str, value: str):
    for path in ("/", "/api/v1/nodes", "/api/v1/session/sso"):
        answer = asked(site.url, path, f"{header}: {value}")
        clean(answer, header)


@pytest.mark.parametrize(
    "host", ["a\rb", "a b", "localhost\n", "a%0d%0ab", "[", "localhost:80:80", "a@localhost", "a/b"]
)
def test_in_the_name_of_the_host(site: Site, host: str):
    request = f"GET /api/v1/session/sso HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
    answer = exchange(site.url, request)
    clean(answer, host)
    assert status_of(answer) in (400, 404, 421)


def test_two_lengths_and_two_hosts(site: Site):
    """What a proxy in between would read in another way than the hub."""
    twice = "Content-Length: 0\r\nContent-Length: 30"
    smuggled = "GET /api/v1/me HTTP/1.1\r\nX: y"
    both = f"Content-Length: {len(smuggled)}\r\nTransfer-Encoding: chunked"
    for headers, body in ((twice, smuggled), (both, f"0\r\n\r\n{smuggled}")):
        request = f"POST /get-status HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n\r\n{body}\r\n\r\n"
        answer = exchange(site.url, request.encode())
        assert answer.count(b"HTTP/1.1 ") <= 1, headers
        assert not answer or status_of(answer) == 400, headers


def test_what_nodes_and_settings_are_called_stays_in_the_body(site: Site):
    for path in (
        "config.json",
        "api/v1/nodes/gpu1",
        "api/v1/people",
        "api/openapi.json",
        "metrics",
        "api/v1/nodes/gpu1/log",
    ):
        clean(asked(site.url, "/" + path), path)
    assert site.hub.get("config.json")["title"] == NAME


def test_the_log_has_lines_of_the_hubs_own_alone(site: Site):
    httpx.get(f"{site.url}api/v1/nodes/" + "%0a%1b[31mX-Injected", timeout=PATIENCE_SECONDS)
    site.post(site.token("odd"), snapshot(NAME, []))
    said = site.hub.said()
    assert "\x1b[31m" not in said
    assert not [line for line in said.splitlines() if line.startswith("X-Injected")]


@pytest.fixture(scope="module")
def signing_in(issuer: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SsoSite]:  # noqa: F811 - the fixture
    with hub_with(issuer, tmp_path_factory.mktemp("sso")) as found:
        yield found


@pytest.mark.parametrize("end", ENDS)
def test_on_the_way_to_and_from_single_sign_on(signing_in: SsoSite, end: str):
    word = f"x{end}{INJECTED}"
    for target in (
        f"/api/v1/session/sso?next={word}",
        f"/api/v1/session/sso/callback?state={word}&code={word}",
        f"/api/v1/session/sso/callback?error={word}&error_description={word}",
        f"/api/v1/session/sso/callback?iss={word}",
    ):
        answer = asked(signing_in.hub.url, target)
        clean(answer, target)
        assert "Injected" not in dict(head_of(answer)).get("location", "")


@pytest.fixture(scope="module")
def believing(issuer: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SsoSite]:  # noqa: F811 - the fixture
    """Another hub: after twenty failures from one address it lets nobody try for a while."""
    with hub_with(issuer, tmp_path_factory.mktemp("believing")) as found:
        yield found


@pytest.mark.parametrize("claim", ["preferred_username", "sub", "name", "groups"])
def test_in_what_the_provider_says(believing: SsoSite, claim: str):
    claims = {"sub": f"u-{claim}", "preferred_username": f"odd{claim}", "name": "Odd", "groups": ["staff"]}
    claims[claim] = [NAME, "staff"] if claim == "groups" else NAME
    believing.set(claims)
    with believing.browser() as browser:
        answer = believing.sign_in(browser)
        assert answer.status_code in (303, 400, 403, 502)
        assert "x-injected" not in answer.headers
        assert not any(re.search(r"[\r\n\x1b]", value) for value in answer.headers.values())
        if claim == "preferred_username":
            assert answer.status_code != 303
