"""Addresses of what is not there: words, links to what may have been meant, and nothing in the console."""

import pytest
from playwright.sync_api import Browser, expect

from tests.hub.running import RunningHub
from tests.web.browsing import visit


@pytest.mark.parametrize(
    ("address", "words", "near"),
    [
        ("#/nodes/gpu0l", "There is no node “gpu0l”", "gpu01"),
        ("#/nodes/printer", "There is no node “printer”", None),
        ("#/nodes/%3Cimg%20src=x%3E", "There is no node “<img src=x>”", None),
        ("#/gpus/GPU-nowhere", "There is no GPU “GPU-nowhere”", None),
        ("#/gpus/gpu01%2F99", "There is no GPU “gpu01/99”", "gpu01"),
    ],
)
def test_a_wrong_name(browser: Browser, demo: RunningHub, address: str, words: str, near: str | None):
    with visit(browser, demo.url) as seen:
        page = seen.go(address)
        expect(page.get_by_role("heading", name=words)).to_be_visible()
        if near is not None:
            page.get_by_text("Did you mean").get_by_role("link", name=near, exact=True).click()
            expect(page.get_by_role("heading", name=near)).to_be_visible()
        else:
            page.get_by_role("link", name="Show all nodes").click()
            expect(page.get_by_role("region", name="Needs attention")).to_be_visible()
        assert seen.complaints == []


@pytest.mark.parametrize(
    "address",
    [
        "#/people/nobody-of-this-name",
        '#/people/%22"',
        "#/no/such/page",
        "#/?q=flag:hot,throttled",
        "#/?q=flag:nothing",
        "#/?q=user:%22",
        "#/?q=node:@x%20alice",
        "#/?q=" + "x" * 600,
        "#/?view=nonsense",
        "?kiosk#/",
    ],
)
def test_no_address_makes_the_console_complain(browser: Browser, demo: RunningHub, address: str):
    with visit(browser, demo.url) as seen:
        page = seen.page
        page.goto(seen.url + address)
        expect(page.locator("main")).not_to_be_empty()
        # What the page asks for by itself comes within the first second; the live stream is there then.
        page.wait_for_function("() => performance.now() > 2500")
        assert seen.complaints == []
