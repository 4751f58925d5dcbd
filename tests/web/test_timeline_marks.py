"""What the timeline draws is so: what is marked, edges, collapsed nodes, the filter; and it fits beside the rest."""

import re
import time

from playwright.sync_api import Browser, Page, Route, expect

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
    until_tried,
    x_of,
    y_of,
)

_COLOUR = """(colour) => {
    const probe = document.body.appendChild(document.createElement("i"));
    probe.style.backgroundColor = colour;
    const found = getComputedStyle(probe).backgroundColor;
    probe.remove();
    return found;
}"""


def test_the_filter_stays_on_the_page_and_keeps_what_is_written(ann: Seen):
    page = ann.page
    rows = page.get_by_role("grid").get_by_role("rowheader")
    page.get_by_label("Comment").fill("half written")
    box = page.get_by_role("textbox", name="Filter")
    box.press_sequentially("node:gpu3")
    expect(rows).to_have_count(5)
    expect(page).to_have_url(re.compile(r"#/reservations\?q=node%3Agpu3$"))
    box.press("Enter")
    page.get_by_role("button", name="Clear the filter").click()
    expect(rows.nth(9)).to_be_visible()
    expect(page).to_have_url(re.compile(r"#/reservations$"))
    page.get_by_role("button", name="What can be filtered").click()
    page.get_by_role("button", name="free", exact=True).click()
    expect(page).to_have_url(re.compile(r"#/reservations\?q=free$"))
    expect(page.get_by_label("Comment")).to_have_value("half written")


def test_what_is_marked_is_what_the_form_says(ann: Seen, bob: Page):
    page = ann.page
    reserve(bob, "gpu2:1", start=tomorrow(9), end=tomorrow(15))
    expect(page.locator(f"{LIVE}:not(.mine)")).to_contain_text("bob")
    row = y_of(row_of(page, "gpu2", 1))
    drag(page, (x_of(page, tomorrow(3)) + 1, row), (x_of(page, tomorrow(10)), row))
    marked = page.locator(".picked")
    rows = page.locator("[role=row]:has([aria-selected=true]) [role=rowheader] a")
    expect(form(page)).to_contain_text("bob")
    expect(marked).to_have_count(1)
    expect(rows).to_have_text(["1"])
    before = marked.bounding_box()
    # Another is offered, and taken.
    form(page).locator(".bad .button").first.click()
    until_tried(page, "gpu")
    node, _, index = page.get_by_label("GPUs", exact=True).input_value().partition(":")
    start = page.get_by_label("From").input_value()
    expect(rows).to_have_text([index])
    box = marked.bounding_box()
    assert box
    assert box != before
    assert abs(box["y"] + box["height"] / 2 - y_of(row_of(page, node, int(index)))) < 2
    assert abs(box["x"] - x_of(page, time.mktime(time.strptime(start, "%Y-%m-%d %H:%M")))) < 2
    # Others are typed.
    page.get_by_label("GPUs", exact=True).fill("gpu3:0,2")
    expect(rows).to_have_text(["0", "2"])
    expect(marked).to_have_count(2)
    # It is where its GPUs are, also when rows go.
    page.get_by_role("textbox", name="Filter").fill("node:gpu3")
    expect(page.get_by_role("grid").get_by_role("rowheader")).to_have_count(5)
    expect(rows).to_have_text(["0", "2"])
    page.get_by_label("GPUs", exact=True).fill("gpu7:0")
    expect(marked).to_have_count(0)


def test_an_edge_is_taken_wherever_it_is_drawn(ann: Seen):
    page = ann.page
    reserve(page, "gpu2:2", start=tomorrow(6), end=tomorrow(12))
    block = page.locator(f"{LIVE}.mine")
    expect(block).to_be_visible()
    box = block.bounding_box()
    assert box
    row, right = box["y"] + box["height"] / 2, box["x"] + box["width"]
    edge_at = """([x, y]) => document.elementFromPoint(x, y)?.closest("[data-edge]")?.dataset.edge"""
    # The coloured bar is four pixels wide.
    for x in (box["x"] + 0.5, box["x"] + 1.5, box["x"] + 3.5, box["x"] + 6):
        assert page.evaluate(edge_at, [x, row]) == "start", x - box["x"]
    for x in (right + 0.5, right - 0.5, right - 1.5, right - 6):
        assert page.evaluate(edge_at, [x, row]) == "end", x - right
    assert page.evaluate(edge_at, [box["x"] + box["width"] / 2, row]) is None
    url = page.url
    drag(page, (box["x"] + 1, row), (x_of(page, tomorrow(4)), row))
    expect(page.get_by_role("status").filter(has_text="is reserved from")).to_contain_text("04:00")
    assert page.url == url


