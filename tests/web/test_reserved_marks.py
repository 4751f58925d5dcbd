"""That GPUs are reserved, where people look at them: behind charts, as marks of GPUs and nodes, and in the filter."""

import re
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.web import reserving
from tests.web.browsing import Seen, seen_until, visit
from tests.web.reserving import HOUR, ReservingSite, come_in, reserve
from tests.web.test_accessible import AXE, find, find_in_all_themes

SQUATTED = "ann computes on what bob has reserved"
# By which all charts of a page say what their bands are.
RESERVED = "Reserved in this time"
# The colours of a chart's canvas below its upper edge: at its begin, and twice near its end.
_COLOURS = """(plot) => {
    const canvas = plot.querySelector("canvas"), over = plot.querySelector(".u-over");
    const ratio = canvas.width / canvas.clientWidth;
    // A copy to read from: browsers complain of canvases that are drawn on and read.
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const [left, width, y] = [over.offsetLeft * ratio, over.clientWidth * ratio, (over.offsetTop + 4) * ratio];
    return [0.05, 0.75, 0.95].map((share) => copy.getImageData(left + share * width, y, 1, 1).data.join());
}"""


@pytest.fixture
def ann(browser: Browser, reserving_site: ReservingSite) -> Iterator[Seen]:
    with visit(browser, reserving_site.url, bypass_csp=True) as seen:
        page = come_in(seen, "ann", "#/people")
        yield seen
        reserving.clear(page)
        assert reserving.complaints(seen) == []


def asks(page: Page) -> list[dict[str, list[str]]]:
    """Fills with what the page asks for reservations from now on."""
    found: list[dict[str, list[str]]] = []

    def note(request: Any) -> None:
        address = urlsplit(request.url)
        if address.path.endswith("/api/v1/reservations") and request.method == "GET":
            found.append(parse_qs(address.query))

    page.on("request", note)
    return found


def earlier(page: Page, seconds: float) -> None:
    """Nobody can reserve the past: the page is told that what runs began earlier, and nothing of earlier tests."""

    def changed(route: Route) -> None:
        answer = route.fetch()
        told = answer.json()
        told["reservations"] = [one for one in told["reservations"] if one["state"] == "now"]
        for one in told["reservations"]:
            one["start"] -= seconds
        route.fulfill(response=answer, json=told)

    page.route(re.compile(r"/api/v1/reservations\?node="), changed)


def mark(within: Locator) -> Locator:
    return within.get_by_role("img", name=SQUATTED)


def test_charts_show_the_time_that_is_reserved(ann: Seen, bob: Page):
    now = time.time()
    reserve(bob, "gpu2:0", "gpu2:1", start=now, end=now + HOUR)
    earlier(ann.page, 240)
    page = ann.go("#/gpus/GPU-gpu2-0")
    line = page.get_by_role("list", name=RESERVED)
    expect(line).to_have_text(re.compile(r"^\s*Reserved by bob from [^ ]+ to [^ ]+( \d\d:\d\d)?\s*$"))
    plot = page.get_by_role("slider", name="Utilisation: time")
    expect(plot).to_have_attribute("aria-describedby", line.get_attribute("id") or "?")
    expect(plot.locator("canvas")).to_be_visible()
    page.wait_for_function(
        f"(plot) => {{ const [before, begun, now] = ({_COLOURS})(plot); return before !== begun && begun === now; }}",
        arg=plot.element_handle(),
    )
    box = plot.bounding_box()
    assert box
    said = plot.locator(".said")
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 60)
    expect(said).to_contain_text("Reserved by bob from")
    # Four of ten minutes: what comes before is nobody's.
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 60)
    expect(said).to_have_count(0)
    page.mouse.move(0, 0)
    plot.focus()
    page.keyboard.press("ArrowLeft")
    expect(said).to_contain_text("Reserved by bob from")
    page.add_script_tag(path=AXE)
    assert find_in_all_themes(page) == []
    line.get_by_role("link").click()
    expect(page.get_by_role("dialog")).to_contain_text("gpu2: 0–1")


