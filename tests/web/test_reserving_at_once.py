"""The details of a GPU on the fleet page: two clicks, and it is reserved."""

import re
import time

from playwright.sync_api import Browser, Page, expect

from tests.web import reserving
from tests.web.browsing import visit
from tests.web.reserving import HOUR, ReservingSite, come_in, reserve
from tests.web.test_accessible import AXE, find_in_all_themes


def opened(page: Page, node: str, index: int):
    """The first click."""
    page.get_by_role("article", name=node).locator("li").nth(index).locator(".percent").click()
    return page.get_by_role("dialog", name="GPU")


def test_two_clicks_from_a_card(browser: Browser, reserving_site: ReservingSite):
    with visit(browser, reserving_site.url, bypass_csp=True) as seen:
        page = come_in(seen, "ann", "#/?view=cards")
        details = opened(page, "gpu3", 1)
        button = details.get_by_role("button", name=re.compile(r"^Reserve until "))
        expect(button).to_have_attribute("title", re.compile(r"^gpu3: 1 until \w+day \d+ \w+ \d{4}, \d\d:\d\d "))
        page.add_script_tag(path=AXE)
        assert find_in_all_themes(page, "#gpu-details") == []
        button.click()
        expect(details).to_contain_text("Reserved by you until")
        expect(button).to_have_count(0)
        [made] = reserving.all_of(page)
        assert made["state"] == "now"
        assert 4 * HOUR - 60 <= made["end"] - made["start"] <= 4 * HOUR + 60
        assert made["end"] % 60 == 0
        assert reserving.complaints(seen) == []
        reserving.clear(page)


def test_until_the_next_has_it(browser: Browser, bob: Page, reserving_site: ReservingSite):
    start = time.time() // 60 * 60 + 2 * HOUR
    reserve(bob, "gpu3:2", start=start, end=start + HOUR)
    with visit(browser, reserving_site.url) as seen:
        page = come_in(seen, "ann", "#/?view=cards")
        details = opened(page, "gpu3", 2)
        expect(details).to_contain_text("by bob")
        details.get_by_role("button", name=re.compile(r"^Reserve until ")).click()
        expect(details).to_contain_text("Reserved by you until")
        assert sorted(one["end"] for one in reserving.all_of(page)) == [start, start + HOUR]
        assert reserving.complaints(seen) == []
        reserving.clear(page)


def test_a_refusal_is_said_there(browser: Browser, reserving_site: ReservingSite):
    with visit(browser, reserving_site.url) as seen:
        page = come_in(seen, "ann", "#/?view=cards")
        details = opened(page, "gpu3", 2)
        refusal = {"error": {"code": "too_long", "message": "a reservation can be 2 hours long at most"}}
        page.route("**/api/v1/reservations", lambda route: route.fulfill(status=422, json=refusal))
        button = details.get_by_role("button", name=re.compile(r"^Reserve until "))
        button.click()
        expect(details).to_contain_text("A reservation can be 2 hours long at most")
        expect(button).to_be_focused()


def test_who_may_not_reserve_has_no_button(browser: Browser, reserving_site: ReservingSite):
    with visit(browser, reserving_site.url) as seen:
        page = come_in(seen, "vic", "#/?view=cards")
        details = opened(page, "gpu3", 2)
        expect(details.get_by_role("link", name="Open this GPU")).to_be_visible()
        expect(details.get_by_role("button")).to_have_count(0)
