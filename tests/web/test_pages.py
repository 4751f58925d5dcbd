"""Every page, at the widths people have, in light and dark: it fits, and the browser has nothing against it."""

import pytest
from playwright.sync_api import Browser

from tests.hub.running import RunningHub
from tests.web.browsing import PAGES, visit


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440, 2560])
def test_fits_and_has_no_complaint(browser: Browser, demo: RunningHub, width: int, scheme: str):
    with visit(browser, demo.url, width, color_scheme=scheme) as seen:
        for name in PAGES:
            seen.go_to(name, demo)
            assert seen.overflow() <= 0, f"{name} is wider than {width} px"
        assert seen.complaints == []
