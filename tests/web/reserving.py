"""A hub on which people reserve: its accounts, its nodes, and what they do on the timeline."""

import json
import time
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Locator, Page, expect

from tests.api.fleets import card, snapshot
from tests.web.accounts_site import PASSWORD, AccountsSite
from tests.web.browsing import Seen

HOUR, DAY = 3600, 86400
# What earlier tests have ended is there, faded.
LIVE = ".block:not(.past)"
CALM = {"version": "0.1.0", "python": "3.11", "interval_seconds": 600.0, "gpu_source": "nvml"}
# Lists of what stands in the way are answers of 409, and what cannot be is one of 422: browsers complain of both.
_REFUSALS = ("status of 401", "status of 403", "status of 409", "status of 422")


class ReservingSite(AccountsSite):
    """Beside gpu1, on which ann and bob work, gpu2 and gpu3 with four free GPUs each. vic is a viewer."""

    def __init__(self, folder: Path):
        super().__init__(folder, anonymous="read")
        for node in ("gpu2", "gpu3"):
            cards = [card(f"GPU-{node}-{index}", index) for index in range(4)]
            self.tell(node, snapshot(node, cards, probe=CALM))
        for name, role in {"ann": "member", "bob": "member", "vic": "viewer"}.items():
            self.add(name, role)


def come_in(seen: Seen, name: str, path: str = "#/reservations") -> Page:
    """Signed in by the API, before the page is there: how people do it is shown elsewhere."""
    headers = {"X-Gpulse": "1", "Origin": seen.url.rstrip("/")}
    answer = httpx.post(f"{seen.url}api/v1/session", json={"name": name, "password": PASSWORD}, headers=headers)
    assert answer.status_code == 200, answer.text
    for cookie in answer.cookies.jar:
        seen.page.context.add_cookies([{"name": cookie.name, "value": cookie.value or "", "url": seen.url}])
    seen.page.add_init_script(_KEEP % (json.dumps(f"gpulse.key {seen.url}"), json.dumps(answer.json()["page_key"])))
    return seen.go(path)


# Once: who signs out has signed out.
_KEEP = """(([name, key]) => {
    if (location.protocol === "about:" || sessionStorage.getItem(name) !== null) return;
    sessionStorage.setItem(name, "kept");
    localStorage.setItem(name, JSON.stringify(key));
})([%s, %s])"""
# In the page itself: the hub takes changes from nowhere else without a key.
_ASK = """async ([method, path, body]) => {
    const kept = `gpulse.key ${location.href.split("#")[0]}`;
    const key = JSON.parse(localStorage.getItem(kept)) ?? "1";
    const headers = { "X-Gpulse": key, ...(body === null ? {} : { "Content-Type": "application/json" }) };
    const text = body === null ? undefined : JSON.stringify(body);
    const answer = await fetch(`api/v1/${path}`, { method, headers, body: text });
    return [answer.status, await answer.json()];
}"""


def asked(page: Page, method: str, path: str, body: dict[str, Any] | None = None, status: int = 200) -> Any:
    """As who is signed in on the page."""
    got, answer = page.evaluate(_ASK, [method, path, body])
    assert got == status, answer
    return answer


def reserve(page: Page, *places: str, start: float, end: float, comment: str = "") -> dict[str, Any]:
    """As who is signed in on the page; places as `gpu2:0`."""
    gpus = [{"node": node, "index": index} for node, _, index in (place.partition(":") for place in places)]
    body = {"gpus": gpus, "start": start, "end": end, "comment": comment}
    return asked(page, "POST", "reservations", body, status=201)


def all_of(page: Page) -> list[dict[str, Any]]:
    """What holds GPUs now or later."""
    found = asked(page, "GET", "reservations")["reservations"]
    return [one for one in found if one["state"] in ("now", "coming")]


def clear(page: Page) -> None:
    """Takes away what the person on the page may change."""
    for one in all_of(page):
        if one["may_change"]:
            asked(page, "DELETE", f"reservations/{one['id']}")


def until_listed(page: Page) -> None:
    """The page knows what is reserved, and whether one may reserve."""
    expect(page.locator(".layer.may")).to_be_visible()


def not_while_it_strikes(page: Page) -> None:
    """What is about the hour begins after a full one, where that is near: the page may see it earlier or later."""
    left = 3600 - time.time() % 3600
    if left < 20:
        page.wait_for_timeout((left + 2) * 1000)


def tomorrow(hour: float) -> float:
    """An hour of tomorrow by the clock of this machine, which the browser has too."""
    now = time.localtime()
    return time.mktime((now.tm_year, now.tm_mon, now.tm_mday + 1, 0, int(hour * 60), 0, 0, 0, -1))


def row_of(page: Page, node: str, index: int) -> Locator:
    """The row of a GPU: so many below that of its node."""
    rows = page.get_by_role("grid").get_by_role("row")
    names = rows.evaluate_all("(rows) => rows.map((row) => row.querySelector('[role=rowheader]').innerText)")
    at = next(place for place, name in enumerate(names) if name.split()[0] == node)
    return rows.nth(at + 1 + index)


def x_of(page: Page, when: float) -> float:
    """Where on the screen a moment is, on a timeline of the week that begins today."""
    box = page.locator(".layer").bounding_box()
    assert box
    now = time.localtime()
    begin = time.mktime((now.tm_year, now.tm_mon, now.tm_mday, 0, 0, 0, 0, 0, -1))
    end = time.mktime((now.tm_year, now.tm_mon, now.tm_mday + 7, 0, 0, 0, 0, 0, -1))
    return box["x"] + (when - begin) / (end - begin) * box["width"]


def y_of(row: Locator) -> float:
    box = row.bounding_box()
    assert box
    return box["y"] + box["height"] / 2


def drag(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*end, steps=8)
    page.mouse.up()


def form(page: Page) -> Locator:
    return page.get_by_role("region", name="Reserve")


def until_tried(page: Page, words: str) -> None:
    """The hub has said what would come of it."""
    expect(form(page).locator(".good")).to_contain_text(words)


def complaints(seen: Seen) -> list[str]:
    return [one for one in seen.complaints if not any(words in one for words in _REFUSALS)]
