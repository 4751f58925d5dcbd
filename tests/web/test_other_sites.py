"""A page of another site, open in the browser of somebody who is signed in as admin here; and one that pretends to
be here, by a name that its owner has bound to the hub's address."""

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page

from tests.patience import PATIENCE_SECONDS
from tests.web.accounts_site import AccountsSite, enter, is_in
from tests.web.browsing import seen_until, visit

# What the pages of the attacker do; each gives what it could read, and nothing where it could read nothing.
_READING = """async (hub) => {
    const read = [];
    for (const path of ["api/v1/nodes", "api/v1/me", "api/v1/accounts", "api/v1/me/keys", "metrics", "config.json"])
        for (const options of [{credentials: "include"}, {}, {credentials: "include", headers: {"X-Gpulse": "1"}}])
            try {
                const answer = await fetch(hub + path, options);
                read.push(path + " " + (await answer.text()).slice(0, 100));
            } catch { /* it may not */ }
    return read;
}"""
_CHANGING = """async ([hub, body]) => {
    const read = [];
    for (const method of ["POST", "PATCH", "DELETE", "PUT"])
        for (const path of ["api/v1/accounts", "api/v1/me/keys", "api/v1/session", "api/v1/session?everywhere=true"])
            for (const [type, own] of [["text/plain", {}], ["application/json", {"X-Gpulse": "1"}]])
                for (const mode of ["cors", "no-cors"])
                    try {
                        const headers = {"Content-Type": type, ...own};
                        const answer = await fetch(hub + path, {
                            method, mode, headers, credentials: "include", body: method === "DELETE" ? undefined : body,
                        });
                        if (answer.type !== "opaque") read.push(method + " " + path + " " + answer.status);
                    } catch { /* it may not */ }
    navigator.sendBeacon(hub + "api/v1/accounts", new Blob([body], {type: "text/plain"}));
    return read;
}"""
_FORMS = """([hub, body]) => new Promise((done) => {
    const at = body.indexOf("=");
    let open = 0;
    for (const path of ["api/v1/accounts", "api/v1/me/keys", "api/v1/session", "api/v1/session/link"])
        for (const enctype of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
            const frame = document.createElement("iframe");
            frame.name = "f" + open++;
            document.body.append(frame);
            const form = document.createElement("form");
            Object.assign(form, {method: "POST", action: hub + path, enctype, target: frame.name});
            const field = document.createElement("input");
            // As text/plain this is one JSON object, with a "=" within a string.
            [field.name, field.value] = [body.slice(0, at), body.slice(at + 1)];
            form.append(field);
            document.body.append(form);
            frame.addEventListener("load", () => --open || done(true), {once: true});
            form.submit();
        }
})"""
_SOCKETS = """async (hub) => {
    const heard = [];
    const ingest = "api/v1/ingest?instance=0123456789abcdef";
    for (const path of ["api/v1/live?format=json", "api/v1/live?format=binary", ingest])
        await new Promise((done) => {
            const socket = new WebSocket(hub.replace("http", "ws") + path);
            socket.onopen = () => heard.push("open " + path);
            socket.onmessage = () => { heard.push("message " + path); socket.close(); };
            socket.onclose = done;
        });
    return heard;
}"""
_TAGS = """async (hub) => {
    const loaded = [];
    const parts = [["script", "api/v1/nodes"], ["script", "theme.js"], ["img", "icon.svg"], ["link", "custom.css"]];
    for (const [tag, path] of parts)
        await new Promise((done) => {
            const one = document.createElement(tag);
            one.onload = () => { loaded.push(path); done(); };
            one.onerror = done;
            if (tag === "link") { one.rel = "stylesheet"; one.href = hub + path; } else one.src = hub + path;
            document.head.append(one);
        });
    return loaded;
}"""
_NEW = json.dumps({"name": "mallory", "role": "admin", "password": "correct horse battery staple", "display": "a=b"})


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>cats</title><body>cats</body>")

    def log_message(self, *_words: Any) -> None:
        """Nobody wants to read it."""


