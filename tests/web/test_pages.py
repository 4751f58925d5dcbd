"""Every page, at the widths people have, in light and dark: it fits, stays, and the browser has nothing against it."""

import pytest
from playwright.sync_api import Browser, expect

from tests.hub.running import RunningHub
from tests.system.agents import Site
from tests.web.awkward import PLACES, until_there
from tests.web.browsing import PAGES, visit

# Where everything stands that a person looks for at the same place again.
_PLACES = """() => [...document.querySelectorAll(".strip > *, .panels > *, nav .chip, main .bar .choice")]
    .map((one) => one.getBoundingClientRect()).map((box) => `${box.left} ${box.top} ${box.width}`)"""
_POWER = "document.querySelector('.strip > :last-child .figure').textContent"
# Also those that are given up before they leave the browser.
_NOTE_REQUESTS = """const real = fetch; window.asked = [];
    window.fetch = (path, options) => (asked.push(String(path)), real(path, options))"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440, 2560])
def test_fits_and_has_no_complaint(browser: Browser, demo: RunningHub, width: int, scheme: str):
    with visit(browser, demo.url, width, color_scheme=scheme) as seen:
        for name in PAGES:
            seen.go_to(name, demo)
            assert seen.overflow() <= 0, f"{name} is wider than {width} px"
        assert seen.complaints == []


@pytest.mark.parametrize("width", [360, 1440, 2560])
def test_what_is_hard_to_show_fits(browser: Browser, awkward: Site, width: int):
    with visit(browser, awkward.url, width) as seen:
        for name, (address, _) in PLACES.items():
            until_there(seen.go(address), name)
            assert seen.overflow() <= 0, f"{name} is wider than {width} px"


def test_nothing_jumps_when_figures_change(browser: Browser, demo: RunningHub):
    with visit(browser, demo.url) as seen:
        page = seen.go_to("cards", demo)
        # All answers are there: the panels ask for theirs.
        expect(page.get_by_role("region", name="Needs attention").locator("li").first).to_be_visible()
        before = page.evaluate(_PLACES)
        assert len(before) > 20
        for _ in range(3):
            power = page.evaluate(_POWER)
            page.wait_for_function(f"(power) => {_POWER} !== power", arg=power)
            assert page.evaluate(_PLACES) == before


def test_a_page_that_is_left_does_not_live_on(browser: Browser, demo: RunningHub):
    """It asked for the GPU of an address that names none, while the next page was being loaded."""
    with visit(browser, demo.url) as seen:
        seen.page.add_init_script(_NOTE_REQUESTS)
        for left in ("gpu", "node"):
            seen.go_to(left, demo)
            seen.go_to("people", demo)
        asked = seen.page.evaluate("asked")
        assert asked
        assert [path for path in asked if path.endswith("/")] == []
