"""What happens to people who reserve: they click twice, let go elsewhere, have two tabs, go back, lose the hub."""

import re

from playwright.sync_api import Browser, Locator, Page, expect

from tests.web import reserving
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
    until_listed,
    until_tried,
    x_of,
    y_of,
)
from tests.web.test_accessible import AXE, find_in_all_themes
from tests.web.test_reserving_with_care import UNTIL, typed_in_haste

# Longer than two clicks of a hand that is in a hurry, and long enough for the hub to answer.
HASTE_MS = 250
LONG_NAME = "maximiliana-wolfeschlegelsteinhausenbergerdorff-the-third-longs"


def button(page: Page) -> Locator:
    return page.get_by_role("button", name="Reserve", exact=True)


def at(found: Locator) -> tuple[float, float]:
    """Its middle, for a mouse that does not wait for anything."""
    box = found.bounding_box()
    assert box
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def opened_from(page: Page) -> Locator:
    page.locator(f"{LIVE}.mine").click()
    opened = page.get_by_role("dialog")
    expect(opened).to_contain_text("Extend by")
    return opened


def test_who_clicks_twice_reserves_once(ann: Seen):
    page = ann.page
    until_tried(page, "4 h")
    place = at(button(page))
    page.mouse.dblclick(*place)
    expect(form(page)).to_contain_text("Reserved gpu")
    page.wait_for_timeout(HASTE_MS)
    page.mouse.click(*place)
    page.wait_for_timeout(HASTE_MS)
    assert len(reserving.all_of(page)) == 1
    expect(form(page)).to_contain_text("Reserved gpu")
    # Another is no more than one click away, and shown before it is saved.
    page.get_by_role("button", name="Reserve another").click()
    expect(button(page)).to_be_focused()
    until_tried(page, "4 h")
    button(page).click()
    expect(form(page)).to_contain_text("Reserved gpu")
    assert len(reserving.all_of(page)) == 2


def test_who_clicks_twice_in_a_dialog_is_still_asked(ann: Seen):
    page = ann.page
    reserve(page, "gpu3:0", start=tomorrow(6), end=tomorrow(18))
    expect(page.locator(f"{LIVE}.mine")).to_be_visible()
    page.mouse.dblclick(*at(page.locator(f"{LIVE}.mine")))
    opened = page.get_by_role("dialog")
    more = opened.get_by_role("button", name="1 h", exact=True)
    expect(more).to_be_enabled()
    expect(opened).to_be_visible()
    page.mouse.dblclick(*at(more))
    expect(opened).to_contain_text("Saved: until")
    page.mouse.dblclick(*at(opened.get_by_role("button", name="Cancel it")))
    expect(opened.get_by_role("button", name="Yes, cancel it")).to_be_enabled()
    [one] = reserving.all_of(page)
    assert (one["state"], one["end"]) == ("coming", tomorrow(19))
    opened.get_by_role("button", name="No", exact=True).click()
    # What is selected and let go of outside is not lost.
    comment = opened.get_by_label("Comment")
    comment.fill("half written")
    page.mouse.move(*at(comment))
    page.mouse.down()
    page.mouse.move(20, 300, steps=4)
    page.mouse.up()
    expect(comment).to_have_value("half written")
    expect(opened).to_be_visible()
    page.mouse.click(20, 300)
    expect(opened).to_have_count(0)


def test_a_long_name_on_a_phone(browser: Browser, reserving_site: ReservingSite):
    reserving_site.add(LONG_NAME, "member")
    with visit(browser, reserving_site.url, 360, has_touch=True, is_mobile=True) as seen:
        page = come_in(seen, LONG_NAME)
        one = reserve(page, "gpu3:0", start=tomorrow(6), end=tomorrow(18))
        page = seen.go(f"#/reservations?id={one['id']}")
        opened = page.get_by_role("dialog")
        expect(opened).to_contain_text(LONG_NAME)
        expect(opened.get_by_role("button", name="Close")).to_be_in_viewport(ratio=1)
        assert opened.evaluate("(dialog) => dialog.scrollWidth - dialog.clientWidth") == 0
        reserving.clear(page)


def test_of_two_tabs_the_later_is_told_what_the_first_did(ann: Seen, bob: Page):
    page = ann.page
    one = reserve(page, "gpu3:0", start=tomorrow(6), end=tomorrow(18), comment="before")
    reserve(bob, "gpu3:1", start=tomorrow(6), end=tomorrow(18))
    opened = opened_from(page)
    comment, save = opened.get_by_label("Comment"), opened.get_by_role("button", name="Save", exact=True)
    comment.fill("mine")
    reserving.asked(page, "PATCH", f"reservations/{one['id']}", {"comment": "of the other tab"})
    expect(opened.locator("dl")).to_contain_text("of the other tab")
    save.click()
    expect(opened).to_contain_text("Somebody has changed this reservation meanwhile. What you wrote is not saved.")
    expect(opened).to_contain_text("changed it: “of the other tab”")
    expect(comment).to_have_value("mine")
    assert [one["comment"] for one in reserving.all_of(page) if one["mine"]] == ["of the other tab"]
    opened.get_by_role("button", name="Save mine all the same").click()
    expect(opened.locator("dl")).to_contain_text("mine")
    expect(opened).not_to_contain_text("meanwhile")
    # What one extends oneself is in nobody's way.
    comment.fill("mine again")
    opened.get_by_role("button", name="1 h", exact=True).click()
    expect(opened).to_contain_text("Saved: until")
    save.click()
    expect(opened.locator("dl")).to_contain_text("mine again")
    # An objection goes with what it was made to.
    gpus = opened.get_by_label("GPUs", exact=True)
    gpus.fill("gpu3:1")
    save.click()
    expect(opened.get_by_role("list", name="In the way")).to_contain_text("bob")
    gpus.fill("gpu3:2")
    expect(opened.get_by_role("list", name="In the way")).to_have_count(0)


