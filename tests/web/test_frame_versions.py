"""A page and a hub of different versions: the page says so and asks to be loaded again, and doesn't hammer the hub."""

import pytest
from playwright.sync_api import Browser, WebSocketRoute, expect

from tests.hub.running import RunningHub
from tests.web.browsing import visit

# Where a live frame has its version.
VERSION_AT = 4


class OtherVersion:
    """Stands between page and hub and gives frames another version; `version` None leaves them alone."""

    def __init__(self, version: int | None):
        self.version = version
        self.connections = 0

    def __call__(self, route: WebSocketRoute) -> None:
        self.connections += 1
        hub = route.connect_to_server()

        def forward(message: str | bytes) -> None:
            if self.version is not None and isinstance(message, bytes):
                message = message[:VERSION_AT] + bytes([self.version]) + message[VERSION_AT + 1 :]
            route.send(message)

        hub.on_message(forward)


@pytest.mark.parametrize(
    ("version", "words"), [(1, "The hub is older than this page"), (9, "This page is out of date")]
)
def test_a_page_that_cannot_read_the_hub_asks_to_be_loaded_again(
    browser: Browser, demo: RunningHub, version: int, words: str
):
    between = OtherVersion(version)
    with visit(browser, demo.url) as seen:
        seen.page.route_web_socket("**/api/v1/live**", between)
        seen.page.goto(demo.url)
        notice = seen.page.get_by_role("region", name=words)
        expect(notice).to_contain_text("Load the page again")
        expect(notice.get_by_role("button", name="Load the page again")).to_be_visible()
        before = between.connections
        assert before <= 2
        seen.page.wait_for_timeout(5000)
        assert between.connections == before


def test_a_hub_that_is_upgraded_under_an_open_page(browser: Browser, demo: RunningHub):
    """The last figures stay; loading the page again is all it takes."""
    between = OtherVersion(None)
    with visit(browser, demo.url) as seen:
        seen.page.route_web_socket("**/api/v1/live**", between)
        page = seen.go("#/?view=cards")
        expect(page.locator("article").first).to_be_visible()
        between.version = 9
        bar = page.get_by_text("This page is out of date")
        page.get_by_role("button", name="Refresh").click()
        expect(bar).to_be_visible()
        expect(page.locator("article").first).to_be_visible()
        before = between.connections
        page.wait_for_timeout(5000)
        assert between.connections == before
        between.version = None
        page.get_by_role("button", name="Load the page again").click()
        expect(page.get_by_role("button", name="Pause live data")).to_contain_text("Live")
        expect(bar).to_have_count(0)
