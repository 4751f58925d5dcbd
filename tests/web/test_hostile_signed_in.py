"""What nodes and people call things is text on the pages of people who are signed in, too."""

import getpass
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.api.fleets import card, process, snapshot
from tests.hub.running import RunningHub
from tests.system.agents import CALM
from tests.system.sshd import Client, Sshd
from tests.web.accounts_site import PASSWORD, AccountsSite, enter
from tests.web.browsing import Seen, visit
from tests.web.reserving import come_in, complaints, reserve
from tests.web.test_accounts import HOSTILE_NAME
from tests.web.test_hostile import IMAGE, harmless, hostile

CARD = "GPU-used"
# Quotes end attributes, and a link may be a script.
BREAKOUT = "\"'><b onmouseover=window.hacked=1>`${window.hacked=1}`</b> javascript:window.hacked=1"


class HostileSite(AccountsSite):
    """Its people and their comments have such names, and so has what a node over SSH says."""

    def __init__(self, folder: Path):
        person = Client(folder)
        text = hostile("stderr").replace("'", "")
        self.server = Sshd(folder / "node", person, wrapper=f"printf '%s\\n' '{text}' '{text}' >&2; exit 3")
        person.know(self.server)
        self.home = folder
        super().__init__(folder, anonymous="none")
        cards = [card(CARD, 0, memory_used_bytes=40 << 30, utilization_ratio=0.9), card("GPU-free", 1)]
        work = [process(4711, HOSTILE_NAME, CARD, hostile("command"))]
        body = snapshot("gpu2", cards, work, probe=CALM, reports=[{"collector": "x", "message": hostile("report")}])
        self.tell("gpu2", body)
        for name, role in ((HOSTILE_NAME, "member"), ("ann", "member"), ("bob", "viewer")):
            self.user("add", name, "--role", role, "--password-stdin", "--display", hostile("person"), told=PASSWORD)

    def _start(self, port: int) -> RunningHub:
        with (self.home / "gpulse.toml").open("a") as file:
            file.write('[privacy]\nothers = "full"\n[[nodes]]\nhosts = ["127.0.0.1"]\n')
            file.write(f'display_name = "over SSH"\nport = {self.server.port}\n')
        return super()._start(port)

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self.server.stop()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostileSite]:
    with HostileSite(tmp_path_factory.mktemp("site")) as found:
        yield found


@pytest.fixture(scope="module")
def booked(browser: Browser, site: HostileSite) -> str:
    """A reservation of somebody with such a name, and such a comment."""
    with visit(browser, site.url) as seen:
        page = come_in(seen, HOSTILE_NAME)
        now = time.time()
        reserve(page, "gpu2:1", start=now + 7200, end=now + 10800, comment=BREAKOUT)
        # It holds a card that somebody else's process is on: a finding, on several pages.
        made = reserve(page, "gpu2:0", start=now, end=now + 3600, comment=hostile("comment"))
        return str(made["id"])


def unharmed(seen: Seen, page: Page) -> None:
    """Nothing of it became a tag, a link or a script."""
    harmless(page)
    assert page.locator("main b[onmouseover]").count() == 0
    assert page.locator("a[href^=javascript]").count() == 0
    assert page.evaluate("typeof window.hacked") == "undefined"
    # A calendar of a node that does not exist is refused.
    assert [one for one in complaints(seen) if "status of 404" not in one] == []


@pytest.mark.parametrize("name", ["ann", "bob", HOSTILE_NAME])
def test_reservations(browser: Browser, site: HostileSite, booked: str, name: str):
    with visit(browser, site.url) as seen:
        page = come_in(seen, name, f"#/reservations?id={booked}")
        expect(page.locator("body")).to_contain_text(f"comment {IMAGE}")
        expect(page.locator("body")).to_contain_text(HOSTILE_NAME)
        unharmed(seen, page)
        page.keyboard.press("Escape")
        for block in page.locator(".block:not(.past)").all():
            block.hover(force=True)
        expect(page.locator("body")).to_contain_text(HOSTILE_NAME)
        unharmed(seen, page)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("#/?view=cards", [HOSTILE_NAME]),
        ("#/?view=table", [HOSTILE_NAME]),
        (f"#/gpus/{CARD}", [HOSTILE_NAME, f"command {IMAGE}"]),
        ("#/gpus/GPU-free", [HOSTILE_NAME]),
        ("#/nodes/gpu2", [HOSTILE_NAME, f"command {IMAGE}", f"report {IMAGE}"]),
        ("#/people", [HOSTILE_NAME]),
    ],
)
@pytest.mark.usefixtures("booked")
def test_the_fleet_with_reservations(browser: Browser, site: HostileSite, address: str, words: list[str]):
    with visit(browser, site.url) as seen:
        page = come_in(seen, "ann", address)
        for word in words:
            expect(page.locator("body")).to_contain_text(word)
        unharmed(seen, page)


def test_checks_and_log_of_a_node(browser: Browser, site: HostileSite):
    with visit(browser, site.url) as seen:
        page = come_in(seen, "ann", "#/nodes/127.0.0.1")
        checks = page.get_by_role("region", name="Checks")
        expect(checks.locator("li.failed")).to_be_visible()
        expect(page.locator("main")).to_contain_text(IMAGE)
        expect(page.locator("main ol, main ul").last).to_contain_text(IMAGE)
        unharmed(seen, page)


@pytest.mark.usefixtures("booked")
def test_account_calendars_and_administration(browser: Browser, site: HostileSite):
    with visit(browser, site.url, user_agent=hostile("agent")) as seen:
        page = enter(seen, site.link(getpass.getuser()), "#/account")
        page.get_by_label("For", exact=True).fill(BREAKOUT[:100])
        page.get_by_role("button", name="Make a key").click()
        expect(page.locator("main")).to_contain_text(BREAKOUT[:40])
        expect(page.get_by_role("row", name="agent")).to_be_visible()
        page.locator("[aria-labelledby=calendars-title] select").select_option("node")
        page.get_by_label("Node", exact=True).fill(hostile("node")[:60])
        page.get_by_role("button", name="Make an address").click()
        expect(page.locator("[aria-labelledby=calendars-title]")).to_contain_text(IMAGE[:20])
        unharmed(seen, page)
        for address, words in (
            ("#/admin", [f"person {IMAGE}", HOSTILE_NAME]),
            ("#/admin/audit", [BREAKOUT[:40], HOSTILE_NAME]),
        ):
            page.goto(site.url + address)
            for word in words:
                expect(page.locator("main")).to_contain_text(word)
            unharmed(seen, page)
