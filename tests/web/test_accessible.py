"""axe-core finds nothing on any page, in any theme, at the width of a phone and of a desk, with every box open."""

import pytest
from playwright.sync_api import Browser, Page, expect

from scripts import web
from tests.system.agents import Site
from tests.web.awkward import PLACES, until_there
from tests.web.browsing import Seen, visit

AXE = web.MODULES / "axe-core" / "axe.min.js"
THEMES = ("light", "dark", "yellow", "blue")
COLOURS = ["color-contrast", "link-in-text-block"]
DESK, PHONE = 1440, 360
MOST_STOPS = 50
BOXES = {
    "Theme": "theme-menu",
    "Your name": "account-menu",
    "What can be filtered": "filter-help",
    "Tell me": "tell-me",
}
_FIND = """async ([within, rules]) => {
    const options = rules === null ? {} : { runOnly: rules };
    const { violations } = await axe.run(within, { resultTypes: ["violations"], ...options });
    return violations.map((one) => `${one.id} (${one.impact}): ${one.help}: `
        + one.nodes.slice(0, 3).map((node) => `${node.html} ${node.any[0]?.message ?? ""}`).join(" "));
}"""


def find(page: Page, within: str = "html", rules: list[str] | None = None) -> list[str]:
    return page.evaluate(_FIND, [within, rules])


def find_in_all_themes(page: Page, within: str = "html") -> list[str]:
    """All rules in one theme; in the others what depends on colours."""
    found = []
    for theme in THEMES:
        page.evaluate("(theme) => (document.documentElement.dataset.theme = theme)", theme)
        found += [f"{theme}: {one}" for one in find(page, within, None if theme == THEMES[0] else COLOURS)]
    return found


def open_page(seen: Seen, name: str) -> Page:
    page = seen.go(PLACES[name][0])
    until_there(page, name)
    page.add_script_tag(path=AXE)
    return page


@pytest.mark.parametrize("name", PLACES)
def test_pages(browser: Browser, awkward: Site, name: str):
    # A test may put a script of its own into the page; the page itself may not.
    with visit(browser, awkward.url, DESK, bypass_csp=True) as seen:
        page = open_page(seen, name)
        assert find_in_all_themes(page) == []
        # Colours do not depend on the width: in the theme that was the last.
        page.set_viewport_size({"width": PHONE, "height": 900})
        until_there(page, name)
        assert find(page) == []


@pytest.mark.parametrize("width", [DESK, PHONE])
def test_boxes(browser: Browser, awkward: Site, width: int):
    with visit(browser, awkward.url, width, bypass_csp=True) as seen:
        page = open_page(seen, "cards")
        for button, box in BOXES.items():
            page.get_by_role("button", name=button).click()
            expect(page.locator(f"#{box}")).to_be_visible()
            assert find_in_all_themes(page, f"#{box}") == []
            page.keyboard.press("Escape")


@pytest.mark.parametrize("way", ["hover", "click"])
@pytest.mark.parametrize("width", [DESK, PHONE])
def test_details_of_a_gpu(browser: Browser, awkward: Site, width: int, way: str):
    with visit(browser, awkward.url, width, bypass_csp=True) as seen:
        page = open_page(seen, "cards")
        figure = page.locator("article li", has_text="+9").locator(".percent")
        figure.hover() if way == "hover" else figure.click()
        expect(page.locator("#gpu-details")).to_contain_text("worker 3")
        assert find_in_all_themes(page, "#gpu-details") == []


# A ring around it, around what it fills, or around the box it stands in. None: the focus has left the page.
_UNSEEN = """() => {
    const one = document.activeElement;
    if (one === null || one === document.body) return null;
    const ring = (style) => style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
    const box = one.closest("form, section");
    const around = box === null ? null : getComputedStyle(box);
    const ringed = ring(getComputedStyle(one)) || ring(getComputedStyle(one, "::after"))
        || (around !== null && (ring(around) || (one.matches("input") && around.boxShadow !== "none")));
    return ringed && one.checkVisibility() ? "" : one.outerHTML.slice(0, 200);
}"""


@pytest.mark.parametrize("name", ["cards", "table", "map", "node", "people", "reservations"])
def test_every_stop_of_the_tab_key_can_be_seen(browser: Browser, awkward: Site, name: str):
    with visit(browser, awkward.url) as seen:
        page = seen.go(PLACES[name][0])
        until_there(page, name)
        stops = 0
        while stops < MOST_STOPS:
            page.keyboard.press("Tab")
            unseen = page.evaluate(_UNSEEN)
            if unseen is None:
                break
            assert unseen == "", "nobody sees that this has the focus"
            stops += 1
        assert stops > len(BOXES)


@pytest.mark.parametrize("button", BOXES)
def test_escape_closes_a_box_and_gives_the_focus_back(browser: Browser, awkward: Site, button: str):
    with visit(browser, awkward.url) as seen:
        page = seen.go()
        control = page.get_by_role("button", name=button)
        control.focus()
        page.keyboard.press("Enter")
        box = page.locator(f"#{BOXES[button]}")
        expect(box.locator(":is(button, input)").first).to_be_visible()
        page.keyboard.press("Tab")
        assert box.evaluate("(one) => one.contains(document.activeElement)")
        page.keyboard.press("Escape")
        expect(box).to_be_hidden()
        expect(control).to_be_focused()


# Links inside of a row, a tile or a chart are beside a larger way to the same place.
_SMALL = """() => [...document.querySelectorAll("button, select, input, a[href]")]
    .filter((one) => one.checkVisibility())
    .filter((one) => !one.closest("td, li[data-slot], article .people, .lanes, [role=row], .skip"))
    .map((one) => [one, one.getBoundingClientRect()])
    .filter(([one, box]) => box.height < 40 && !getComputedStyle(one, "::after").position.startsWith("abs"))
    .map(([one, box]) => `${Math.round(box.width)} x ${box.height}: ${one.outerHTML.slice(0, 160)}`)"""


@pytest.mark.parametrize("name", ["cards", "table", "map", "node", "down", "gpu", "people", "person", "reservations"])
def test_fingers_have_room(browser: Browser, awkward: Site, name: str):
    with visit(browser, awkward.url, 360, has_touch=True, is_mobile=True, bypass_csp=True) as seen:
        assert open_page(seen, name).evaluate(_SMALL) == []


def test_nothing_moves_for_those_who_asked_for_that(browser: Browser, awkward: Site):
    """`visit` asks for it."""
    with visit(browser, awkward.url) as seen:
        page = seen.go()
        assert page.evaluate("document.getAnimations().length") == 0
        page.emulate_media(reduced_motion="no-preference")
        page.wait_for_function("document.getAnimations().length > 0")
