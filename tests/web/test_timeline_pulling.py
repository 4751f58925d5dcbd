"""What a hand is told while it pulls and marks on the timeline, how it gives up, and what else is there to see."""

import re
import time

from playwright.sync_api import Browser, Locator, Page, expect

from tests.web import reserving
from tests.web.browsing import Seen, visit
from tests.web.reserving import (
    HOUR,
    LIVE,
    ReservingSite,
    come_in,
    drag,
    not_while_it_strikes,
    reserve,
    row_of,
    tomorrow,
    x_of,
    y_of,
)

_LOW = """(all) => all.filter((one) => one.checkVisibility() && one.getBoundingClientRect().height < 40)
    .map((one) => one.outerHTML)"""
_LEFTS = """(all) => all.map((one) =>
    [...one.querySelectorAll("button > *")].map((part) => part.getBoundingClientRect().left))"""


def hold(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Drags and does not let go."""
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*end, steps=8)


def day_text(when: float) -> str:
    at = time.localtime(when)
    return time.strftime(f"%a {at.tm_mday} %b", at)


def next_hour(when: float) -> float:
    at = time.localtime(when)
    return time.mktime((at.tm_year, at.tm_mon, at.tm_mday, at.tm_hour + 1, 0, 0, 0, 0, -1))


def is_within(one: Locator, other: Locator) -> bool:
    inner, outer = one.bounding_box(), other.bounding_box()
    assert inner
    assert outer
    right, bottom = inner["x"] + inner["width"], inner["y"] + inner["height"]
    return (
        outer["x"] <= inner["x"]
        and right <= outer["x"] + outer["width"]
        and outer["y"] <= inner["y"]
        and bottom <= outer["y"] + outer["height"]
    )


def test_the_time_that_a_pull_would_get_is_told_at_its_edge(ann: Seen):
    page = ann.page
    reserve(page, "gpu2:2", start=tomorrow(6), end=tomorrow(12))
    expect(page.locator(f"{LIVE}.mine")).to_be_visible()
    row = y_of(row_of(page, "gpu2", 2))
    told = page.locator(".told")
    hold(page, (x_of(page, tomorrow(12)) - 3, row), (x_of(page, tomorrow(18)), row))
    expect(told).to_have_text(f"{day_text(tomorrow(18))} 18:00 · 12 h")
    # At the end of the window it stays within it.
    page.mouse.move(x_of(page, tomorrow(6 * 24)) - 2, row)
    expect(told).to_have_text(f"{day_text(tomorrow(6 * 24))} 00:00 · 5 d 18 h")
    assert is_within(told, page.locator(".layer"))
    page.keyboard.press("Escape")
    page.mouse.up()
    expect(told).to_have_count(0)
    assert [one["end"] for one in reserving.all_of(page)] == [tomorrow(12)]


def test_its_begin_is_told_too(ann: Seen):
    page = ann.page
    reserve(page, "gpu3:0", start=tomorrow(6), end=tomorrow(12))
    expect(page.locator(f"{LIVE}.mine")).to_be_visible()
    row = y_of(row_of(page, "gpu3", 0))
    hold(page, (x_of(page, tomorrow(6)) + 6, row), (x_of(page, tomorrow(4)), row))
    expect(page.locator(".told")).to_have_text(f"{day_text(tomorrow(4))} 04:00 · 8 h")
    page.keyboard.press("Escape")
    page.mouse.up()


def test_what_is_marked_says_from_when_to_when_and_how_long(ann: Seen):
    page = ann.page
    row = y_of(row_of(page, "gpu2", 1))
    told = page.locator(".told")
    hold(page, (x_of(page, tomorrow(9)) + 1, row), (x_of(page, tomorrow(11)), row))
    # Narrower than its words.
    expect(told).to_have_text(re.compile(r"^\w+ 09:00–11:00 · 2 h$"))
    assert is_within(told, page.locator(".layer"))
    page.keyboard.press("Escape")
    page.mouse.up()
    expect(told).to_have_count(0)
    expect(page.locator(".picked")).to_have_count(0)


def test_what_runs_cannot_be_pulled_to_an_end_before_the_next_hour(ann: Seen, reserving_site: ReservingSite):
    page = ann.page
    begin = time.time()
    reserve(page, "gpu2:3", start=begin, end=begin + 30 * HOUR)
    expect(page.locator(f"{LIVE}.mine")).to_be_visible()
    # Only now: what comes before may take longer than until the hour.
    not_while_it_strikes(page)
    row, pulled = y_of(row_of(page, "gpu2", 3)), time.time()
    drag(page, (x_of(page, begin + 30 * HOUR) - 3, row), (x_of(page, tomorrow(-24)) + 1, row))
    reserving_site.hub.until(lambda: [one["end"] for one in reserving.all_of(page)] != [begin + 30 * HOUR])
    [made] = reserving.all_of(page)
    assert made["end"] == next_hour(pulled)


def test_escape_drops_what_was_marked(ann: Seen):
    page = ann.page
    row = y_of(row_of(page, "gpu2", 1))
    drag(page, (x_of(page, tomorrow(9)) + 1, row), (x_of(page, tomorrow(15)), row))
    gpus = page.get_by_label("GPUs", exact=True)
    expect(gpus).to_have_value("gpu2:1")
    expect(page.get_by_role("button", name="Reserve", exact=True)).to_be_focused()
    # In a field Escape is for what is typed there.
    page.get_by_label("Comment").press("Escape")
    expect(page.locator(".picked")).to_be_visible()
    page.get_by_role("button", name="Reserve", exact=True).press("Escape")
    expect(page.locator(".picked")).to_have_count(0)
    expect(gpus).to_have_value("")
    expect(page.get_by_label("From")).to_have_value("")


def test_escape_closes_what_lies_over_the_page_first(ann: Seen):
    page = ann.page
    reserve(page, "gpu3:1", start=tomorrow(6), end=tomorrow(18))
    expect(page.locator(f"{LIVE}.mine")).to_be_visible()
    row = y_of(row_of(page, "gpu2", 1))
    drag(page, (x_of(page, tomorrow(9)) + 1, row), (x_of(page, tomorrow(15)), row))
    expect(page.get_by_role("button", name="Reserve", exact=True)).to_be_focused()
    page.locator(f"{LIVE}.mine").click()
    expect(page.get_by_role("dialog")).to_contain_text("gpu3: 1")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(".picked")).to_be_visible()


def test_a_marking_that_is_given_up_leaves_the_one_before(ann: Seen):
    page = ann.page
    row = y_of(row_of(page, "gpu2", 1))
    drag(page, (x_of(page, tomorrow(9)) + 1, row), (x_of(page, tomorrow(15)), row))
    told = page.locator(".told")
    expect(told).to_contain_text("09:00–15:00")
    expect(page.get_by_role("button", name="Reserve", exact=True)).to_be_focused()
    other = y_of(row_of(page, "gpu3", 1))
    hold(page, (x_of(page, tomorrow(30)) + 1, other), (x_of(page, tomorrow(36)), other))
    expect(told).to_contain_text("06:00–12:00")
    page.keyboard.press("Escape")
    page.mouse.up()
    expect(told).to_contain_text("09:00–15:00")
    expect(page.get_by_label("GPUs", exact=True)).to_have_value("gpu2:1")


def test_only_the_keyboard_draws_its_cell(ann: Seen):
    page = ann.page
    grid, cell = page.get_by_role("grid"), page.locator(".cursor")
    at = x_of(page, tomorrow(9)), y_of(row_of(page, "gpu2", 1))
    page.mouse.click(*at)
    expect(grid).to_be_focused()
    expect(cell).to_have_count(0)
    page.keyboard.press("ArrowDown")
    expect(cell).to_be_visible()
    page.mouse.click(*at)
    expect(cell).to_have_count(0)


def test_the_day_of_today_is_mostly_to_come(ann: Seen):
    page = ann.page
    not_while_it_strikes(page)
    page.get_by_role("button", name="Day", exact=True).click()
    expect(page).to_have_url(re.compile(r"view=day$"))
    expect(page.get_by_role("button", name="Day", exact=True)).to_have_attribute("aria-pressed", "true")
    gone = "(one) => one.getBoundingClientRect().width / one.parentElement.clientWidth"
    assert 1 / 24 <= page.locator(".gone").evaluate(gone) <= 2.1 / 24
    page.get_by_role("button", name="Later").click()
    # Soon after midnight it is the view of a whole day.
    expect(page).to_have_url(re.compile("from="))
    expect(page.locator(".gone")).to_have_count(0)
    page.get_by_role("button", name="Today").click()
    expect(page.locator(".gone")).to_have_count(1)


def test_the_key_has_every_mark(ann: Seen):
    expect(ann.page.locator(".key span")).to_have_text(
        ["Reserved", "Yours", "Not used", "Overrun", "Somebody else on it", "Blocked"]
    )


def test_my_reservations_stand_in_columns(ann: Seen):
    page = ann.page
    reserve(page, "gpu2:0", start=tomorrow(6), end=tomorrow(12), comment="short")
    reserve(page, "gpu3:0", "gpu3:1", "gpu3:3", start=tomorrow(20), end=tomorrow(75), comment="a long comment " * 5)
    lines = page.get_by_role("region", name="My reservations").get_by_role("listitem")
    expect(lines).to_have_count(2)
    first, second = lines.evaluate_all(_LEFTS)
    # The last are figures: they end below each other.
    assert first[:3] == second[:3]


def test_on_a_phone_fingers_have_room(browser: Browser, reserving_site: ReservingSite):
    with visit(browser, reserving_site.url, 360, has_touch=True, is_mobile=True) as seen:
        page = come_in(seen, "ann", "#/reservations?shape=timeline")
        expect(page.get_by_role("grid").get_by_role("row").nth(4)).to_be_visible()
        expect(page.get_by_role("link", name="In your calendar")).to_be_visible()
        assert page.locator(".calendar, [role=rowheader] :is(a, button)").evaluate_all(_LOW) == []
        assert seen.overflow() == 0
        assert reserving.complaints(seen) == []


def test_what_waits_for_its_person_is_told_where_they_look_for_theirs(ann: Seen):
    made = reserve(ann.page, "gpu2:0", "gpu2:1", start=time.time(), end=time.time() + HOUR)
    page = ann.go()
    mine = page.get_by_role("region", name="Yours")
    line = mine.get_by_role("listitem").filter(has_text="Reserved gpu2: 0–1")
    expect(line).to_contain_text("until ")
    line.get_by_role("link").click()
    expect(page).to_have_url(re.compile(f"id={made['id']}"))