def test_collapsed_nodes_tell_whose_and_how_it_is(ann: Seen, bob: Page):
    page = ann.page
    reserve(page, "gpu2:0", start=tomorrow(6), end=tomorrow(18))
    reserve(bob, "gpu2:1", start=tomorrow(9), end=tomorrow(21))
    reserve(bob, "gpu1:0", start=time.time(), end=tomorrow(3))
    reserving.asked(bob, "POST", f"reservations/{reserve(bob, 'gpu3:0', start=time.time(), end=tomorrow(9))['id']}/end")
    for node in ("gpu1", "gpu2", "gpu3"):
        page.get_by_role("button", name=f"Collapse {node}").click()
    own, others = page.locator(".thin.mine:not(.past)"), page.locator(".thin:not(.mine, .past, .squatter)")
    expect(own).to_have_count(1)
    expect(others).to_have_count(1)
    fills = "(one) => getComputedStyle(one).backgroundColor"
    known = {name: page.evaluate(_COLOUR, f"var(--{name})") for name in ("reserved", "unhealthy", "border-strong")}
    assert own.evaluate(fills) == known["reserved"]
    assert others.evaluate(fills) not in known.values()
    expect(page.locator(".thin.squatter")).to_have_css("background-color", known["unhealthy"])
    assert page.locator(".thin.past").last.evaluate(fills) == known["border-strong"]
    # Of one time, and still two.
    one, other = own.bounding_box(), others.bounding_box()
    assert one
    assert other
    assert abs(one["y"] - other["y"]) > min(one["height"], other["height"])
    for node in ("gpu1", "gpu2", "gpu3"):
        page.get_by_role("button", name=f"Show {node}").click()


def test_rows_come_in_while_a_hand_rests_at_the_edge(ann: Seen):
    page = ann.page
    page.add_style_tag(content=".box { max-height: 180px !important }")
    grid = page.get_by_role("grid")
    box = grid.bounding_box()
    assert box
    x = x_of(page, tomorrow(9))
    page.mouse.move(x, box["y"] + 80)
    page.mouse.down()
    page.mouse.move(x + 40, box["y"] + 110, steps=3)
    assert grid.evaluate("(grid) => grid.scrollTop") == 0
    # At the edge, and not a pixel further.
    page.mouse.move(x + 40, box["y"] + box["height"] - 6)
    page.wait_for_function(
        "(grid) => grid.scrollTop + grid.clientHeight >= grid.scrollHeight - 1", arg=grid.element_handle()
    )
    expect(page.locator("[aria-selected=true]").last).to_be_attached()
    page.mouse.up()
    expect(page.get_by_label("GPUs", exact=True)).to_have_value(re.compile("gpu3:0-3$"))


def test_nothing_strikes_through_names_or_covers_the_cursor(ann: Seen, bob: Page):
    page = ann.page
    reserve(bob, "gpu3:1", start=time.time(), end=time.time() + 8 * HOUR)
    page.get_by_role("button", name="Day", exact=True).click()
    block = page.locator(f"{LIVE}:not(.mine)")
    expect(block).to_contain_text("bob")
    expect(block.locator(".now")).to_have_count(1)
    follows = """(other, one) => (document.querySelector(one).compareDocumentPosition(other)
        & Node.DOCUMENT_POSITION_FOLLOWING) > 0"""
    # Drawn later is drawn over.
    assert block.evaluate(follows, ".layer > .now")
    assert block.locator("b").evaluate(follows, ".block > .now")
    grid = page.get_by_role("grid")
    grid.focus()
    grid.press("ArrowDown")
    grid.press("Shift+ArrowDown")
    expect(page.locator(".picked")).to_be_visible()
    assert page.locator(".cursor").evaluate(follows, ".picked")


def test_the_page_keeps_its_shape_in_windows_of_all_sizes(
    ann: Seen, bob: Page, browser: Browser, reserving_site: ReservingSite
):
    page = ann.page
    for index in range(4):
        reserve(page, f"gpu2:{index}", start=tomorrow(6 + index), end=tomorrow(18))
    head = page.get_by_role("region", name="My reservations").locator("header")
    expect(head).to_contain_text("4 in all")
    page.set_viewport_size({"width": 1024, "height": 800})
    assert head.evaluate("(head) => [...head.children].every((one) => one.offsetHeight < 30)")
    assert ann.overflow() == 0
    for width in (960, 700):
        page.set_viewport_size({"width": width, "height": 900})
        page.get_by_role("button", name="Reserve…").wait_for()
        timeline, written = page.get_by_role("grid").bounding_box(), form(page).bounding_box()
        assert timeline
        assert written
        assert timeline["y"] < 600 < written["y"]
        assert ann.overflow() == 0
    page.get_by_role("button", name="Reserve…").click()
    expect(page.get_by_role("button", name="Reserve", exact=True)).to_be_focused()
    # Whoever has it, when and where is told.
    reserve(bob, "gpu3:0", start=tomorrow(5), end=tomorrow(18))
    page.set_viewport_size({"width": 1440, "height": 900})
    page.route(re.compile("api/v1/reservations"), _with_long_names)
    page = ann.go("#/?view=cards")
    line = page.get_by_role("region", name="Booked next").get_by_role("listitem").first
    expect(line).to_contain_text("maximiliana")
    assert line.locator(".grow").evaluate("(one) => one.clientWidth") > 60
    page.unroute_all(behavior="wait")
    with visit(browser, reserving_site.url) as seen:
        looking = come_in(seen, "vic")
        mine = looking.get_by_role("region", name="My reservations")
        expect(mine).to_contain_text("You have reserved nothing.")
        expect(mine).not_to_contain_text("drag over")


def _with_long_names(route: Route) -> None:
    text = route.fetch().text()
    route.fulfill(
        body=text.replace('"name":"bob"', f'"name":"maximiliana-{"x" * 60}"'), content_type="application/json"
    )
