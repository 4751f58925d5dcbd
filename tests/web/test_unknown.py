"""What the page says of GPUs whose driver doesn't say everything: nothing unknown looks free, old or fine."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.web.browsing import Seen, visit
from tests.web.unreadable import ERROR, FAILED, FREE, HANG, HANGING, SPLIT, UNLISTED, WAIT, UnreadableSite, gpu1

STATES = ("free", "busy", "reserved", "idle", "unhealthy", "unknown", "stale", "down")
# Words of the strip that are cut off, and how many rows it takes.
_STRIP = """() => {
    const strip = document.querySelector("section.strip");
    const words = [...strip.querySelectorAll(".words, .cut, .figure")];
    const cut = words.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent.trim());
    const inner = strip.clientWidth;
    const boxes = [...strip.children].map((one) => one.getBoundingClientRect());
    const rows = new Map();
    for (const box of boxes) rows.set(Math.round(box.bottom), (rows.get(Math.round(box.bottom)) ?? 0) + box.width);
    return { cut, holes: [...rows.values()].filter((width) => Math.abs(width - inner) > 2) };
}"""
_PLACES = """() => [...document.querySelectorAll(
    "main article, main article li, main article header > *, main h1, main section, main .tiles > *")]
    .map((one) => one.getBoundingClientRect()).map((box) => `${box.left} ${box.top} ${box.height}`)"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UnreadableSite]:
    with UnreadableSite(tmp_path_factory.mktemp("unreadable")) as found:
        yield found


@pytest.fixture
def seen(browser: Browser, site: UnreadableSite) -> Iterator[Seen]:
    with visit(browser, site.url) as one:
        yield one
        assert one.complaints == []


def figure(page: Page, state: str) -> Locator:
    return page.get_by_role("region", name="Summary").locator(f"button.{state} .figure")


@pytest.mark.parametrize("width", [360, 700, 1180, 1280, 1440, 2560])
def test_the_strip_adds_up_and_fits(browser: Browser, site: UnreadableSite, width: int):
    with visit(browser, site.url, width) as seen:
        page = seen.go()
        expect(figure(page, "unknown")).to_have_text("2")
        figures = [int(figure(page, state).inner_text()) for state in STATES]
        assert sum(figures) == site.hub.get("api/v1/summary")["gpus"] == 6
        assert seen.overflow() <= 0
        assert page.evaluate(_STRIP) == {"cut": [], "holes": []}


def test_a_sum_says_of_how_many_gpus_it_is(seen: Seen):
    strip = seen.go().get_by_role("region", name="Summary")
    expect(strip).to_contain_text("Memory free of 4/6")
    expect(strip).to_contain_text(re.compile(r"Power of \d/\d"))


def test_unknown_is_a_filter_and_a_label_and_never_offered(seen: Seen):
    page = seen.go("#/?view=cards")
    row = page.get_by_role("link", name="gpu1 GPU 0, Unknown").locator("..")
    expect(row.locator(".label.unknown")).to_have_attribute("title", ERROR)
    expect(page.get_by_role("link", name="gpu1 GPU 1, Unknown").locator("..")).to_contain_text("Unknown · ")
    expect(page.get_by_role("region", name="Free now")).not_to_contain_text("gpu1:0")
    card = page.get_by_role("article", name="gpu1", exact=True)
    expect(card.locator(".label.free").first).to_contain_text("1 free")
    figure(page, "unknown").click()
    expect(page.get_by_label("Filter", exact=True)).to_have_value("unknown")
    expect(page.get_by_role("status").filter(has_text="GPUs match")).to_contain_text("2 of 6 GPUs match")
    row.hover()
    details = page.locator("#gpu-details")
    expect(details).to_contain_text(ERROR)
    expect(details).not_to_contain_text("Reserve now")