@contextmanager
def elsewhere() -> Iterator[int]:
    """The port of a site that is not ours."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join(PATIENCE_SECONDS)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccountsSite]:
    with AccountsSite(tmp_path_factory.mktemp("site")) as found:
        found.add("boss", "admin")
        yield found


@pytest.fixture(scope="module")
def attacker() -> Iterator[int]:
    with elsewhere() as port:
        yield port


@pytest.fixture
def victim(browser: Browser, site: AccountsSite, attacker: int, request: pytest.FixtureRequest) -> Iterator[Page]:
    """The attacker's page, in the browser of an admin who is signed in at the hub.

    Of another port of the same address browsers say "same-site", and send the cookie along; of another name not.
    """
    with visit(browser, site.url) as seen:
        enter(seen, site.link("boss"))
        name = getattr(request, "param", "127.0.0.1")
        page = seen.page.context.new_page()
        page.goto(f"http://{name}:{attacker}/")
        yield page
        # The admin is who they were, with the cookie they had.
        seen.page.reload()
        is_in(seen.page)


def everything(site: AccountsSite) -> tuple[str, str]:
    """What could have been changed."""
    return site.user("list", "--json"), " ".join(site.folder.joinpath("gpulse.toml").read_text().split())


both = pytest.mark.parametrize("victim", ["127.0.0.1", "localhost"], indirect=True)


@both
def test_nothing_is_read(victim: Page, site: AccountsSite):
    assert victim.evaluate(_READING, site.url) == []


@both
def test_nothing_is_changed_by_scripts(victim: Page, site: AccountsSite):
    before = everything(site)
    assert victim.evaluate(_CHANGING, [site.url, _NEW]) == []
    assert everything(site) == before


@both
def test_nothing_is_changed_by_forms(victim: Page, site: AccountsSite):
    before = everything(site)
    assert victim.evaluate(_FORMS, [site.url, _NEW])
    assert "mallory" not in before[0]
    assert everything(site) == before


@both
def test_nothing_is_heard_by_sockets(victim: Page, site: AccountsSite):
    assert victim.evaluate(_SOCKETS, site.url) == []


@both
def test_nothing_is_loaded_as_a_part_of_a_page(victim: Page, site: AccountsSite):
    """Not even a picture, whose size might tell something. Of the same host browsers let parts be loaded that the hub
    tells everybody: files of the page."""
    assert set(victim.evaluate(_TAGS, site.url)) <= {"theme.js", "icon.svg"}


@both
def test_no_frame_of_it(victim: Page, site: AccountsSite):
    victim.evaluate("(hub) => { document.body.innerHTML = `<iframe src='${hub}'></iframe>` }", site.url)
    victim.wait_for_function("frames.length === 1")
    seen_until(victim, lambda: victim.frames[1].url.startswith("chrome-error:"))


def test_a_name_bound_to_the_hubs_address(browser: Browser, site: AccountsSite, tmp_path: Path):
    """DNS rebinding: for the browser it is one site all the time, and it is the hub that must not answer."""
    chromium = shutil.which("chromium")
    port = urlsplit(site.url).port
    options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    rebound = "--host-resolver-rules=MAP cats.example 127.0.0.1"
    found = browser.browser_type.launch(executable_path=chromium, args=[*options, rebound], env={"HOME": str(tmp_path)})
    try:
        # The attacker's page was served before the name was bound to this address, and has no policy of ours.
        page = found.new_page(bypass_csp=True)
        answer = page.goto(f"http://cats.example:{port}/")
        assert answer is not None
        assert answer.status == 421
        assert "access.hosts" in page.content()
        asking = """async (path) => {
            const answer = await fetch(path, {headers: {"X-Gpulse": "1"}});
            return [answer.status, await answer.text()];
        }"""
        for path in ("/api/v1/nodes", "/api/v1/me", "/healthz", "/config.json"):
            status, text = page.evaluate(asking, path)
            assert (status, json.loads(text)["error"]["code"]) == (421, "unknown_host")
        assert page.evaluate(_SOCKETS, f"http://cats.example:{port}/") == []
        signing_in = """async () => (await fetch("/api/v1/session", {method: "POST", headers: {"X-Gpulse": "1"},
            body: JSON.stringify({name: "boss", password: "correct horse battery staple"})})).status"""
        assert page.evaluate(signing_in) == 421
    finally:
        found.close()
