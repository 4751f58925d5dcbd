"""Another port of the hub's own machine, as somebody's notebook: it is sent the cookie of who opens it, and can do
nothing with it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from tests.patience import PATIENCE_SECONDS
from tests.web.accounts_site import AccountsSite, complaints, enter, is_in, kept_key
from tests.web.browsing import visit


class Notebook(ThreadingHTTPServer):
    """Writes down the cookies that it is sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.cookies: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/"


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Notebook)
        self.server.cookies.append(self.headers.get("Cookie", ""))
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>notebook</title><body>In [1]:</body>")

    def log_message(self, *_words: Any) -> None:
        """Nobody wants to read it."""


@contextmanager
def listening() -> Iterator[Notebook]:
    with Notebook() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join(PATIENCE_SECONDS)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccountsSite]:
    with AccountsSite(tmp_path_factory.mktemp("site")) as found:
        found.add("boss", "admin")
        yield found


@pytest.fixture
def stolen(browser: Browser, site: AccountsSite) -> Iterator[tuple[Page, str, Page]]:
    """The page of an admin, the cookie as the notebook got it, and the notebook's own page in the same browser."""
    with visit(browser, site.url) as seen, listening() as notebook:
        page = enter(seen, site.link("boss"))
        own = page.context.cookies()[0]
        other = page.context.new_page()
        other.goto(notebook.url)
        expect(other.get_by_text("In [1]:")).to_be_visible()
        # Were it not so, the rest would be a test of nothing.
        cookie = next(one for one in notebook.cookies if own["value"] in one)
        yield page, cookie, other
        # Whatever was tried, the admin is who they were.
        page.reload()
        is_in(page)
        assert complaints(seen) == []


def test_by_curl_the_cookie_is_nobody(stolen: tuple[Page, str, Page], site: AccountsSite):
    page, cookie, _ = stolen
    own = {"Cookie": cookie, "Origin": site.url.rstrip("/")}
    before = site.user("list", "--json")
    for headers in ({"Cookie": cookie}, own, own | {"X-Gpulse": "1"}):
        with httpx.Client(base_url=site.url, headers=headers, timeout=PATIENCE_SECONDS) as thief:
            answer = thief.get("api/v1/me")
            assert (answer.json()["name"], answer.json()["page_key"]) == (None, None)
            assert "set-cookie" not in answer.headers
            for path in ("api/v1/nodes", "api/v1/accounts", "api/v1/audit", "api/v1/me/keys", "metrics"):
                assert thief.get(path).status_code == 401
            wanted = {"name": "mallory", "role": "admin", "password": "correct horse battery staple"}
            assert thief.post("api/v1/accounts", json=wanted).status_code in (401, 403)
            for path in ("api/v1/session", "api/v1/session?everywhere=true"):
                assert thief.delete(path).status_code in (401, 403)
    assert site.user("list", "--json") == before
    # With the key that the page keeps it would have worked: that is all that keeps the thief out.
    both = own | {"X-Gpulse": kept_key(page) or ""}
    assert httpx.get(f"{site.url}api/v1/accounts", headers=both, timeout=PATIENCE_SECONDS).status_code == 200


def test_by_websocket_too(stolen: tuple[Page, str, Page], site: AccountsSite):
    page, cookie, _ = stolen
    key = f"gpulse.key.{kept_key(page)}"

    def status(*protocols: str) -> int:
        address = site.url.replace("http", "ws", 1) + "api/v1/live"
        named = [Subprotocol(one) for one in protocols] or None
        try:
            with connect(address, additional_headers={"Cookie": cookie}, subprotocols=named, proxy=None) as stream:
                stream.recv(15)
                return 101
        except InvalidStatus as refused:
            return refused.response.status_code

    assert [status(*named) for named in ((), ("gpulse.live",), ("gpulse.key.gpp_x",))] == [401] * 3
    assert status("gpulse.live", key) == 101


def test_its_page_does_not_find_the_key(stolen: tuple[Page, str, Page], site: AccountsSite):
    page, _, other = stolen
    assert kept_key(page) is not None
    # Neither where it keeps its own, nor in a window of the hub's page.
    assert other.evaluate("JSON.stringify({...localStorage})") == "{}"
    with other.expect_popup() as waiting:
        other.evaluate("(hub) => { window.opened = window.open(hub) }", site.url)
    is_in(waiting.value)
    look = """() => { try { return opened.localStorage.length } catch (error) { return error.name } }"""
    assert other.evaluate(look) == "SecurityError"
    waiting.value.close()


def test_a_second_tab_has_it_and_the_viewer_of_the_api_too(stolen: tuple[Page, str, Page], site: AccountsSite):
    page, _, _ = stolen
    tab = page.context.new_page()
    tab.goto(f"{site.url}#/admin")
    expect(tab.get_by_role("heading", name="Accounts", exact=True)).to_be_visible()
    tab.goto(f"{site.url}api/docs#/default/listAccounts")
    operation = tab.locator("#operations-default-listAccounts")
    operation.get_by_role("button", name="Try it out").click()
    operation.get_by_role("button", name="Execute").click()
    expect(operation.locator(".live-responses-table .response-col_status").last).to_contain_text("200")
    expect(operation.locator(".live-responses-table")).to_contain_text("boss")
    tab.close()
