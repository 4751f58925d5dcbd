"""What the form and an opened reservation say and take: what is missing, what was saved, by keyboard and on a phone."""

import getpass
import re
import time

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.web import reserving
from tests.web.accounts_site import enter
from tests.web.browsing import Seen, visit
from tests.web.reserving import (
    HOUR,
    LIVE,
    ReservingSite,
    come_in,
    drag,
    form,
    reserve,
    row_of,
    tomorrow,
    until_tried,
    x_of,
    y_of,
)
from tests.web.test_accessible import AXE, find_in_all_themes

UNTIL = "Until, or for how long"
# Where the columns of the list begin, and how high its lines are.
_COLUMNS = """([part, count]) => {
    const found = [...document.querySelectorAll(`section[aria-label="List of reservations"] li ${part}`)];
    return found.length >= count && new Set(found.map((one) => one.getBoundingClientRect().x)).size === 1;
}"""
_HEIGHTS = """[...document.querySelectorAll('section[aria-label="List of reservations"] li')]
    .map((one) => one.getBoundingClientRect().height)"""


def button(page: Page) -> Locator:
    return page.get_by_role("button", name="Reserve", exact=True)


def refused(field: Locator) -> None:
    """Marked, and ready to be written anew."""
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_be_focused()


def clock(hour: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(tomorrow(hour)))


def opened_from(page: Page) -> Locator:
    page.locator(f"{LIVE}.mine").click()
    opened = page.get_by_role("dialog")
    expect(opened).to_contain_text("Extend by")
    return opened


def test_two_taps_from_a_gpu_on_a_phone(browser: Browser, bob: Page, reserving_site: ReservingSite):
    for hour in range(20):
        reserve(bob, "gpu2:0", start=tomorrow(hour), end=tomorrow(hour + 1))
    with visit(browser, reserving_site.url, 360, has_touch=True, is_mobile=True) as seen:
        page = come_in(seen, "ann", "#/gpus/GPU-gpu3-2")
        page.set_viewport_size({"width": 360, "height": 640})
        page.get_by_role("link", name="Reserve", exact=True).tap()
        expect(button(page)).to_be_in_viewport(ratio=1)
        until_tried(page, "gpu3: 2")
        # Not pushed away by the list when that comes.
        agenda = page.get_by_role("region", name="List of reservations")
        expect(agenda.get_by_role("listitem").nth(19)).to_be_attached()
        expect(button(page)).to_be_in_viewport(ratio=1)
        button(page).tap()
        expect(form(page)).to_contain_text("Reserved gpu3: 2 until")
        assert [one["person"] for one in reserving.all_of(page) if one["state"] == "now"] == ["ann"]
        reserving.clear(page)
        # Who only looks has what there is first, and the form one tap away.
        seen.go("#/people")
        page = seen.go("#/reservations")
        expect(agenda.get_by_role("listitem").first).to_be_in_viewport()
        page.get_by_role("button", name="Reserve…").tap()
        expect(button(page)).to_be_in_viewport(ratio=1)
        assert reserving.complaints(seen) == []


def test_what_was_chosen_elsewhere_is_filled_in_once(ann: Seen):
    page = ann.go("#/reservations?gpus=gpu3:1")
    field = page.get_by_label("GPUs", exact=True)
    expect(field).to_have_value("gpu3:1")
    field.fill("gpu3:2")
    page.get_by_role("button", name="Month").click()
    expect(page).to_have_url(re.compile("view=month"))
    until_tried(page, "gpu3: 2")
    expect(field).to_have_value("gpu3:2")


def test_what_is_missing_is_said_once_reserve_is_pressed(ann: Seen):
    page = ann.page
    page.get_by_role("button", name="These").click()
    gpus, until = page.get_by_label("GPUs", exact=True), page.get_by_label(UNTIL)
    until.fill("")
    expect(form(page)).to_contain_text("As you would say it")
    expect(form(page).locator(".wrong")).to_have_count(0)
    button(page).click()
    expect(form(page)).to_contain_text("Name a GPU, or a node for all of its GPUs.")
    expect(form(page)).to_contain_text("Say until when, or for how long.")
    refused(gpus)
    gpus.fill("gpu2:0")
    expect(gpus).to_have_attribute("aria-invalid", "false")
    button(page).click()
    refused(until)
    until.fill("2h")
    until_tried(page, "2 h")
    # Whole again: who writes anew is left in peace.
    until.fill("")
    expect(form(page)).to_contain_text("As you would say it")
    expect(until).to_have_attribute("aria-invalid", "false")
    assert reserving.all_of(page) == []


