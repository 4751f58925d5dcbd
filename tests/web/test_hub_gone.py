"""A hub that goes away and comes back, and people who want the figures to stand still."""

import re
from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.hub.running import RunningHub
from tests.web.browsing import visit


def test_the_data_stays_and_goes_on_without_a_reload(browser: Browser, tmp_path: Path):
    arguments = ("demo", "--nodes", "3", "--data", str(tmp_path))
    with RunningHub(*arguments) as hub:
        url = hub.url
        with visit(browser, url) as seen:
            page = seen.go("#/?view=cards")
            cards = page.locator("article")
            expect(cards).to_have_count(3)
            page.evaluate("window.notReloaded = true")
            hub.process.kill()
            hub.process.wait()
            bar = page.get_by_text("The hub is gone")
            expect(bar).to_be_visible()
            expect(cards).to_have_count(3)
            with RunningHub(*arguments, port=int(url.rpartition(":")[2].strip("/"))):
                # It tries again after 30 s at the latest.
                expect(bar).to_have_count(0, timeout=60_000)
                expect(page.get_by_role("button", name="Pause live data")).to_contain_text("Live")
                assert page.evaluate("window.notReloaded")


def test_who_pauses_can_still_look_closer(browser: Browser, demo: RunningHub):
    """Nothing moves, and what somebody opens is asked for: once, as of then."""
    node = next(one for one in demo.get("api/v1/nodes")["items"] if one["state"] == "up" and one["gpus"])
    with visit(browser, demo.url) as seen:
        page = seen.go("#/people")
        button = page.get_by_role("button", name="Pause live data")
        button.click()
        expect(button).to_contain_text("Paused")
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.evaluate("address => { location.hash = address }", f"#/nodes/{node['name']}")
        expect(page.get_by_role("heading", name=node["name"]).first).to_be_visible()
        log = page.get_by_label(f"Log of {node['name']}")
        expect(log.get_by_role("listitem").first).to_be_visible()
        page.evaluate("location.hash = '#/?view=cards'")
        page.get_by_role("link", name=f"{node['name']} GPU {node['gpus'][0]['index']},").first.hover()
        expect(page.locator("#gpu-details")).to_contain_text(node["gpus"][0]["model"])
        attention = page.get_by_role("region", name="Needs attention")
        expect(attention.get_by_role("listitem").first).to_be_visible()
        expect(page.locator("article svg path.line:not([d=''])").first).to_be_attached()
        # Of what is shown nothing is asked for a second time,
        before = len(asked)
        page.wait_for_timeout(6000)
        assert asked[before:] == []
        expect(button).to_contain_text("Paused")
        # but for those who want to see what is new.
        with page.expect_request(lambda request: "sort=-temperature" in request.url):
            page.get_by_role("button", name="Refresh").click()
        expect(button).to_contain_text("Paused")
        assert seen.complaints == []


def test_pause_and_resume(browser: Browser, demo: RunningHub):
    with visit(browser, demo.url) as seen:
        page = seen.go()
        button = page.get_by_role("button", name="Pause live data")
        button.click()
        expect(button).to_contain_text("Paused")
        expect(button).to_have_attribute("aria-pressed", "true")
        # No newer data comes: its age grows past what a live page ever shows.
        expect(button).to_contain_text(re.compile(r"Paused\s*([4-9]|\d\d+) s"))
        button.click()
        expect(button).to_contain_text("Live")
        assert seen.complaints == []