def test_what_was_chosen_elsewhere_is_not_met_again(ann: Seen):
    page = ann.go("#/reservations?gpus=gpu3:1&view=month")
    until_tried(page, "gpu3: 1")
    button(page).click()
    expect(form(page)).to_contain_text("Reserved gpu3: 1 until")
    expect(page).to_have_url(re.compile(r"#/reservations\?view=month$"))
    [one] = reserving.all_of(page)
    # Not a minute more, and not hidden by what is shown.
    assert abs(one["end"] - one["start"] - 4 * HOUR) < 1


def test_an_end_is_written_in_one_way(ann: Seen):
    page = ann.page
    page.get_by_label(UNTIL).fill("tomorrow")
    below = form(page).locator(".when").last
    expect(below).to_contain_text(", 24:00")
    day = re.search(r"\w+day \d+ \w+ \d{4}, 24:00", below.inner_text())
    assert day
    until_tried(page, day[0])


def test_an_opened_one_is_asked_for_when_it_changes_and_when_the_hub_is_back(ann: Seen):
    page = ann.page
    one = reserve(page, "gpu3:0", start=tomorrow(6), end=tomorrow(18))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    opened = opened_from(page)
    page.wait_for_timeout(3000)
    assert 1 <= len([url for url in asked if url.endswith(one["id"])]) <= 2
    reserving.asked(page, "PATCH", f"reservations/{one['id']}", {"comment": "by others"})
    expect(opened.locator("dl")).to_contain_text("by others")
    # A hub that goes away and comes back so soon that the page need not say so.
    page.route(f"**/api/v1/reservations/{one['id']}", lambda route: route.abort())
    page.route("**/api/v1/when?*", lambda route: route.abort())
    opened.get_by_role("button", name="Close").click()
    # It has such a field, too.
    expect(opened).to_have_count(0)
    page.get_by_label("From").fill("mon 9:00")
    expect(form(page).locator(".when").first).to_contain_text("The hub does not answer")
    page.locator(f"{LIVE}.mine").click()
    expect(opened).to_contain_text("The hub does not answer")
    page.unroute_all(behavior="wait")
    expect(opened).to_contain_text("Extend by")
    expect(form(page).locator(".when").first).to_contain_text(", 09:00")
    ann.complaints[:] = [words for words in ann.complaints if "ERR_FAILED" not in words]


def test_back_leads_back(ann: Seen):
    page = ann.go("#/people")
    page.get_by_role("link", name="Reservations").click()
    until_listed(page)
    reserve(page, "gpu3:0", start=tomorrow(6), end=tomorrow(18))
    opened = opened_from(page)
    expect(page).to_have_url(re.compile("id="))
    opened.get_by_role("button", name="Close").click()
    expect(opened).to_have_count(0)
    expect(page).not_to_have_url(re.compile("id="))
    page.go_back()
    expect(page).to_have_url(re.compile("#/people$"))


def test_nothing_moves_when_somebody_is_in_the_way(ann: Seen, bob: Page):
    page = ann.page
    reserve(bob, "gpu2:1", start=tomorrow(8), end=tomorrow(18))
    until_tried(page, "4 h")
    top = page.get_by_role("grid").bounding_box()
    row = y_of(row_of(page, "gpu2", 1))
    drag(page, (x_of(page, tomorrow(2)) + 1, row), (x_of(page, tomorrow(12)), row))
    others = form(page).get_by_role("list", name="In the way")
    expect(others).to_contain_text("bob")
    assert page.get_by_role("grid").bounding_box() == top
    expect(others.get_by_role("button", name="Show")).to_be_in_viewport(ratio=1)
    page.add_script_tag(path=AXE)
    assert find_in_all_themes(page) == []
    expect(button(page)).to_be_focused()
    page.keyboard.press("Tab")
    expect(others.get_by_role("button", name="Show")).to_be_focused()
    # Who is told of somebody is not asked about the time as well.
    typed_in_haste(page, page.get_by_label(UNTIL), "11h")
    expect(others).to_contain_text("bob")
    expect(form(page)).not_to_contain_text("once more")
    page.get_by_label(UNTIL).fill("x" * 300)
    expect(page.get_by_label(UNTIL)).to_have_value("x" * 200)
    expect(form(page)).to_contain_text("is too long to be a time")
    page.get_by_label(UNTIL).fill("2h")
    until_tried(page, "2 h")
    expect(others).to_have_count(0)