def test_a_count_is_a_whole_number(ann: Seen):
    page = ann.page
    count = page.get_by_label("How many GPUs")
    until_tried(page, "4 h")
    count.fill("")
    expect(form(page).locator(".good")).to_have_count(0)
    expect(count).to_have_attribute("aria-invalid", "false")
    button(page).click()
    expect(form(page)).to_contain_text("Take a whole number from 1 to 1024.")
    refused(count)
    count.fill("2")
    until_tried(page, "4 h")
    for wrong in ("1.5", "0", "2000"):
        count.fill(wrong)
        expect(form(page).locator(".wrong:not(:empty)")).to_have_text("Take a whole number from 1 to 1024.")
        expect(form(page).locator(".bad")).to_have_count(0)


def test_gpus_as_the_page_writes_them(ann: Seen):
    page = ann.page
    page.get_by_role("button", name="These").click()
    page.get_by_label("GPUs", exact=True).fill("gpu2: 0–1, 3 · gpu3: 2")
    until_tried(page, "gpu2: 0–1, 3 · gpu3: 2")
    page.get_by_label("GPUs", exact=True).fill("GPU2:0")
    expect(form(page)).to_contain_text('There is no node "GPU2"; did you mean gpu2?')


def test_the_keyboard_stays_where_it_is(ann: Seen):
    page = ann.page
    until_tried(page, "4 h")
    button(page).focus()
    page.keyboard.press("Enter")
    expect(form(page)).to_contain_text("Reserved gpu")
    expect(button(page)).to_be_focused()
    opened = opened_from(page)
    opened.get_by_label("Comment").fill("by hand")
    save = opened.get_by_role("button", name="Save")
    save.focus()
    page.keyboard.press("Enter")
    expect(opened.locator("dl")).to_contain_text("by hand")
    expect(save).to_be_focused()
    expect(save).to_be_disabled()
    opened.get_by_role("button", name="End now").press("Enter")
    opened.get_by_role("button", name="Yes, end it now").press("Enter")
    expect(opened).to_contain_text("Over")
    expect(opened.get_by_role("button", name="Close")).to_be_focused()


def test_what_could_be_had_instead_promises_no_more_than_is_known(ann: Seen, bob: Page):
    page = ann.page
    reserve(bob, "gpu2:0", start=tomorrow(8), end=tomorrow(12))
    page.get_by_role("button", name="These").click()
    page.get_by_label("GPUs", exact=True).fill("gpu2:0")
    page.get_by_label("From").fill(clock(9))
    expect(form(page)).to_contain_text("Could be reserved instead:")


def test_an_admin_reserves_for_somebody(browser: Browser, reserving_site: ReservingSite):
    with visit(browser, reserving_site.url) as seen:
        page = enter(seen, reserving_site.link(getpass.getuser()), "#/reservations?gpus=gpu2:1")
        until_tried(page, "gpu2: 1")
        expect(form(page).locator(".good")).not_to_contain_text("for")
        whom = page.get_by_label("For", exact=True)
        whom.fill("ann")
        until_tried(page, "gpu2: 1 for ann")
        button(page).click()
        expect(form(page)).to_contain_text("Reserved gpu2: 1 for ann until")
        expect(whom).to_have_value("")
        assert [one["person"] for one in reserving.all_of(page)] == ["ann"]
        assert seen.complaints == []
        reserving.clear(page)


def test_a_pulled_end_is_told_and_put_back(ann: Seen):
    page = ann.page
    until_tried(page, "4 h")
    reserve(page, "gpu2:2", start=tomorrow(6), end=tomorrow(12))
    expect(page.locator(f"{LIVE}.mine")).to_be_visible()
    top = page.get_by_role("grid").bounding_box()
    row = y_of(row_of(page, "gpu2", 2))
    told = page.get_by_role("status").filter(has_text="gpu2: 2 is reserved until")
    drag(page, (x_of(page, tomorrow(12)) - 3, row), (x_of(page, tomorrow(18)), row))
    expect(told).to_contain_text(re.compile(r"until \w+day \d+ \w+ \d{4}, 18:00"))
    # Nothing moves under the hand, which can pull once more at once.
    assert page.get_by_role("grid").bounding_box() == top
    drag(page, (x_of(page, tomorrow(18)) - 3, row), (x_of(page, tomorrow(15)), row))
    expect(told).to_contain_text(", 15:00")
    page.add_script_tag(path=AXE)
    assert find_in_all_themes(page) == []
    told.get_by_role("button", name="Undo").press("Enter")
    expect(told).to_contain_text(", 18:00")
    expect(told.get_by_role("button", name="Undo")).to_have_count(0)
    expect(told.get_by_role("button", name="Close")).to_be_focused()
    assert [one["end"] for one in reserving.all_of(page)] == [tomorrow(18)]
    told.get_by_role("button", name="Close").click()
    expect(told).to_have_count(0)


