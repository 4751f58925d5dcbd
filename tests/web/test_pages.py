"""Every page, at the widths people have, in light and dark: it fits, and the browser has nothing against it."""

import pytest
from playwright.sync_api import Browser

from tests.hub.running import RunningHub
from tests.web.browsing import PAGES, visit

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
