"""What people do with reservations in the page: by mouse, keyboard and finger, with others in the way."""

import getpass
import re
import time

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.web import reserving
from tests.web.accounts_site import enter
from tests.web.browsing import Seen, seen_until, visit
from tests.web.reserving import (
    DAY,
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
from tests.web.test_accessible import AXE, find, find_in_all_themes
from tests.web.test_hostile import harmless, hostile

_SMALL = """[...document.querySelectorAll(":is(main, dialog) :is(button, a.button, .field, select, li a, summary)")]
    .filter((one) => one.checkVisibility() && one.getBoundingClientRect().height < 40).map((one) => one.outerHTML)"""


def test_by_dragging_over_several_gpus(ann: Seen):
    page = ann.page
    start, end = tomorrow(9), tomorrow(15)
    drag(
        page,
        (x_of(page, start) + 1, y_of(row_of(page, "gpu2", 1))),
        (x_of(page, end), y_of(row_of(page, "gpu2", 3))),
    )
    expect(page.get_by_label("GPUs", exact=True)).to_have_value("gpu2:1-3")
    until_tried(page, "gpu2: 1–3")
    expect(page.locator(".picked")).to_be_visible()
    page.get_by_label("Comment").fill("fine-tuning")
    page.get_by_role("button", name="Reserve", exact=True).click()
    expect(form(page)).to_contain_text("Reserved gpu2: 1–3 until")
    block = page.locator(f"{LIVE}.mine")
    expect(block).to_contain_text("ann fine-tuning")
    expect(page.locator(".picked")).to_have_count(0)
    [made] = reserving.all_of(page)
    assert (made["start"], made["end"], made["comment"]) == (start, end, "fine-tuning")
    assert [gpu["index"] for gpu in made["gpus"]] == ["1", "2", "3"]
    expect(page.get_by_role("region", name="My reservations")).to_contain_text("gpu2: 1–3")


def test_what_is_dragged_into_the_past_begins_now(ann: Seen):
    page = ann.page
    row = y_of(row_of(page, "gpu3", 0))
    # Soon after midnight there is hardly any past to begin in.
    begin = max(x_of(page, time.time()) - 3, x_of(page, tomorrow(-24)) + 1)
    drag(page, (begin, row), (x_of(page, tomorrow(1)), row))
    expect(page.get_by_label("From")).to_have_value("")
    until_tried(page, "gpu3: 0")


def test_somebody_is_in_the_way(ann: Seen, bob: Page):
    page = ann.page
    reserve(bob, "gpu2:0", start=tomorrow(8), end=tomorrow(12), comment="mine first")
    row = row_of(page, "gpu2", 0)
    expect(page.locator(LIVE, has_text="bob")).to_be_visible()
    drag(page, (x_of(page, tomorrow(13)), y_of(row)), (x_of(page, tomorrow(16)), y_of(row)))
    until_tried(page, "gpu2: 0")
    page.get_by_label("From").fill(time.strftime("%Y-%m-%d 10:00", time.localtime(tomorrow(10))))
    page.get_by_label("Comment").fill("typed with care")
    way = page.get_by_role("list", name="In the way")
    expect(way).to_contain_text("bob")
    expect(way).to_contain_text("08:00–12:00")
    page.get_by_role("button", name="Reserve", exact=True).click()
    # Refused, and nothing typed is lost.
    expect(way).to_be_visible()
    expect(page.get_by_label("Comment")).to_have_value("typed with care")
    assert [one["person"] for one in reserving.all_of(page)] == ["bob"]
    form(page).get_by_role("button", name=re.compile("gpu2: 0, .*12:00")).click()
    until_tried(page, "gpu2: 0")
    page.get_by_role("button", name="Reserve", exact=True).click()
    expect(page.locator(f"{LIVE}.mine")).to_contain_text("ann typed with care")
    own = next(one for one in reserving.all_of(page) if one["person"] == "ann")
    assert own["start"] == tomorrow(12)


def test_pulling_its_end_extends_it(ann: Seen, reserving_site: ReservingSite):
    page = ann.page
    reserve(page, "gpu2:2", start=tomorrow(6), end=tomorrow(12))
    block = page.locator(f"{LIVE}.mine")
    expect(block).to_be_visible()
    row = y_of(row_of(page, "gpu2", 2))
    drag(page, (x_of(page, tomorrow(12)) - 3, row), (x_of(page, tomorrow(18)), row))
    reserving_site.hub.until(lambda: [one["end"] for one in reserving.all_of(page)] == [tomorrow(18)])


def test_an_end_that_is_pulled_into_another_is_refused_in_words(ann: Seen, bob: Page):
    page = ann.page
    reserve(page, "gpu2:3", start=tomorrow(2), end=tomorrow(6))
    reserve(bob, "gpu2:3", start=tomorrow(8), end=tomorrow(12))
    expect(page.locator(LIVE)).to_have_count(2)
    row = y_of(row_of(page, "gpu2", 3))
    drag(page, (x_of(page, tomorrow(6)) - 3, row), (x_of(page, tomorrow(10)), row))
    expect(page.get_by_role("alert").filter(has_text="bob has gpu2: 3 from")).to_be_visible()
    assert sorted(one["end"] for one in reserving.all_of(page)) == [tomorrow(6), tomorrow(12)]


def test_opened_extended_and_cancelled(ann: Seen):
    page = ann.page
    made = reserve(page, "gpu3:0", "gpu3:1", start=tomorrow(6), end=tomorrow(18), comment="sweep")
    page.locator(f"{LIVE}.mine").click()
    opened = page.get_by_role("dialog")
    expect(opened).to_contain_text("sweep")
    expect(page).to_have_url(re.compile(f"id={made['id']}"))
    opened.get_by_role("button", name="4 h", exact=True).click()
    expect(opened).to_contain_text("Saved: until")
    assert [one["end"] for one in reserving.all_of(page)] == [tomorrow(22)]
    opened.get_by_label("Until, or for how long").fill("no such day")
    expect(opened.locator(".wrong")).not_to_be_empty()
    opened.get_by_label("Until, or for how long").fill(time.strftime("%Y-%m-%d 20:00", time.localtime(tomorrow(1))))
    expect(opened.locator(".when").last).to_contain_text(", 20:00 ")
    opened.get_by_label("Comment").fill("shorter")
    opened.get_by_role("button", name="Save").click()
    expect(opened.locator("dl")).to_contain_text("shorter")
    opened.get_by_text("History").click()
    expect(opened.locator("details")).to_contain_text("ann changed it: until")
    opened.get_by_role("button", name="Cancel it").click()
    opened.get_by_role("button", name="Yes, cancel it").click()
    expect(opened).to_contain_text("Cancelled")
    page.keyboard.press("Escape")
    expect(opened).to_have_count(0)
    expect(page.locator(f"{LIVE}.mine")).to_have_count(0)


def test_two_clicks_from_a_gpu(ann: Seen):
    page = ann.go("#/gpus/GPU-gpu3-2")
    page.get_by_role("link", name="Reserve", exact=True).click()
    expect(page.get_by_label("GPUs", exact=True)).to_have_value("gpu3:2")
    page.get_by_role("button", name="Reserve", exact=True).click()
    expect(form(page)).to_contain_text("Reserved gpu3: 2 until")
    [made] = reserving.all_of(page)
    assert made["state"] == "now"
    assert made["end"] - made["start"] == pytest.approx(4 * HOUR, abs=120)
    # And it is told wherever that GPU is.
    page = ann.go("#/gpus/GPU-gpu3-2")
    expect(page.locator("main")).to_contain_text("Reserved by you until")
    page = ann.go("#/?view=cards")
    row = page.get_by_role("article", name="gpu3").locator("li").nth(2)
    expect(row.locator(".label.reserved")).to_contain_text(re.compile("You · [34]h"))
    row.locator(".percent").click()
    details = page.get_by_role("dialog", name="GPU")
    expect(details).to_contain_text("Reserved by you until")
    expect(details.get_by_role("link", name="Reserve", exact=True)).to_be_visible()


def test_what_was_reserved_is_not_in_its_own_way(ann: Seen):
    """Who presses Reserve before it was tried what would come of it is not told so after it was saved."""
    page, held = ann.go("#/gpus/GPU-gpu3-2"), []

    def hold(route: Route) -> None:
        if route.request.method == "POST":
            held.append(route)
        else:
            route.continue_()

    page.route("**/api/v1/reservations", hold)
    page.get_by_role("link", name="Reserve", exact=True).click()
    page.get_by_role("button", name="Reserve", exact=True).click()
    seen_until(page, lambda: any(not route.request.post_data_json.get("dry_run") for route in held))
    # Long enough for a trial to begin.
    page.wait_for_timeout(1000)
    for route in sorted(held, key=lambda route: bool(route.request.post_data_json.get("dry_run"))):
        with page.expect_response(lambda answer, url=route.request.url: answer.url == url):
            route.continue_()
    expect(page.locator(".block.mine:not(.past)")).to_be_visible()
    expect(form(page)).to_contain_text("Reserved gpu3: 2 until")
    expect(form(page).get_by_role("list", name="In the way")).to_have_count(0)


def test_gpulse_picks(ann: Seen):
    page = ann.page
    page.get_by_label("How many GPUs").fill("3")
    page.get_by_label("Memory").select_option("40GB")
    page.get_by_label("Until, or for how long").fill("2h")
    until_tried(page, "2 h")
    page.get_by_role("button", name="Reserve", exact=True).click()
    expect(form(page)).to_contain_text("Reserved gpu")
    [made] = reserving.all_of(page)
    assert len({gpu["node"] for gpu in made["gpus"]}) == 1
    assert len(made["gpus"]) == 3


def test_what_cannot_be_read_says_so_beside_its_field(ann: Seen):
    page = ann.page
    page.get_by_label("Until, or for how long").fill("when it is done")
    expect(form(page).locator(".when .wrong")).not_to_be_empty()
    page.get_by_role("button", name="These").click()
    page.get_by_label("GPUs", exact=True).fill("gpu9:0")
    expect(form(page)).to_contain_text('There is no node "gpu9"; did you mean gpu')
    page.get_by_role("button", name="Reserve", exact=True).click()
    expect(page.get_by_label("Until, or for how long")).to_have_value("when it is done")
    assert reserving.all_of(page) == []


def test_an_admin_who_misspells_somebody_is_told(browser: Browser, reserving_site: ReservingSite):
    with visit(browser, reserving_site.url) as seen:
        page = enter(seen, reserving_site.link(getpass.getuser()), "#/reservations")
        page.get_by_label("For", exact=True).fill("anne")
        notice = page.get_by_text("Nobody is known here as 'anne'")
        expect(notice).to_be_visible()
        page.get_by_label("For", exact=True).fill("Ann")
        expect(notice).to_have_count(0)
        assert seen.complaints == []


def test_what_is_booked_next_is_on_the_fleet_page(ann: Seen):
    made = reserve(ann.page, "gpu2:0", start=tomorrow(6), end=tomorrow(18), comment="soon")
    page = ann.go()
    line = page.get_by_role("region", name="Booked next").get_by_role("listitem").filter(has_text="gpu2: 0")
    expect(line).to_contain_text("ann")
    line.get_by_role("link").click()
    expect(page).to_have_url(re.compile(f"id={made['id']}"))
    expect(page.get_by_role("dialog")).to_contain_text("soon")


def test_by_keyboard_alone(ann: Seen):
    page = ann.page
    grid = page.get_by_role("grid")
    for _ in range(60):
        page.keyboard.press("Tab")
        if grid.evaluate("(one) => one === document.activeElement"):
            break
    expect(grid).to_be_focused()
    said = (
        "(one) => document.getElementById(one.getAttribute('aria-activedescendant'))?.getAttribute('aria-label') ?? ''"
    )

    def until_said(words: str, key: str) -> str:
        for _ in range(40):
            if words in (heard := grid.evaluate(said)):
                return heard
            page.keyboard.press(key)
        raise AssertionError(f"{words!r} was not said, but {heard!r}")

    until_said("gpu2 GPU 1,", "ArrowDown")
    until_said("not reserved", "ArrowRight")
    # From tomorrow on: some hours, two rows.
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_label("GPUs", exact=True)).to_have_value("gpu2:1-2")
    until_tried(page, "12 h")
    expect(page.get_by_role("button", name="Reserve", exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(f"{LIVE}.mine")).to_be_visible()
    grid.focus()
    until_said("reserved by you until", "ArrowRight")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("gpu2: 1–2")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert len(reserving.all_of(page)) == 1


def test_the_window_is_in_the_address(ann: Seen):
    page = ann.page
    page.get_by_role("button", name="Month").click()
    expect(page).to_have_url(re.compile("view=month"))
    page.get_by_role("button", name="Later").click()
    expect(page).to_have_url(re.compile(r"view=month&from=\d{4}-\d\d-\d\d"))
    shown = page.locator(".range").inner_text()
    page.reload()
    expect(page.locator(".range")).to_have_text(shown)
    page.goto(f"{ann.url}#/reservations?q=node:gpu2")
    expect(page.get_by_role("grid").get_by_role("row")).to_have_count(5)


def test_the_time_under_the_pointer_stays_while_it_is_zoomed(ann: Seen):
    page = ann.page
    reserve(page, "gpu2:1", start=tomorrow(12), end=tomorrow(12) + 2 * DAY)
    block = page.locator(f"{LIVE}.mine")
    before = block.bounding_box()
    assert before
    page.mouse.move(before["x"], before["y"] - 40)
    page.keyboard.down("Control")
    for _ in range(3):
        page.mouse.wheel(0, -60)
    page.keyboard.up("Control")
    page.wait_for_function(
        "(width) => document.querySelector('.block.mine:not(.past)').getBoundingClientRect().width > 1.5 * width",
        arg=before["width"],
    )
    after = block.bounding_box()
    assert after
    assert after["x"] == pytest.approx(before["x"], abs=3)


def test_a_comment_is_text(ann: Seen, bob: Page):
    page = ann.page
    made = reserve(bob, "gpu2:0", start=tomorrow(1), end=tomorrow(23), comment=hostile("comment"))
    expect(page.locator(LIVE)).to_contain_text(hostile("comment"))
    for path in (f"#/reservations?id={made['id']}", "#/reservations?shape=list", "#/", "#/gpus/GPU-gpu2-0"):
        page = ann.go(path)
        expect(page.locator("main")).to_contain_text("bob")
        harmless(page)
    assert page.locator("main").get_by_text("comment <img").count() > 0


@pytest.mark.parametrize("who", [None, "vic"])
def test_who_may_not_reserve_sees_all_and_is_not_led_astray(
    browser: Browser, bob: Page, reserving_site: ReservingSite, who: str | None
):
    reserve(bob, "gpu2:0", start=tomorrow(1), end=tomorrow(23))
    with visit(browser, reserving_site.url) as seen:
        page = seen.go("#/reservations") if who is None else come_in(seen, who)
        block = page.locator(LIVE)
        expect(block).to_have_count(1)
        expect(page.get_by_role("button", name="Reserve", exact=True)).to_have_count(0)
        row = y_of(row_of(page, "gpu3", 0))
        drag(page, (x_of(page, tomorrow(13)), row), (x_of(page, tomorrow(16)), row))
        expect(page.locator(".picked")).to_have_count(0)
        block.click()
        opened = page.get_by_role("dialog")
        expect(opened).to_contain_text("Coming")
        expect(opened.get_by_role("button", name="Save")).to_have_count(0)
        page.keyboard.press("Escape")
        expect(opened).to_have_count(0)
        sign_in = form(page).get_by_role("link", name="Sign in to reserve")
        if who is None:
            sign_in.click()
            expect(page).to_have_url(re.compile(r"#/sign-in\?to="))
        else:
            expect(sign_in).to_have_count(0)
            expect(form(page)).to_contain_text("vic, viewer")
        page = seen.go("#/gpus/GPU-gpu3-1")
        expect(page.get_by_role("link", name="Reserve", exact=True)).to_have_count(0)
        expect(page.get_by_role("link", name="Sign in to reserve")).to_have_count(1 if who is None else 0)
        assert reserving.complaints(seen) == []


def test_on_a_phone(browser: Browser, bob: Page, reserving_site: ReservingSite):
    reserve(bob, "gpu2:0", start=tomorrow(1), end=tomorrow(23), comment="a rather long comment " * 5)
    with visit(browser, reserving_site.url, 360, has_touch=True, is_mobile=True, bypass_csp=True) as seen:
        page = come_in(seen, "ann")
        agenda = page.get_by_role("region", name="List of reservations")
        expect(agenda).to_contain_text("gpu2: 0")
        page.get_by_role("button", name="Reserve…").tap()
        page.get_by_role("button", name="These").tap()
        page.get_by_label("GPUs", exact=True).fill("gpu3:0-1")
        until_tried(page, "gpu3: 0–1")
        assert page.evaluate(_SMALL) == []
        assert seen.overflow() == 0
        page.add_script_tag(path=AXE)
        assert find(page) == []
        page.get_by_role("button", name="Reserve", exact=True).tap()
        own = agenda.get_by_role("button").filter(has_text="gpu3: 0–1")
        expect(own).to_contain_text("(you)")
        own.tap()
        opened = page.get_by_role("dialog")
        expect(opened).to_contain_text("Extend by")
        assert page.evaluate(_SMALL) == []
        assert find(page) == []
        opened.get_by_role("button", name="End now").tap()
        opened.get_by_role("button", name="Yes, end it now").tap()
        expect(opened).to_contain_text("Over")
        opened.get_by_role("button", name="Close").tap()
        page.get_by_role("button", name="Timeline").tap()
        expect(page.get_by_role("grid").get_by_role("row").first).to_be_visible()
        assert seen.overflow() == 0
        assert reserving.complaints(seen) == []


def test_axe_finds_nothing(ann: Seen, bob: Page):
    page = ann.page
    reserve(page, "gpu2:0", start=tomorrow(1), end=tomorrow(23), comment="own")
    made = reserve(bob, "gpu2:1", start=tomorrow(1), end=tomorrow(23), comment="of another")
    reserve(bob, "gpu1:0", start=time.time(), end=time.time() + HOUR)
    expect(page.locator(LIVE)).to_have_count(3)
    page.add_script_tag(path=AXE)
    page.get_by_role("grid").focus()
    page.keyboard.press("ArrowDown")
    assert find_in_all_themes(page) == []
    page.get_by_role("button", name="List").click()
    expect(page.get_by_role("region", name="List of reservations")).to_contain_text("of another")
    assert find(page) == []
    page.evaluate("(id) => (location.hash = `#/reservations?id=${id}`)", made["id"])
    expect(page.get_by_role("dialog")).to_contain_text("of another")
    assert find_in_all_themes(page, "dialog") == []
