"""One browser for all tests of the page, and a simulated cluster for most of them."""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from scripts import web
from tests.hub.running import RunningHub
from tests.system.agents import Site
from tests.web import reserving
from tests.web.awkward import awkward_site
from tests.web.browsing import Seen, visit
from tests.web.reserving import ReservingSite, come_in, until_listed


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is missing")
    if not web.BUILT[0].exists():
        pytest.skip("the page is not built: make web")
    if web.is_stale():
        pytest.fail("the built page is older than what is in web/: these would be tests of old code; run make web")
    home = tmp_path_factory.mktemp("browser")
    options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with noon() as zone, sync_playwright() as playwright:
        environment = {"HOME": str(home), "TZ": zone}
        found = playwright.chromium.launch(executable_path=chromium, args=options, env=environment)
        try:
            yield found
        finally:
            found.close()


@contextmanager
def noon() -> Iterator[str]:
    """The name of a zone where it is about noon, which is this process's own meanwhile: no day ends in a test."""
    before, hours = os.environ.get("TZ"), 12 - time.gmtime().tm_hour
    # These names count the other way: Etc/GMT-2 is two hours ahead.
    os.environ["TZ"] = f"Etc/GMT{-hours:+d}"
    time.tzset()
    try:
        yield os.environ["TZ"]
    finally:
        os.environ.pop("TZ")
        if before is not None:
            os.environ["TZ"] = before
        time.tzset()


@pytest.fixture(scope="package")
def demo() -> Iterator[RunningHub]:
    with RunningHub("demo", "--nodes", "12") as hub:
        hub.until(lambda: hub.get("api/v1/summary")["gpus"] > 0)
        yield hub


@pytest.fixture(scope="package")
def awkward(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with awkward_site(tmp_path_factory.mktemp("awkward")) as site:
        yield site


@pytest.fixture(scope="module")
def reserving_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReservingSite]:
    with ReservingSite(tmp_path_factory.mktemp("site")) as found:
        yield found


@pytest.fixture
def ann(browser: Browser, reserving_site: ReservingSite) -> Iterator[Seen]:
    """Signed in and on the page of reservations; what she has reserved goes with the test."""
    with visit(browser, reserving_site.url, bypass_csp=True) as seen:
        page = come_in(seen, "ann")
        expect(page.get_by_role("grid").get_by_role("row").nth(4)).to_be_visible()
        until_listed(page)
        yield seen
        # Where a test has failed, the hub may be kept from answering still.
        page.unroute_all(behavior="ignoreErrors")
        reserving.clear(page)
        assert reserving.complaints(seen) == []


@pytest.fixture
def bob(browser: Browser, reserving_site: ReservingSite) -> Iterator[Page]:
    """Signed in, and elsewhere in the page; what he has reserved goes with the test."""
    with visit(browser, reserving_site.url) as seen:
        page = come_in(seen, "bob", "#/people")
        yield page
        reserving.clear(page)