def test_the_page_of_an_unknown_gpu_says_why_and_offers_nothing(seen: Seen):
    page = seen.go(f"#/gpus/{FAILED}")
    main = page.get_by_role("main")
    expect(main).to_contain_text(ERROR)
    expect(main.locator(".label.unknown")).to_have_text("Unknown")
    expect(main.get_by_role("button", name="CUDA_VISIBLE_DEVICES")).to_have_count(0)
    page = seen.go(f"#/gpus/{HANGING}")
    expect(page.get_by_role("main")).to_contain_text(re.compile(r"values \d+ (s|min) old"))
    expect(page.get_by_role("main")).to_contain_text(f"Processes unknown: {HANG[0].upper()}{HANG[1:]}")
    page = seen.go(f"#/gpus/{FREE}")
    expect(page.get_by_role("button", name="CUDA_VISIBLE_DEVICES")).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text("No processes.")
    expect(page.locator("dl").filter(has_text="Fabric")).to_contain_text("joined, reduced bandwidth")
    expect(page.locator("dl").filter(has_text="Clique")).to_contain_text("7")


def test_processes_that_are_never_listed_are_not_nobody(seen: Seen):
    page = seen.go(f"#/gpus/{UNLISTED}")
    expect(page.get_by_role("main")).to_contain_text("This driver lists no processes.")
    page = seen.go("#/nodes/gpu1")
    expect(page.get_by_role("main")).to_contain_text("processes unknown on GPU 1")
    page = seen.go("#/?view=cards")
    page.get_by_role("link", name="gpu2 GPU 0, Busy").locator("..").hover()
    expect(page.locator("#gpu-details")).to_contain_text("This driver lists no processes")
    expect(page.get_by_role("article", name="gpu2")).to_contain_text("user unknown")


def test_a_split_card_has_no_state(seen: Seen):
    page = seen.go(f"#/gpus/{SPLIT}")
    expect(page.locator(".head .label").first).to_have_text("Split into MIG instances")
    page = seen.go("#/?view=cards")
    expect(page.get_by_role("link", name="gpu2 GPU 1, split")).to_be_visible()


def test_needs_attention_names_what_is_unknown_and_what_is_listed_twice(seen: Seen):
    panel = seen.go().get_by_role("region", name="Needs attention")
    expect(panel).to_contain_text(f"2 GPUs unknown: {ERROR}")
    expect(panel).to_contain_text("oldname is the same machine as gpu1, counted once")


def test_one_machine_under_two_names_says_so(seen: Seen):
    page = seen.go("#/?view=cards")
    expect(page.get_by_role("article", name="oldname")).to_contain_text("Same machine as gpu1, counted once")
    page = seen.go("#/nodes/oldname")
    expect(page.get_by_role("main")).to_contain_text("Same machine as gpu1, counted once")


def test_old_values_and_a_driver_that_is_waited_for_are_shown_and_move_nothing(seen: Seen, site: UnreadableSite):
    try:
        for address in ("#/?view=cards", "#/nodes/gpu1"):
            site.send(gpu1())
            page = seen.go(address)
            main = page.get_by_role("main")
            expect(main).not_to_contain_text(WAIT)
            expect(main.get_by_text(re.compile(r"^GPU 0|^0$")).first).to_be_visible()
            page.wait_for_timeout(2500)
            before = page.evaluate(_PLACES)
            site.send(gpu1(WAIT, old=6.0))
            expect(main).to_contain_text(WAIT)
            expect(main.get_by_text(re.compile(r"\b([6-9]|\d\d) s old")).first).to_be_visible()
            assert page.evaluate(_PLACES) == before
    finally:
        site.send(gpu1())


def test_the_table_and_the_map_know_unknown(seen: Seen):
    page = seen.go("#/?view=table&q=unknown")
    expect(page.get_by_role("row").filter(has_text="Unknown")).to_have_count(2)
    page = seen.go("#/?view=map")
    expect(page.get_by_role("group", name="Legend")).to_contain_text("Unknown")
