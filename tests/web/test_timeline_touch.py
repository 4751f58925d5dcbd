"""A finger on the timeline: one that rests marks, one that moves at once moves the time or the rows, a tap opens."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, CDPSession, Page, expect

from tests.web import reserving
from tests.web.browsing import Seen, visit
from tests.web.reserving import (
    DAY,
    ReservingSite,
    come_in,
    reserve,
    row_of,
    tomorrow,
    until_listed,
    until_tried,
    x_of,
    y_of,
)

TABLET = 1024
STEPS = 6
# The page and its rows together.
_SCROLLED = "scrollY + document.querySelector('[role=grid]').scrollTop"

# On a machine that is busy a finger that moves at once is slow, too: it must not seem to rest.
LONGEST_REST_MS = 20_000
_LONGER_REST = """const usual = window.setTimeout;
    window.setTimeout = (work, wait, ...more) => usual(work, wait === 400 ? %d : wait, ...more);"""
# Other things wait as long: what a finger begins that comes down is its rest.
_TELLS_REST = """const before = window.setTimeout;
    window.setTimeout = (work, wait, ...more) => {
        const rest = wait === 400 && window.event?.type === "pointerdown";
        return before(rest ? () => { work(...more); window.rested = true; } : work, wait, ...more);
    };"""


class Finger:
    """Real touches: the browser makes of them what it makes of a finger's, scrolling included."""

    def __init__(self, page: Page):
        self._devtools: CDPSession = page.context.new_cdp_session(page)
        self._at = (0.0, 0.0)

    def down(self, x: float, y: float) -> None:
        self._at = (x, y)
        self._tell("touchStart", [{"x": x, "y": y}])

    def move(self, x: float, y: float) -> None:
        """In steps, as a hand does."""
        left, top = self._at
        for step in range(1, STEPS + 1):
            share = step / STEPS
            self._tell("touchMove", [{"x": left + (x - left) * share, "y": top + (y - top) * share}])
        self._at = (x, y)

    def up(self) -> None:
        self._tell("touchEnd", [])

    def _tell(self, kind: str, points: list[dict[str, float]]) -> None:
        self._devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})


def there(page: Page) -> None:
    expect(page.get_by_role("grid").get_by_role("row").filter(has_text="gpu3")).to_be_attached()
    until_listed(page)
    page.get_by_role("grid").scroll_into_view_if_needed()


def rest_longer(page: Page, wait_ms: int = LONGEST_REST_MS) -> None:
    page.add_init_script(_LONGER_REST % wait_ms)
    page.reload()
    there(page)


@pytest.fixture
def ann(browser: Browser, reserving_site: ReservingSite) -> Iterator[Seen]:
    with visit(browser, reserving_site.url, TABLET, has_touch=True) as seen:
        page = come_in(seen, "ann")
        there(page)
        yield seen
        reserving.clear(page)
        assert reserving.complaints(seen) == []


def test_a_finger_that_rests_begins_to_mark(ann: Seen):
    page, finger = ann.page, Finger(ann.page)
    start, end = tomorrow(6), tomorrow(18)
    first, last = y_of(row_of(page, "gpu2", 1)), y_of(row_of(page, "gpu2", 2))
    finger.down(x_of(page, start) + 1, first)
    # Nothing is marked until it has rested.
    expect(page.locator(".picked")).to_be_visible()
    finger.move(x_of(page, end), last)
    finger.up()
    expect(page.get_by_label("GPUs", exact=True)).to_have_value("gpu2:1-2")
    until_tried(page, "gpu2: 1–2")
    page.get_by_role("button", name="Reserve", exact=True).tap()
    expect(page.locator(".block.mine:not(.past)")).to_be_visible()
    [made] = reserving.all_of(page)
    assert (made["start"], made["end"]) == (start, end)


def test_a_finger_that_moves_at_once_moves_the_time(ann: Seen):
    page, finger = ann.page, Finger(ann.page)
    shown = page.locator(".range").inner_text()
    rest_longer(page)
    row = y_of(row_of(page, "gpu2", 1))
    finger.down(x_of(page, tomorrow(0) + 4 * DAY), row)
    finger.move(x_of(page, tomorrow(0)), row)
    finger.up()
    expect(page.locator(".range")).not_to_have_text(shown)
    expect(page.locator(".picked")).to_have_count(0)
    expect(page.get_by_label("GPUs", exact=True)).to_have_count(0)


def test_a_finger_that_moves_up_scrolls_and_marks_nothing(ann: Seen):
    page, finger = ann.page, Finger(ann.page)
    shown = page.locator(".range").inner_text()
    page.set_viewport_size({"width": TABLET, "height": 420})
    rest_longer(page, wait_ms=4000)
    row_of(page, "gpu2", 0).scroll_into_view_if_needed()
    x, y = x_of(page, tomorrow(0) + 3 * DAY), y_of(row_of(page, "gpu2", 0))
    before = page.evaluate(_SCROLLED)
    finger.down(x, y)
    finger.move(x, y - 120)
    page.wait_for_function(f"(before) => {_SCROLLED} > before + 40", arg=before)
    # Longer than a finger has to rest.
    page.wait_for_timeout(4200)
    finger.up()
    expect(page.locator(".picked")).to_have_count(0)
    expect(page.locator(".range")).to_have_text(shown)


def test_a_rest_on_its_edge_extends_it_and_a_tap_opens_it(ann: Seen, reserving_site: ReservingSite):
    page, finger = ann.page, Finger(ann.page)
    page.add_init_script(_TELLS_REST)
    page.reload()
    there(page)
    reserve(page, "gpu3:1", start=tomorrow(0), end=tomorrow(0) + DAY)
    block = page.locator(".block.mine:not(.past)")
    expect(block).to_be_visible()
    row = y_of(row_of(page, "gpu3", 1))
    finger.down(x_of(page, tomorrow(0) + DAY) - 6, row)
    page.wait_for_function("() => window.rested === true")
    finger.move(x_of(page, tomorrow(0) + 2 * DAY) - 6, row)
    finger.up()
    reserving_site.hub.until(lambda: [one["end"] for one in reserving.all_of(page)] == [tomorrow(0) + 2 * DAY])
    expect(page.get_by_role("dialog")).to_have_count(0)
    rest_longer(page)
    expect(block).to_be_visible()
    # The panel above may have grown meanwhile.
    finger.down(x_of(page, tomorrow(6)), y_of(row_of(page, "gpu3", 1)))
    finger.up()
    expect(page.get_by_role("dialog")).to_contain_text("gpu3: 1")