def test_ones_own_time_is_said_to_be_that_and_ends_with_it(ann: Seen):
    made = reserve(ann.page, "gpu3:2", start=time.time(), end=time.time() + HOUR)
    page = ann.go("#/gpus/GPU-gpu3-2")
    line = page.get_by_role("list", name=RESERVED)
    expect(line).to_contain_text("Reserved by you from")
    before = line.inner_text()
    reserving.asked(page, "POST", f"reservations/{made['id']}/end")
    # It was reserved until now: that stays, with the end it has got.
    expect(line).not_to_have_text(before)
    page = ann.go("#/gpus/GPU-gpu3-3")
    expect(page.locator(".uplot").first).to_be_visible()
    expect(line).to_have_count(0)


def test_lanes_of_a_node_have_each_their_own(ann: Seen, bob: Page):
    now = time.time()
    reserve(bob, "gpu2:0", "gpu2:1", start=now, end=now + HOUR)
    reserve(ann.page, "gpu2:3", start=now, end=now + HOUR)
    earlier(ann.page, 240)
    page = ann.go("#/nodes/gpu2")
    lines = page.get_by_role("list", name=RESERVED).get_by_role("listitem")
    expect(lines).to_have_count(2)
    expect(lines.filter(has_text="GPUs 0–1: reserved by bob from")).to_be_visible()
    expect(lines.filter(has_text="GPU 3: reserved by you from")).to_be_visible()
    # Tiles above the charts grow with it.
    expect(page.get_by_role("region", name="GPUs")).to_contain_text("bob ·")
    plot = page.get_by_role("slider", name="Utilisation: time")
    expect(plot.locator("canvas")).to_be_visible()
    area = plot.locator(".u-over").bounding_box()
    assert area
    for lane, words in ((0, "bob"), (1, "bob"), (2, None), (3, "you")):
        page.mouse.move(area["x"] + area["width"] * 0.9, area["y"] + area["height"] * (lane + 0.6) / 4)
        if words is None:
            expect(plot.locator(".said")).to_have_count(0)
        else:
            expect(plot.locator(".said")).to_contain_text(f"Reserved by {words} from")


def test_a_page_asks_once_for_all_that_is_on_it(ann: Seen, bob: Page):
    page = ann.page
    found = asks(page)
    for path, there in (
        ("#/?view=cards", "article li"),
        ("#/?view=table", "[role=row] a"),
        ("#/nodes/gpu2", ".uplot"),
        ("#/gpus/GPU-gpu2-0", ".uplot"),
    ):
        page.goto("about:blank")
        found.clear()
        page = ann.go(path)
        expect(page.locator(f"main :is({there})").first).to_be_visible()
        page.wait_for_load_state("networkidle")
        # At a full hour it is another question, and where the last ten minutes are shown also ten minutes later.
        assert len({str(one) for one in found}) == len(found) <= 2, (path, found)
        assert found[0].get("node") == (["gpu2"] if "gpu2" in path.lower() else None)
    reserve(bob, "gpu2:0", start=time.time(), end=time.time() + HOUR)
    expect(page.locator("main")).to_contain_text("Reserved by bob until")
    expect(page.get_by_role("list", name=RESERVED)).to_be_visible()
    # Once more, as something has changed: the reservation, and then the GPU's own state, whichever is seen first.
    seen_until(page, lambda: len(found) > 1)
    assert 2 <= len(found) <= 2 + len({str(one) for one in found}), found
    # Nobody there needs it.
    page.goto("about:blank")
    found.clear()
    page = ann.go("#/people")
    page.wait_for_load_state("networkidle")
    assert found == []


