"""Reservations that are given up: by gpulse where nobody came, by who may not reserve any more, GPU by GPU."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from gpulse.reservations import writing
from gpulse.reservations.model import Place, Wanted
from gpulse.reservations.rules import By
from gpulse.store import Records
from tests.api.fleets import card, snapshot
from tests.web import reserving
from tests.web.browsing import Seen, visit
from tests.web.reserving import CALM, HOUR, ReservingSite, come_in, reserve, tomorrow


@pytest.fixture
def records(reserving_site: ReservingSite) -> Iterator[Records]:
    """As another process has them."""
    with Records(Path(reserving_site.data)) as opened:
        yield opened


def test_what_was_released_is_told_to_whose_it_was(ann: Seen, records: Records):
    page, now = ann.page, time.time()
    made = reserve(page, "gpu2:0", start=now, end=now + 20 * HOUR, comment="thesis")
    mine = page.get_by_role("region", name="My reservations")
    expect(mine.get_by_role("listitem")).to_contain_text("left")
    records.write(lambda one: writing.release(one, made["id"], made["revision"], time.time())).result()
    line = mine.get_by_role("listitem")
    expect(line).to_contain_text("nobody came")
    expect(line).to_contain_text("released")
    expect(page.locator(f".past[data-block='{made['id']}']")).to_contain_text("not used, released")
    line.get_by_role("button").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".label")).to_have_text("Released")
    expect(dialog).to_contain_text("Nobody came, so that it was released. It was reserved until")
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_have_count(0)
    page.get_by_role("button", name="List").click()
    row = page.get_by_role("region", name="List of reservations").get_by_role("listitem").filter(has_text="gpu2: 0")
    expect(row.filter(has_text="Released")).to_have_count(1)


def test_who_may_not_reserve_any_more_gives_back_what_is_theirs(
    browser: Browser, reserving_site: ReservingSite, records: Records
):
    """vic was a member once."""
    wanted = Wanted(person="vic", places=(Place("gpu3", "1"),), start=tomorrow(9), end=tomorrow(12))
    [made] = records.write(lambda one: writing.make(one, wanted, By("root", admin=True), time.time())).result()
    with visit(browser, reserving_site.url) as seen:
        page = come_in(seen, "vic", f"#/reservations?id={made.id}")
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("gpu3: 1")
        expect(dialog.get_by_role("button", name="Save")).to_have_count(0)
        dialog.get_by_role("button", name="Cancel it").click()
        page.wait_for_timeout(1000)
        dialog.get_by_role("button", name="Yes, cancel it").click()
        expect(dialog.locator(".label")).to_have_text("Cancelled")
        assert reserving.complaints(seen) == []


def test_gpus_that_are_gone_are_told_and_can_be_given_up_one_by_one(ann: Seen, reserving_site: ReservingSite):
    page, token = ann.page, reserving_site.token("gpu4")

    def has(count: int, seq: int) -> None:
        cards = [card(f"GPU-gpu4-{index}", index) for index in range(count)]
        told = reserving_site.post(token, snapshot("gpu4", cards, probe=CALM, seq=seq))
        assert told.status_code == 200, told.text

    has(4, 1)
    made = reserve(page, "gpu4:1", "gpu4:2", "gpu4:3", start=tomorrow(9), end=tomorrow(12))
    has(2, 2)
    page = ann.go(f"#/reservations?id={made['id']}")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("The hub does not see gpu4: 2–3 now.")
    gpus = dialog.get_by_label("GPUs")
    gpus.fill("gpu4:0-3")
    # Once the page knows of gpu4.
    expect(dialog).to_contain_text("4 GPUs")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_contain_text("Saved.")
    gpus.fill("gpu4:1-2")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_contain_text("The hub does not see gpu4: 2 now.")
    # What was given up is not there to be had again.
    gpus.fill("gpu4:1-3")
    expect(dialog).to_contain_text("gpu4 has no GPU 3; it has 0, 1")
