"""Somebody else computes on a GPU that is reserved: the page says so at once, to both; a real agent, a fake driver."""

import getpass
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.fake_nvml import FakeNvml, Process, h100_node
from tests.system.agents import Site
from tests.web.accounts_site import AccountsSite
from tests.web.browsing import visit
from tests.web.reserving import HOUR, come_in, complaints, reserve

SOMEBODY = getpass.getuser()
CARD = "GPU-a1b2c3d4-0000-4000-8000-000000000000"


class SquattedSite(AccountsSite):
    """With gpu5, whose agent reads the fake driver."""

    def __init__(self, folder: Path, fake: FakeNvml):
        self._driver = {"LD_LIBRARY_PATH": str(fake.library.parent), "FAKE_NVML": str(fake.description)}
        super().__init__(folder, anonymous="read")
        self._nodes.update(self._driver)
        self.add("ann", "member")
        self.agent("gpu5", token=self.token("gpu5"))


@pytest.fixture
def site(tmp_path: Path, fake: FakeNvml) -> Iterator[Site]:
    fake.describe(h100_node(2))
    with SquattedSite(tmp_path, fake) as found:
        found.until_up("gpu5")
        yield found


def test_a_squatter_is_told_of_at_once(browser: Browser, site: SquattedSite, fake: FakeNvml, pids: list[int]):
    now = site.hub.get("api/v1/reservations")["now"]
    with visit(browser, site.url) as seen, visit(browser, site.url) as other:
        page = come_in(seen, "ann")
        made = reserve(page, "gpu5:0", start=now, end=now + 20 * HOUR, comment="deadline")
        block = page.locator(f"[data-block='{made['id']}']")
        expect(block).to_be_visible()
        expect(block).not_to_have_class("squatter")
        # A process of who runs this test, who is not ann.
        fake.describe(h100_node(2, [Process(pids[0], gpu=0, sm=70)]))
        expect(page.locator(f".squatter[data-block='{made['id']}']")).to_contain_text(f"{SOMEBODY} is on it")
        mine = page.get_by_role("region", name="My reservations")
        expect(mine).to_contain_text(f"{SOMEBODY} is on it")
        # Whoever looks at the fleet sees it too: also the one it is about.
        theirs = other.go()
        line = theirs.get_by_role("region", name="Needs attention").get_by_role("listitem").filter(has_text="gpu5:0")
        expect(line).to_contain_text(f"{SOMEBODY} is on ann's booking")
        line.get_by_role("link").click()
        expect(theirs.get_by_role("dialog")).to_contain_text("Squatter")
        theirs = other.go(f"#/gpus/{CARD}")
        expect(theirs.locator("main")).to_contain_text("Reserved by ann until")
        expect(theirs.locator("main")).to_contain_text(f"{SOMEBODY} computes on what ann has reserved")
        # It ends, and so does the warning.
        fake.describe(h100_node(2))
        expect(page.locator(".squatter[data-block]")).to_have_count(0)
        assert complaints(seen) == []
        assert complaints(other) == []
