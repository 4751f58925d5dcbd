"""What people do with their accounts in the page, and what admins do with those of others."""

import getpass
import json
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.patience import PATIENCE_SECONDS
from tests.web.accounts_site import PASSWORD, AccountsSite, complaints, enter, is_in, sign_in
from tests.web.browsing import seen_until, visit
from tests.web.test_accessible import AXE, find
from tests.web.test_hostile import IMAGE, harmless, hostile

# Names of accounts have no blanks, quotes and slashes.
HOSTILE_NAME = "<svg><img>onload=window.hacked=1"
PAGES = {"#/account": "Browsers", "#/admin": "Accounts", "#/admin/audit": "Audit log"}
_SMALL = """[...document.querySelectorAll("main :is(button, a.button, .field, select)")]
    .filter((one) => one.checkVisibility() && one.getBoundingClientRect().height < 40).map((one) => one.outerHTML)"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccountsSite]:
    with AccountsSite(tmp_path_factory.mktemp("site")) as found:
        found.add("ann")
        yield found


def admin_link(site: AccountsSite) -> str:
    return site.link(getpass.getuser())


def line(page: Page, name: str) -> None:
    """Open what can be changed of an account."""
    page.get_by_role("button", name=f"Change {name}").click()


def test_an_admin_adds_a_viewer_and_disables_them_again(browser: Browser, site: AccountsSite):
    with visit(browser, site.url) as seen, visit(browser, site.url) as theirs:
        page = enter(seen, admin_link(site), "#/admin")
        page.get_by_label("Login name on the nodes").fill("vera")
        page.get_by_role("button", name="Add", exact=True).click()
        link = page.get_by_role("region", name="A link for vera").locator("code").inner_text()
        viewer = enter(theirs, link)
        viewer.get_by_role("button", name="Your account: vera").click()
        expect(viewer.get_by_role("link", name="Account", exact=True)).to_be_visible()
        expect(viewer.get_by_role("link", name="Administration")).to_have_count(0)
        for address in ("#/admin", "#/admin/audit"):
            viewer.goto(site.url + address)
            expect(viewer.get_by_role("heading", name="This page is for admins")).to_be_visible()
        viewer.goto(f"{site.url}#/?view=cards")
        is_in(viewer)
        line(page, "vera")
        page.get_by_role("button", name="Disable", exact=True).click()
        page.get_by_role("button", name="Disable vera").click()
        expect(page.get_by_text("Nobody can sign in as vera")).to_be_visible()
        expect(viewer.get_by_role("status").filter(has_text="Signed out: last data of")).to_be_visible()
        assert complaints(seen) == complaints(theirs) == []


def test_another_role_is_seen_at_once(browser: Browser, site: AccountsSite):
    site.add("mo")
    with visit(browser, site.url) as seen, visit(browser, site.url) as theirs:
        viewer = enter(theirs, site.link("mo"), "#/admin")
        expect(viewer.get_by_role("heading", name="This page is for admins")).to_be_visible()
        page = enter(seen, admin_link(site), "#/admin")
        line(page, "mo")
        page.get_by_role("group", name="Change mo").get_by_label("Role").select_option("admin")
        expect(page.get_by_text("Now admin.")).to_be_visible()
        expect(viewer.get_by_role("heading", name="Administration")).to_be_visible()
        assert seen.complaints == []


def test_the_last_admin_stays_one(browser: Browser, tmp_path: Path):
    with AccountsSite(tmp_path) as site, visit(browser, site.url) as seen:
        page = enter(seen, site.first_link, "#/admin")
        me = getpass.getuser()
        line(page, me)
        role = page.get_by_role("group", name=f"Change {me}").get_by_label("Role")
        role.select_option("viewer")
        expect(page.get_by_role("alert").filter(has_text="last admin")).to_be_visible()
        expect(role).to_have_value("admin")


def test_a_key_is_shown_once_and_works_until_it_is_revoked(browser: Browser, site: AccountsSite):
    def status(key: str) -> int:
        return httpx.get(
            f"{site.url}api/v1/summary", headers={"Authorization": f"Bearer {key}"}, timeout=PATIENCE_SECONDS
        ).status_code

    with visit(browser, site.url) as seen:
        page = enter(seen, site.link("ann"), "#/account")
        page.get_by_label("For", exact=True).fill("nightly report")
        page.get_by_role("button", name="Make a key").click()
        key = page.get_by_role("region", name="The key nightly report").locator("code").first.inner_text()
        assert re.fullmatch(r"gpk_[0-9a-f]{12}_[0-9a-f]{48}", key)
        row = page.get_by_role("row", name="nightly report")
        expect(row).to_contain_text("never")
        assert status(key) == 200
        page.reload()
        expect(row).to_contain_text("ago")
        expect(row).to_contain_text("in 90 d")
        assert key not in page.content()
        page.get_by_role("button", name="Revoke nightly report").click()
        page.get_by_role("button", name="Revoke it").click()
        expect(row).to_have_count(0)
        assert status(key) == 401
        assert seen.complaints == []


def test_all_keys_go_at_once(browser: Browser, site: AccountsSite):
    """By their owner with the password, and by an admin."""
    site.add("kay")

    def make(page: Page) -> None:
        page.goto(f"{site.url}#/account")
        page.get_by_label("For", exact=True).fill("nightly report")
        page.get_by_role("button", name="Make a key").click()
        page.get_by_role("region", name="The key nightly report").get_by_role("button", name="Done").click()
        expect(page.get_by_role("row", name="nightly report")).to_have_count(1)

    with visit(browser, site.url) as seen, visit(browser, site.url) as admin:
        page = enter(seen, site.link("kay"))
        make(page)
        page.get_by_label("The new one", exact=True).fill(PASSWORD)
        page.get_by_label("The new one again").fill(PASSWORD)
        page.get_by_label("Revoke my keys too").check()
        page.get_by_role("button", name="Change it").click()
        expect(page.get_by_role("row", name="nightly report")).to_have_count(0)
        make(page)
        other = enter(admin, admin_link(site), "#/admin")
        line(other, "kay")
        other.get_by_role("button", name="Revoke its key").click()
        other.get_by_role("button", name="Revoke the keys of kay").click()
        expect(other.get_by_text("The keys are revoked.")).to_be_visible()
        expect(other.get_by_role("button", name="Revoke its key")).to_have_count(0)
        page.reload()
        expect(page.get_by_role("button", name="Also 2 that no longer work")).to_be_visible()
        assert seen.complaints == admin.complaints == []


def test_who_would_send_a_password_for_all_to_read_is_warned(browser: Browser, site: AccountsSite):
    """Not on loopback; elsewhere at plain http, here of a name that the browser takes for another machine."""
    elsewhere = "http://gpus.example/"

    def through(route: Route) -> None:
        route.fulfill(response=route.fetch(url=route.request.url.replace(elsewhere, site.url)))

    with visit(browser, site.url) as seen:
        seen.page.context.route(f"{elsewhere}**", through)
        for url, warned in ((site.url, 0), (elsewhere, 1)):
            seen.page.goto(f"{url}#/sign-in")
            expect(seen.page.get_by_label("Password", exact=True)).to_be_visible()
            expect(seen.page.get_by_text("others on the network can read your password")).to_have_count(warned)


def test_another_password_ends_the_other_browsers(browser: Browser, site: AccountsSite):
    site.add("paul")
    fresh = "another horse, another staple"
    with visit(browser, site.url) as seen, visit(browser, site.url) as other:
        there = enter(other, site.link("paul"))
        page = seen.page
        page.goto(f"{site.url}#/account")
        sign_in(page, "paul")
        expect(page.get_by_role("row", name="this one")).to_have_count(1)
        expect(page.get_by_role("row").filter(has_text="127.0.0.1")).to_have_count(2)
        page.get_by_label("The one you have").fill(PASSWORD)
        page.get_by_label("The new one", exact=True).fill(fresh)
        page.get_by_label("The new one again").fill("something else")
        page.get_by_role("button", name="Change it").click()
        expect(page.get_by_text("The two are not the same")).to_be_visible()
        page.get_by_label("The new one again").fill(fresh)
        page.get_by_role("button", name="Change it").click()
        expect(page.get_by_text("It is changed.")).to_be_visible()
        bar = there.get_by_role("status").filter(has_text="Signed out: last data of")
        bar.get_by_role("link", name="Sign in").click()
        sign_in(there, None, fresh)
        is_in(there)
        assert seen.complaints == []


def test_who_has_forgotten_the_password_sets_one_after_a_link(browser: Browser, site: AccountsSite):
    site.add("fay")
    fresh = "a horse that is remembered"
    with visit(browser, site.url) as seen, visit(browser, site.url) as other:
        page = enter(seen, site.link("fay"), "#/account")
        expect(page.get_by_text("You came by a link: for 15 minutes")).to_be_visible()
        expect(page.get_by_label("The one you have")).to_have_count(0)
        page.get_by_label("The new one", exact=True).fill(fresh)
        page.get_by_label("The new one again").fill(fresh)
        page.get_by_role("button", name="Change it").click()
        expect(page.get_by_text("It is changed.")).to_be_visible()
        other.page.goto(f"{site.url}#/account")
        sign_in(other.page, "fay", fresh)
        other.page.get_by_label("The one you have").fill("not what it is")
        other.page.get_by_label("The new one", exact=True).fill(PASSWORD)
        other.page.get_by_label("The new one again").fill(PASSWORD)
        other.page.get_by_role("button", name="Change it").click()
        expect(other.page.get_by_role("alert").filter(has_text="The old password is wrong")).to_be_visible()
        assert complaints(other) == seen.complaints == []


def test_the_audit_log_is_found_in_and_taken_home(browser: Browser, site: AccountsSite):
    site.add("zoe", "member")
    with visit(browser, site.url) as seen:
        page = enter(seen, admin_link(site), "#/admin/audit")
        # The newest is the sign-in of just now.
        expect(page.locator("tbody tr").first).to_contain_text("session.begin")
        page.get_by_label("Find in the audit log").fill("zoe account.add")
        expect(page.locator("tbody tr")).to_have_count(1)
        expect(page.locator("tbody tr")).to_contain_text("member")
        with page.expect_download() as waiting:
            page.get_by_role("button", name="JSON lines").click()
        entries = [json.loads(text) for text in Path(waiting.value.path()).read_text("utf-8").splitlines()]
        assert [one["id"] for one in entries] == sorted((one["id"] for one in entries), reverse=True)
        assert any(one["action"] == "account.add" and one["target"] == "zoe" for one in entries)
        assert seen.complaints == []


def test_what_people_call_things_is_text(browser: Browser, site: AccountsSite):
    site.user("add", HOSTILE_NAME, "--role", "admin", "--no-password", "--display", hostile("display"))
    with visit(browser, site.url, user_agent=hostile("agent")) as seen:
        page = enter(seen, site.link(HOSTILE_NAME), "#/account")
        expect(page.get_by_role("heading", level=1)).to_have_text(hostile("display"))
        expect(page.locator("main")).to_contain_text(HOSTILE_NAME)
        page.get_by_label("For", exact=True).fill(hostile("label")[:100])
        page.get_by_role("button", name="Make a key").click()
        expect(page.get_by_role("row", name="label")).to_contain_text(f"label {IMAGE}")
        expect(page.get_by_role("row", name="agent")).to_be_visible()
        page.get_by_role("button", name="Your account").click()
        expect(page.locator("#account-menu")).to_contain_text(f"display {IMAGE}")
        harmless(page)
        for address, word in (("#/admin", "display"), ("#/admin/audit", "label")):
            page.goto(site.url + address)
            expect(page.locator("main")).to_contain_text(f"{word} {IMAGE}")
            expect(page.locator("main")).to_contain_text(HOSTILE_NAME)
            harmless(page)
        assert seen.complaints == []


def test_a_script_that_got_into_the_page_would_not_run(browser: Browser, site: AccountsSite):
    with visit(browser, site.url) as seen:
        answer = seen.page.goto(site.url)
        assert answer is not None
        policy = answer.headers["content-security-policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        seen.page.evaluate(
            """() => { const one = document.createElement("script");
                one.textContent = "window.hacked = 1"; document.head.append(one) }"""
        )
        assert seen.page.evaluate("typeof window.hacked") == "undefined"
        seen_until(seen.page, lambda: any("policy: script-src" in one for one in seen.complaints))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_fits_and_is_accessible(browser: Browser, site: AccountsSite, scheme: str):
    with visit(browser, site.url, color_scheme=scheme, bypass_csp=True) as seen:
        page = seen.page
        page.goto(site.url)
        expect(page.get_by_label("Password", exact=True)).to_be_visible()
        addresses = ["#/sign-in", *PAGES]
        for address in addresses:
            if address != "#/sign-in":
                page.goto(site.url + address)
                expect(page.get_by_role("heading", name=PAGES[address], exact=True)).to_be_visible()
                expect(page.locator("tbody tr").first).to_be_visible()
            page.add_script_tag(path=AXE)
            for width in (360, 1440, 2560):
                page.set_viewport_size({"width": width, "height": 900})
                assert seen.overflow() <= 0, f"{address} is wider than {width} px"
                if width == 360:
                    assert page.evaluate(_SMALL) == []
                if width != 2560:
                    assert find(page) == [], address
            if address == "#/sign-in":
                enter(seen, admin_link(site))
