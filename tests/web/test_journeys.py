"""What people come for: is there a GPU for me, who is on that one, what is mine, what is broken."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.api.fleets import card, process, snapshot
from tests.system.agents import Site
from tests.web.browsing import Seen, visit

PROBE = {"version": "0.1.0", "python": "3.11", "interval_seconds": 600.0, "gpu_source": "nvml"}
BUSY = {"memory_used_bytes": 40 << 30, "utilization_ratio": 0.9}
REASON = "refuses connections"


def node_of(name: str, model: str, users: dict[int, str]) -> bytes:
    """A node of four cards, on some of which somebody works."""
    cards = [card(f"GPU-{name}-{index}", index, name=model, **(BUSY if index in users else {})) for index in range(4)]
    processes = [
        process(100 + index, user, f"GPU-{name}-{index}", f"python train_{name}_{index}.py")
        for index, user in users.items()
    ]
    return snapshot(name, cards, processes, probe=PROBE)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """gpu1 and gpu2 stay as they are; gpu3 cannot be reached: nobody listens on port 1."""
    folder = tmp_path_factory.mktemp("site")
    # Who looks here is not signed in, and shall see commands.
    settings = '[privacy]\nothers = "full"\n[[nodes]]\nhosts = ["gpu3"]\ntransport = "ssh"\nport = 1\n'
    (folder / "gpulse.toml").write_text(settings)
    (folder / ".ssh").mkdir()
    (folder / ".ssh" / "config").write_text("Host gpu3\n  HostName 127.0.0.1\n")
    sent = {
        "gpu1": node_of("gpu1", "NVIDIA H100 80GB HBM3", {0: "alice", 2: "bob"}),
        "gpu2": node_of("gpu2", "NVIDIA A100-SXM4-40GB", {1: "alice"}),
    }
    with Site(folder) as found:
        for node, body in sent.items():
            found.tell(node, body)
            found.until_up(node)
        found.until_state("gpu3", "down")
        yield found


@pytest.fixture
def seen(browser: Browser, site: Site) -> Iterator[Seen]:
    with visit(browser, site.url, permissions=["clipboard-read", "clipboard-write"]) as one:
        yield one
        assert one.complaints == []


def summary_button(page: Page, state: str) -> Any:
    return page.get_by_role("region", name="Summary").locator(f"button.{state}")


def matching(page: Page) -> Any:
    return page.get_by_role("status").filter(has_text="GPUs match")


def test_the_figures_are_those_of_the_hub(seen: Seen, site: Site):
    states = site.hub.get("api/v1/summary")["states"]
    page = seen.go()
    for state in ("free", "busy", "idle", "reserved", "unhealthy", "unknown", "stale", "down"):
        expect(summary_button(page, state).locator(".figure")).to_have_text(str(states.get(state, 0)))


def test_a_filter_from_the_address(seen: Seen, site: Site):
    found = site.hub.get("api/v1/gpus", q="free model:H100")["items"]
    page = seen.go("#/?q=free+model:H100&view=cards")
    expect(page.get_by_label("Filter", exact=True)).to_have_value("free model:H100")
    expect(matching(page)).to_contain_text(f"{len(found)} of 8 GPUs match")
    # A node without any has no card; the other GPUs of one that has some fade and stay where they are.
    expect(page.locator("article li:not(.off) a.gpu")).to_have_count(len(found))
    expect(page.locator("article li a.gpu")).to_have_count(4)
    expect(page.locator("a.chip")).to_have_count(3)


def test_a_filter_by_typing(seen: Seen):
    page = seen.go("#/?view=cards")
    page.keyboard.press("/")
    box = page.get_by_label("Filter", exact=True)
    expect(box).to_be_focused()
    page.keyboard.type("user:alice model:A100")
    expect(matching(page)).to_contain_text("1 of 8 GPUs match")
    expect(page).to_have_url(re.compile(r"q=user%3Aalice\+model%3AA100"))
    page.keyboard.press("Escape")
    expect(box).not_to_be_focused()


def test_a_figure_is_a_filter(seen: Seen):
    page = seen.go("#/?view=cards")
    summary_button(page, "free").click()
    expect(page.get_by_label("Filter", exact=True)).to_have_value("free")
    expect(matching(page)).to_contain_text("5 of 8 GPUs match")
    summary_button(page, "free").click()
    expect(matching(page)).to_have_count(0)


def test_a_filter_that_means_nothing_says_so(seen: Seen):
    page = seen.go("#/?q=mem>banana")
    expect(page.get_by_role("alert").filter(has_text="banana")).to_be_visible()


def test_what_to_type_is_copied(seen: Seen):
    page = seen.go("#/?view=cards")
    page.get_by_role("article", name="gpu1").get_by_role("button", name="Copy CUDA_VISIBLE_DEVICES=1,3").click()
    page.wait_for_function("async () => (await navigator.clipboard.readText()) === 'CUDA_VISIBLE_DEVICES=1,3'")


@pytest.mark.parametrize("way", ["hover", "focus"])
def test_who_is_on_a_gpu(seen: Seen, site: Site, way: str):
    process = next(one for one in site.hub.node("gpu1")["processes"] if one["person"] == "bob")
    page = seen.go("#/?view=cards")
    link = page.get_by_role("link", name="gpu1 GPU 2, Busy")
    if way == "hover":
        link.hover()
    else:
        page.get_by_role("link", name="gpu1 GPU 1, Free").focus()
        page.keyboard.press("ArrowDown")
        expect(link).to_be_focused()
    details = page.locator("#gpu-details")
    for words in ("bob", process["command"], str(process["pid"]), "40.0 GiB"):
        expect(details).to_contain_text(words)
    page.keyboard.press("Escape")
    expect(details).to_have_count(0)


def test_who_is_on_a_gpu_by_touch(browser: Browser, site: Site):
    with visit(browser, site.url, 360, has_touch=True, is_mobile=True) as seen:
        page = seen.go("#/?view=cards")
        page.get_by_role("article", name="gpu1").locator("li", has_text="bob").locator(".percent").tap()
        details = page.get_by_role("dialog", name="GPU")
        expect(details).to_contain_text("python train_gpu1_2.py")
        details.get_by_role("link", name="Open this GPU").tap()
        expect(page).to_have_url(re.compile("#/gpus/GPU-gpu1-2$"))
        assert seen.complaints == []


def test_mine(seen: Seen):
    page = seen.go("#/?q=mine&view=cards")
    page.get_by_label("Your login on the nodes").fill("alice")
    page.get_by_role("button", name="Show mine").click()
    expect(matching(page)).to_contain_text("2 of 8 GPUs match")
    page.reload()
    expect(matching(page)).to_contain_text("2 of 8 GPUs match")


def test_a_node_that_is_down_is_told_of_with_its_reason(seen: Seen, site: Site):
    assert REASON in site.hub.node("gpu3")["reason"]
    page = seen.go()
    line = page.get_by_role("region", name="Needs attention").get_by_role("link", name="gpu3")
    expect(line).to_contain_text(REASON)
    line.click()
    expect(page).to_have_url(re.compile("#/nodes/gpu3$"))
    expect(page.locator("main")).to_contain_text(REASON)
    # And doctor's checks say at which step.
    failed = page.get_by_role("region", name="Checks").get_by_role("listitem").last
    expect(failed).to_contain_text("port answers")
    expect(failed.get_by_role("img", name="failed")).to_be_visible()


def test_checks_of_a_node_that_is_up(seen: Seen):
    page = seen.go("#/nodes/gpu1")
    checks = page.get_by_role("region", name="Checks")
    checks.get_by_role("button", name="Run the checks").click()
    expect(checks.get_by_role("listitem").first).to_contain_text("snapshots arrive")
    expect(checks.get_by_role("status")).to_contain_text("as far as the hub knows")


def test_by_keyboard_alone(seen: Seen):
    page = seen.go("#/?view=cards")
    box = page.get_by_label("Filter", exact=True)
    link = page.get_by_role("article", name="gpu2").get_by_role("heading").get_by_role("link")
    for goal in (box, link):
        for _ in range(80):
            page.keyboard.press("Tab")
            if goal.evaluate("(one) => one === document.activeElement"):
                break
        expect(goal).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("gpu2")


def test_theme_and_collapsed_cards_are_remembered(seen: Seen):
    page = seen.go("#/?view=cards")
    page.get_by_role("button", name="Theme").click()
    page.get_by_role("radio", name="Dark blue").click()
    page.get_by_role("button", name="Collapse gpu1").click()
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "blue")
    expect(page.get_by_role("button", name="Show gpu1")).to_be_visible()
    expect(page.get_by_role("button", name="Collapse gpu2")).to_be_visible()
