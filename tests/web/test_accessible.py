"""What axe-core calls serious is not on the page."""

import pytest
from playwright.sync_api import Browser

from scripts import web
from tests.hub.running import RunningHub
from tests.web.browsing import PAGES, visit

AXE = web.MODULES / "axe-core" / "axe.min.js"
FIND = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations
    .filter((one) => one.impact === "serious" || one.impact === "critical")
    .map((one) => one.id + ": " + one.help + ": " + one.nodes.slice(0, 3).map((node) => node.html).join(" "))"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_no_serious_violation(browser: Browser, demo: RunningHub, name: str, scheme: str):
    # A test may put a script of its own into the page; the page itself may not.
    with visit(browser, demo.url, color_scheme=scheme, bypass_csp=True) as seen:
        page = seen.go_to(name, demo)
        page.add_script_tag(path=AXE)
        assert page.evaluate(FIND) == []
