"""The way of a browser through a provider of single sign-on, and back to where it began."""

from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.system.test_oidc import ANN, hub_with, issuer  # noqa: F401 - a fixture
from tests.web.accounts_site import is_in, kept_key
from tests.web.browsing import visit


def test_back_to_the_page_that_was_asked_for(browser: Browser, tmp_path: Path, issuer: str):  # noqa: F811 - the fixture
    with hub_with(issuer, tmp_path) as site, visit(browser, site.hub.url) as seen:
        site.set(ANN)
        page = seen.page
        page.goto(f"{site.hub.url}#/people")
        page.get_by_role("link", name="Sign in with Lab login").click()
        is_in(page)
        expect(page).to_have_url(f"{site.hub.url}#/people")
        page.get_by_role("button", name="Your account: ann").click()
        expect(page.locator("#account-menu")).to_contain_text("ann, member")
        # What came with the way back is kept, and nowhere in the address.
        assert kept_key(page) is not None
        page.reload()
        is_in(page)
        page.go_back()
        assert "signed-in" not in page.url
        # The provider is the only other host, and only for the way through it.
        assert [one for one in seen.complaints if not one.startswith(f"another host: {issuer}/authorize?")] == []


def test_who_is_refused_is_told_by_the_page(browser: Browser, tmp_path: Path, issuer: str):  # noqa: F811 - the fixture
    with hub_with(issuer, tmp_path) as site, visit(browser, site.hub.url) as seen:
        site.set(ANN | {"groups": ["guests"]})
        page = seen.page
        page.goto(site.hub.url)
        page.get_by_role("link", name="Sign in with Lab login").click()
        expect(page.get_by_role("alert").filter(has_text="no role for you")).to_be_visible()
        expect(page.get_by_role("link", name="Sign in with Lab login")).to_be_visible()
        site.set(ANN)
        page.get_by_role("link", name="Sign in with Lab login").click()
        is_in(page)
        page.goto(f"{site.hub.url}#/account")
        expect(page.get_by_role("heading", name="Keys")).to_be_visible()
        expect(page.get_by_role("heading", name="A password")).to_have_count(0)
