"""What nodes send is text, whatever it looks like."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests import hostile_text
from tests.api.fleets import card, process, snapshot
from tests.system.agents import Site
from tests.web.browsing import visit

IMAGE = "<img src=x onerror=window.hacked=1>"
SCRIPT = "<script>window.hacked=1</script>"
CARD = "GPU-hostile"


def hostile(word: str) -> str:
    return f"{word} {IMAGE}{SCRIPT}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Two nodes that post once; one of them, its people and its commands have such names."""
    folder: Path = tmp_path_factory.mktemp("site")
    name = json.dumps(hostile("display"))
    group = json.dumps(hostile("group"))
    # All that nodes send gets as far as the page.
    (folder / "gpulse.toml").write_text(
        '[privacy]\nothers = "full"\n'
        f'[[nodes]]\nhosts = ["gpu1"]\ntransport = "push"\ndisplay_name = {name}\ngroup = {group}\n'
    )
    probe = {"version": hostile("version"), "python": "3.11", "interval_seconds": 600.0, "gpu_source": "nvml"}
    cards = [
        card(CARD, 0, name=hostile("model"), memory_used_bytes=40 << 30, utilization_ratio=0.9),
        card("GPU-free", 1, name=hostile("model")),
    ]
    host = {"hostname": hostile("host"), "os": hostile("os"), "cpu_model": hostile("cpu"), "cpu_threads": 64}
    body = snapshot(
        "gpu1",
        cards,
        [process(4711, hostile("user"), CARD, hostile("command"))],
        probe=probe,
        host=host,
        reports=[{"collector": hostile("collector"), "message": hostile("report")}],
    )
    with Site(folder) as found:
        for node, sent in {"gpu1": body, "gpu2": snapshot("gpu2", [card("GPU-2", 0)], probe=probe)}.items():
            found.tell(node, sent)
        found.until_up("gpu1")
        yield found


def text_of(page: Page, word: str) -> None:
    """The tags can be read, and are none."""
    expect(page.locator("body")).to_contain_text(f"{word} {IMAGE}")


def harmless(page: Page) -> None:
    assert page.evaluate("typeof window.hacked") == "undefined"
    assert page.locator("img[src=x]").count() == 0
    assert page.locator("script", has_text="hacked").count() == 0


def test_in_every_view_of_the_fleet(browser: Browser, site: Site):
    with visit(browser, site.url) as seen:
        for view in ("cards", "table", "map"):
            page = seen.go(f"#/?view={view}")
            text_of(page, "display")
            harmless(page)
        assert seen.complaints == []


def test_in_the_details_of_a_gpu(browser: Browser, site: Site):
    with visit(browser, site.url) as seen:
        page = seen.go("#/?view=cards")
        page.locator(f"article a[href='#/gpus/{CARD}']").hover()
        details = page.locator("#gpu-details")
        for word in ("display", "user", "command", "model"):
            expect(details).to_contain_text(f"{word} {IMAGE}")
        harmless(page)
        assert seen.complaints == []


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("#/nodes/gpu1", ["display", "user", "command", "model", "report", "collector", "os", "cpu"]),
        (f"#/gpus/{CARD}", ["user", "command", "model"]),
        ("#/people", ["user"]),
    ],
)
def test_on_pages_of_their_own(browser: Browser, site: Site, address: str, words: list[str]):
    with visit(browser, site.url) as seen:
        page = seen.go(address)
        for word in words:
            text_of(page, word)
        harmless(page)
        assert seen.complaints == []


def test_of_a_person(browser: Browser, site: Site):
    """The way there is a link with the name in it."""
    with visit(browser, site.url) as seen:
        page = seen.go("#/people")
        page.locator("main").get_by_role("link", name=hostile("user")).first.click()
        expect(page.get_by_role("heading", level=1)).to_contain_text(f"user {IMAGE}")
        harmless(page)
        assert seen.complaints == []


@pytest.mark.parametrize(
    "address", [f"#/nodes/{IMAGE}", f"#/gpus/{IMAGE}", f"#/people/{IMAGE}", f"#/?q={IMAGE}", f"#/{IMAGE}"]
)
def test_in_the_address(browser: Browser, site: Site, address: str):
    with visit(browser, site.url) as seen:
        page = seen.go(address)
        expect(page.locator("main")).not_to_be_empty()
        harmless(page)


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A node for each attack, with the attack in every text that a snapshot has; the last has free GPUs."""
    folder: Path = tmp_path_factory.mktemp("attacked")
    (folder / "gpulse.toml").write_text('[privacy]\nothers = "full"\n')
    with Site(folder) as found:
        names = [f"used-{kind}" for kind in hostile_text.ATTACKS]
        tokens = found.tokens(",".join([*names, "free-shell"]))
        for name, attack in zip(names, hostile_text.ATTACKS.values(), strict=True):
            answer = found.post(tokens[name], hostile_text.snapshot(name, attack))
            assert answer.status_code == 200, answer.text
        attack = hostile_text.ATTACKS["shell"] + hostile_text.ATTACKS["newline"]
        assert (
            found.post(tokens["free-shell"], hostile_text.snapshot("free-shell", attack, free=True)).status_code == 200
        )
        found.until_up("free-shell")
        yield found


def test_every_text_of_a_snapshot_is_text_on_every_page(browser: Browser, attacked: Site):
    with visit(browser, attacked.url) as seen:
        for view in ("cards", "table", "map"):
            page = seen.go(f"#/?view={view}")
            expect(page.locator("main")).to_contain_text("used-html")
            harmless(page)
        for kind in hostile_text.ATTACKS:
            page = seen.go(f"#/nodes/used-{kind}")
            expect(page.get_by_role("heading", level=1)).to_contain_text(f"used-{kind}")
            # What could not be an identity is reported there.
            expect(page.locator("main")).to_contain_text(
                "is left out: it is too long, or has characters no identity has"
            )
            harmless(page)
            for gpu in ("0", "0.1"):
                page = seen.go(f"#/gpus/used-{kind}%2F{gpu}")
                expect(page.get_by_role("heading", level=1)).to_be_visible()
                harmless(page)
        page = seen.go("#/people")
        expect(page.locator("main")).to_contain_text("window.hacked")
        harmless(page)
        assert seen.complaints == []


def test_what_is_copied_for_a_shell_runs_nothing(browser: Browser, attacked: Site):
    with visit(browser, attacked.url, permissions=["clipboard-read", "clipboard-write"]) as seen:
        copied = 0
        for address in (
            "#/nodes/free-shell",
            "#/gpus/free-shell%2F0",
            "#/gpus/free-shell%2F0.1",
            "#/nodes/used-newline",
        ):
            page = seen.go(address)
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            page.wait_for_timeout(500)
            for button in page.locator("main button.copy").all():
                page.evaluate("navigator.clipboard.writeText('')")
                button.click()
                page.wait_for_function("async () => (await navigator.clipboard.readText()) !== ''")
                text = page.evaluate("navigator.clipboard.readText()")
                copied += 1
                assert text.isprintable(), ascii(text)
                if text.startswith(("ssh", "CUDA")):
                    assert re.fullmatch(r"ssh [a-z-]+|CUDA_VISIBLE_DEVICES=[0-9,]+", text)
        assert copied > 6
        harmless(page)
