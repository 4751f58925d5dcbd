"""Nothing is saved that was not shown, a node's row is the whole node, and a hub without reservations says so."""

import json
import re

from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.hub.running import RunningHub
from tests.web import reserving
from tests.web.accounts_site import enter
from tests.web.browsing import Seen, seen_until, visit
from tests.web.reserving import LIVE, drag, form, reserve, row_of, tomorrow, until_tried, x_of, y_of

UNTIL = "Until, or for how long"


def typed_in_haste(page: Page, field: Locator, text: str) -> None:
    """Enter is pressed before the hub has said what it understands."""
    held: list[Route] = []
    pressed = False

    def answer(route: Route) -> None:
        if pressed:
            route.continue_()
        else:
            held.append(route)

    page.route("**/api/v1/when?*", answer)
    field.fill(text)
    field.press("Enter")
    seen_until(page, lambda: held != [])
    pressed = True
    for route in held:
        route.continue_()


def test_a_time_is_shown_before_it_is_saved(ann: Seen):
    page = ann.page
    until_tried(page, "4 h")
    typed_in_haste(page, page.get_by_label(UNTIL), "next monday")
    expect(form(page)).to_contain_text("Is that the time you mean? Press Reserve once more.")
    expect(form(page)).to_contain_text(re.compile(r"Monday \d+ \w+ \d{4}, 24:00"))
    assert reserving.all_of(page) == []
    # Another time is another question.
    page.get_by_label(UNTIL).fill("3h")
    expect(form(page)).not_to_contain_text("once more")
    until_tried(page, "3 h")
    page.get_by_label(UNTIL).press("Enter")
    expect(form(page)).to_contain_text("Reserved gpu")
    assert len(reserving.all_of(page)) == 1


def test_what_was_asked_about_is_saved_by_the_second_press(ann: Seen):
    page = ann.page
    until_tried(page, "4 h")
    typed_in_haste(page, page.get_by_label(UNTIL), "5h")
    expect(form(page)).to_contain_text("once more")
    page.get_by_label(UNTIL).press("Enter")
    expect(form(page)).to_contain_text("Reserved gpu")
    expect(form(page)).not_to_contain_text("once more")


def test_of_one_that_is_there_too(ann: Seen):
    page = ann.page
    reserve(page, "gpu3:0", start=tomorrow(6), end=tomorrow(18))
    page.locator(f"{LIVE}.mine").click()
    opened = page.get_by_role("dialog")
    expect(opened).to_contain_text("Extend by")
    typed_in_haste(page, opened.get_by_label(UNTIL), "2h")
    expect(opened).to_contain_text("Is that the time you mean? Press Save once more.")
    expect(opened.locator(".when").last).to_contain_text(", 08:00")
    assert [one["end"] for one in reserving.all_of(page)] == [tomorrow(18)]
    opened.get_by_label(UNTIL).press("Enter")
    expect(opened).to_contain_text("Saved: until")
    assert [one["end"] for one in reserving.all_of(page)] == [tomorrow(8)]


def test_the_row_of_a_node_is_the_whole_node(ann: Seen):
    page = ann.page
    until_tried(page, "4 h")
    page.get_by_role("button", name="Collapse gpu2").click()
    row = y_of(row_of(page, "gpu2", -1))
    drag(page, (x_of(page, tomorrow(9)) + 1, row), (x_of(page, tomorrow(15)), row))
    expect(page.get_by_label("GPUs", exact=True)).to_have_value("gpu2:0-3")
    until_tried(page, "gpu2: 0–3")
    page.get_by_role("button", name="Reserve", exact=True).click()
    expect(page.locator(f"{LIVE}.mine")).to_be_visible()
    [made] = reserving.all_of(page)
    assert [gpu["index"] for gpu in made["gpus"]] == ["0", "1", "2", "3"]


def test_nothing_moves_when_something_is_marked(ann: Seen):
    page = ann.page
    until_tried(page, "4 h")
    top = page.get_by_role("grid").bounding_box()
    row = y_of(row_of(page, "gpu2", 1))
    drag(page, (x_of(page, tomorrow(9)) + 1, row), (x_of(page, tomorrow(15)), row))
    until_tried(page, "gpu2: 1")
    assert page.get_by_role("grid").bounding_box() == top


def test_a_fleet_without_gpus_is_no_mistake_of_who_looks(browser: Browser):
    """As who has just started gpulse sees it on a machine that has none."""
    with RunningHub("up", "--no-local") as hub, visit(browser, hub.url) as seen:
        assert hub.process.stdout
        page = enter(seen, hub.process.stdout.readline().decode().split(": ")[1].strip(), "#/reservations")
        expect(form(page)).to_contain_text("There are no GPUs to reserve yet")
        expect(form(page).locator(".when").last).to_contain_text("in 4h")
        expect(form(page).locator(".wrong")).to_have_count(0)
        page.get_by_role("button", name="Reserve", exact=True).click()
        expect(form(page).locator(".wrong")).to_contain_text("There is no such GPU")


def test_a_hub_without_reservations(ann: Seen):
    def off(route: Route) -> None:
        told = {"reservations": [], "findings": [], "revision": 0, "now": 0, "next": None, "enabled": False}
        route.fulfill(content_type="application/json", body=json.dumps({**told, "limits": None, "zone": ""}))

    calendars = {"items": [], "enabled": False}
    ann.page.route("**/api/v1/reservations?*", off)
    ann.page.route("**/api/v1/me/feeds", lambda route: route.fulfill(json=calendars))
    page = ann.go("#/people")
    page = ann.go("#/reservations")
    expect(page.get_by_role("heading", name="This hub takes no reservations")).to_be_visible()
    expect(form(page)).to_have_count(0)
    expect(page.get_by_role("grid")).to_have_count(0)
    ann.go("#/account")
    expect(page.get_by_role("heading", name="Yours")).to_be_visible()
    expect(page.get_by_role("heading", name="Calendars")).to_have_count(0)
    # What was made before can still be taken back, and nothing else made.
    calendars["items"] = [{"id": "0" * 12, "scope": "mine", "made_at": 1.8e9}]
    ann.go("#/people")
    ann.go("#/account")
    panel = page.get_by_role("region", name="Calendars")
    expect(panel).to_contain_text("This hub takes no reservations")
    expect(panel.get_by_role("button")).to_have_text(["Revoke"])
