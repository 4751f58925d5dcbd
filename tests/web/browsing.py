"""The page in a real browser, with everything written down that it must not do."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect

from tests.hub.running import RunningHub

# The machine may be busy with other tests.
WAIT_MS = 100_000
expect.set_options(timeout=WAIT_MS)

# By name of a page, what is there only when it has its data.
PAGES = {
    "cards": "article li",
    "table": "[role=row] a",
    "map": "canvas",
    "node": ".uplot",
    "gpu": ".uplot",
    "people": "tbody tr, li",
    "reservations": "form",
}

# Violations of the page's policy are told to the document, not always to the console.
_LISTEN = """addEventListener("securitypolicyviolation", (event) =>
    console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`))"""


class Seen:
    """A page and what went wrong on it."""

    def __init__(self, page: Page, url: str):
        self.page = page
        self.url = url
        self._host = urlsplit(url).netloc
        self.complaints: list[str] = []
        page.add_init_script(_LISTEN)
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text} {message.location['url']}")

    def _request(self, request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme not in ("data", "blob") and address.netloc != self._host:
            self.complaints.append(f"another host: {request.url}")

    def go(self, path: str = "#/") -> Page:
        """To a page of the address, once it has data."""
        self.page.goto(self.url + path)
        expect(self.page.get_by_role("button", name="Pause live data")).to_contain_text("Live")
        return self.page

    def go_to(self, name: str, hub: RunningHub) -> Page:
        """To one of PAGES; the first node that is up stands for all."""
        node = next(one for one in hub.get("api/v1/nodes")["items"] if one["state"] == "up" and one["gpus"])
        own = {"node": f"#/nodes/{node['name']}", "gpu": f"#/gpus/{node['gpus'][0]['id']}", "people": "#/people"}
        own["reservations"] = "#/reservations"
        page = self.go(own.get(name, f"#/?view={name}"))
        if name == "cards":
            # Far below the window, as on a phone, there are none yet.
            page.get_by_role("region", name="Nodes").scroll_into_view_if_needed()
        expect(page.locator(f"main :is({PAGES[name]})").first).to_be_visible()
        return page

    def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        return self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def seen_until(page: Page, true: Callable[[], bool]) -> None:
    """Waits for what is no element: what the page tells meanwhile is heard."""
    for _ in range(WAIT_MS // 100):
        if true():
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"not within {WAIT_MS // 1000} s")


@contextmanager
def visit(browser: Browser, url: str, width: int = 1440, **options: Any) -> Iterator[Seen]:
    """A person with an empty browser; `options` are those of a Playwright context."""
    context = browser.new_context(viewport={"width": width, "height": 900}, reduced_motion="reduce", **options)
    with closing(context):
        context.set_default_timeout(WAIT_MS)
        try:
            yield Seen(context.new_page(), url)
        finally:
            # An answer that a test is still changing would fail later, in a test that has nothing to do with it.
            # What it holds back for good is not waited for.
            context.unroute_all(behavior="ignoreErrors")
            for page in context.pages:
                page.unroute_all(behavior="ignoreErrors")