def test_a_squatter_is_marked_wherever_the_gpu_is(ann: Seen, bob: Page):
    now = time.time()
    made = reserve(bob, "gpu1:0", start=now, end=now + HOUR)
    page = ann.go("#/?view=cards")
    card = page.get_by_role("article", name="gpu1")
    row = card.get_by_role("listitem").filter(has=page.get_by_role("link", name="gpu1 GPU 0"))
    expect(mark(row)).to_have_attribute("title", SQUATTED)
    expect(mark(card)).to_have_count(1)
    expect(mark(page.get_by_role("article", name="gpu2"))).to_have_count(0)
    # In words for who comes by keyboard, and as a link for who keeps the box open.
    page.keyboard.press("Tab")
    row.get_by_role("link", name="gpu1 GPU 0").focus()
    expect(page.locator("#gpu-details")).to_contain_text(SQUATTED)
    page.keyboard.press("Escape")
    row.locator(".util").click()
    page.get_by_role("dialog", name="GPU").get_by_role("link", name=SQUATTED).click()
    expect(page).to_have_url(re.compile(f"id={made['id']}"))
    page = ann.go("#/?view=cards")
    card.get_by_role("button", name="Collapse gpu1").click()
    expect(card.get_by_role("img", name=f"gpu1:0: {SQUATTED}")).to_be_visible()
    page.add_script_tag(path=AXE)
    assert find_in_all_themes(page, "main") == []
    card.get_by_role("button", name="Show gpu1").click()
    page = ann.go("#/?view=table")
    first = page.get_by_role("row").filter(has_text="gpu1").first
    expect(mark(first)).to_be_visible()
    page = ann.go("#/?view=table&rows=nodes")
    expect(mark(page.get_by_role("row").filter(has_text="gpu1"))).to_have_attribute("title", f"gpu1:0: {SQUATTED}")
    page = ann.go("#/nodes/gpu1")
    expect(mark(page.get_by_role("region", name="GPUs"))).to_contain_text("Squatter")
    # It is over, and so is the mark.
    reserving.asked(bob, "POST", f"reservations/{made['id']}/end")
    expect(mark(page.get_by_role("region", name="GPUs"))).to_have_count(0)


def test_marks_have_room_on_a_phone(browser: Browser, bob: Page, reserving_site: ReservingSite):
    reserve(bob, "gpu1:0", start=time.time(), end=time.time() + HOUR)
    with visit(browser, reserving_site.url, 360, has_touch=True, is_mobile=True, bypass_csp=True) as seen:
        for path in ("#/?view=table", "#/?view=table&rows=nodes", "#/?view=cards", "#/nodes/gpu1", "#/gpus/GPU-0"):
            page = seen.go(path)
            if "view" in path:
                page.locator("main :is([role=grid], [aria-label=Nodes])").last.scroll_into_view_if_needed()
            found = page.locator("main .finding").first
            expect(found).to_be_visible()
            assert seen.overflow() == 0
            # It stays within its cell, and lies on no other.
            own = found.evaluate(
                """(mark) => {
                    const [box, cell] = [mark, mark.closest("[role=gridcell], .people, .flags, p")]
                        .map((one) => one.getBoundingClientRect());
                    return box.right <= cell.right + 1 && box.left >= cell.left - 1;
                }"""
            )
            assert own, path
            page.add_script_tag(path=AXE)
            assert find(page, "main") == []
        assert reserving.complaints(seen) == []


def test_who_has_reserved_is_a_filter(ann: Seen, bob: Page):
    now = time.time()
    reserve(bob, "gpu2:0", "gpu1:0", start=now, end=now + HOUR)
    reserve(ann.page, "gpu3:1", start=now, end=now + HOUR)
    matching = ann.page.locator("main").get_by_text(re.compile("GPUs match"))
    for text, count in (
        ("reserved:bob", 2),
        ("reserved:BOB+free", 0),
        ("-reserved:bob", 8),
        ("reserved:me", 1),
        ("reserved", 2),
        ("reserved+-reserved:me", 1),
    ):
        ann.go(f"#/?view=table&q={text}")
        expect(matching).to_have_text(re.compile(rf"^{count} of 10 GPUs match"))


def test_who_is_not_known_is_told_what_to_do(browser: Browser, reserving_site: ReservingSite):
    with visit(browser, reserving_site.url) as seen:
        page = seen.go("#/?q=reserved:me")
        expect(page.get_by_text('"reserved:me" needs to know who you are')).to_be_visible()
        page = seen.go("#/")
        page.get_by_role("button", name="What can be filtered").click()
        page.get_by_role("button", name="reserved:alice").click()
        expect(page).to_have_url(re.compile("q=reserved(:|%3A)alice"))