def test_a_start_that_was_pulled_to_now_stays(ann: Seen):
    page = ann.page
    start = round(time.time() / HOUR) * HOUR + 8 * HOUR
    reserve(page, "gpu2:2", start=start, end=start + 24 * HOUR)
    expect(page.locator(f"{LIVE}.mine")).to_be_visible()
    row = y_of(row_of(page, "gpu2", 2))
    drag(page, (x_of(page, start) + 6, row), (x_of(page, start - 2 * HOUR), row))
    told = page.get_by_role("status").filter(has_text="gpu2: 2 is reserved from")
    expect(told.get_by_role("button", name="Undo")).to_be_visible()
    drag(page, (x_of(page, start - 2 * HOUR) + 6, row), (x_of(page, time.time() - HOUR), row))
    expect(told).to_contain_text("is reserved from")
    expect(told.get_by_role("button", name="Undo")).to_have_count(0)
    expect(told.get_by_role("button", name="Close")).to_be_visible()


def test_extending_tells_until_when_before_and_after(ann: Seen):
    page = ann.page
    reserve(page, "gpu3:0", start=tomorrow(6), end=tomorrow(18))
    opened = opened_from(page)
    more = opened.get_by_role("button", name="4 h", exact=True)
    expect(more).to_have_accessible_description(re.compile(r"^Until \w+day .*, 22:00"))
    opened.get_by_label("Comment").fill("half written")
    more.press("Enter")
    expect(opened).to_contain_text(re.compile(r"Saved: until \w+day .*, 22:00"))
    expect(more).to_be_focused()
    expect(more).to_have_accessible_description(re.compile(r"^Until \w+day .*, 02:00"))
    expect(opened.get_by_label("Comment")).to_have_value("half written")


def test_its_times_and_gpus_are_changed(ann: Seen):
    page = ann.page
    reserve(page, "gpu3:0", start=tomorrow(6), end=tomorrow(18))
    opened = opened_from(page)
    gpus, save = opened.get_by_label("GPUs", exact=True), opened.get_by_role("button", name="Save")
    expect(gpus).to_have_value("gpu3:0")
    expect(save).to_be_disabled()
    gpus.fill("")
    expect(gpus).to_have_attribute("aria-invalid", "false")
    save.click()
    expect(opened).to_contain_text("Name a GPU, or a node for all of its GPUs.")
    refused(gpus)
    gpus.fill("gpu9:1")
    expect(opened).to_contain_text('There is no node "gpu9"')
    page.add_script_tag(path=AXE)
    assert find_in_all_themes(page, "dialog") == []
    gpus.fill("gpu3:1-2")
    opened.get_by_label("From", exact=True).fill(clock(8))
    # A length counts from the start, also from one that is only written.
    opened.get_by_label(UNTIL, exact=True).fill("4h")
    expect(opened.locator(".when").last).to_contain_text(", 12:00")
    save.click()
    expect(opened.get_by_role("heading")).to_have_text("gpu3: 1–2")
    expect(opened).to_contain_text(re.compile(r"Saved: until \w+day .*, 12:00"))
    expect(opened.get_by_label("From", exact=True)).to_have_value("")
    [changed] = reserving.all_of(page)
    assert (changed["start"], changed["end"]) == (tomorrow(8), tomorrow(12))
    assert [(gpu["node"], gpu["index"]) for gpu in changed["gpus"]] == [("gpu3", "1"), ("gpu3", "2")]
    # What the hub refuses is said beside its field as well.
    opened.get_by_label("From", exact=True).fill(clock(13))
    expect(opened.locator(".when").first).to_contain_text(", 13:00")
    save.click()
    expect(opened.locator(".when .wrong")).to_contain_text("It would end before it starts")
    refused(opened.get_by_label(UNTIL, exact=True))


def test_what_runs_keeps_its_start_and_lengths_count_from_now(ann: Seen):
    page = ann.page
    reserve(page, "gpu3:0", start=time.time(), end=tomorrow(18))
    opened = opened_from(page)
    expect(opened.get_by_label("From", exact=True)).to_have_count(0)
    opened.get_by_label(f"{UNTIL} from now", exact=True).fill("2h")
    expect(opened.locator(".when .ahead")).to_have_text(re.compile("in (2h 00m|1h 59m)"))


@pytest.mark.parametrize("width", [360, 1440])
def test_the_list_has_columns(browser: Browser, bob: Page, reserving_site: ReservingSite, width: int):
    reserve(bob, "gpu2:0", start=tomorrow(1), end=tomorrow(2), comment="a rather long comment " * 5)
    reserve(bob, "gpu2:1", "gpu3:1", start=tomorrow(1), end=tomorrow(49))
    with visit(browser, reserving_site.url, width) as seen:
        page = come_in(seen, "ann", "#/reservations?shape=list")
        reserve(page, "gpu3:0", start=tomorrow(26), end=tomorrow(27), comment="own")
        for part in (".when", ".who", "b"):
            page.wait_for_function(_COLUMNS, arg=[part, 3])
        if width == 360:
            assert max(page.evaluate(_HEIGHTS)) <= 60
        assert seen.overflow() == 0
        reserving.clear(page)
