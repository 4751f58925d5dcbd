"""What the timeline of reservations costs a browser: 3,000 GPUs, thousands of bookings, scrolled, moved and zoomed.

    python -m bench.timeline [--nodes 430] [--bookings 6000]

The hub is `gpulse demo`, the browser the machine's Chromium as in bench.page, each on a core of its own. The bookings
are made up here and answered in the hub's place, so that what is measured is the page.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, Route, sync_playwright

from bench.page import FLAGS, STALL_BAR, Bar, ask, hub, pinned
from bench.page_frames import FRAMES_HEAD, Frames, Watch
from bench.page_parts import opened, stand

HOUR, DAY = 3600, 86400
PEOPLE = [f"person{number}" for number in range(120)]


def bookings(nodes: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """Of one to eight GPUs of a node, for hours or days, around now; they may overlap, as no real ones do."""
    chance = random.Random(1)  # noqa: S311 - made-up bookings
    now = time.time()
    found = []
    for number in range(count):
        node = chance.choice(nodes)
        first = chance.randrange(len(node["gpus"]))
        gpus = node["gpus"][first : first + chance.choice((1, 1, 2, 4, 8))]
        start = now + chance.uniform(-7, 28) * DAY
        end = start + chance.choice((2, 6, 12, 24, 72)) * HOUR
        person = chance.choice(PEOPLE)
        found.append(
            {
                "id": f"{number:012x}",
                "person": person,
                "name": person,
                "maker": person,
                "gpus": [{"node": node["name"], "index": str(gpu["index"]), "id": gpu["id"]} for gpu in gpus],
                "start": start,
                "end": end,
                "last": end,
                "comment": "a comment of some words",
                "hold": False,
                "made_at": now,
                "revision": 1,
                "ended_at": None,
                "ending": None,
                "imported": False,
                "state": "over" if end < now else "now" if start <= now else "coming",
                "mine": number % 50 == 0,
                "may_change": number % 50 == 0,
            }
        )
    return found


def nodes_of(url: str) -> list[dict[str, Any]]:
    """All that have GPUs."""
    found: list[dict[str, Any]] = []
    offset: int | None = 0
    while offset is not None:
        page: dict[str, Any] = ask(url, f"api/v1/nodes?limit=100&offset={offset}")
        found += [node for node in page["items"] if node["gpus"]]
        offset = page["next"]
    return found


def answered(page: Page, all_of_them: list[dict[str, Any]]) -> None:
    """The page's questions for reservations get these."""
    body = json.dumps(
        {
            "reservations": all_of_them,
            "findings": [],
            "revision": 1,
            "now": time.time(),
            "next": None,
            "enabled": True,
            "limits": None,
            "zone": "UTC",
        }
    )

    def answer(route: Route) -> None:
        route.fulfill(content_type="application/json", body=body)

    page.route("**/api/v1/reservations?*", answer)


def measured(page: Page, watch: Watch, view: str, url: str) -> tuple[Frames, Frames]:
    """The frames while somebody scrolls through all rows, and while they move in time and zoom."""
    page.goto(f"{url}#/reservations?view={view}")
    page.locator(".block").nth(5).wait_for()
    page.wait_for_timeout(3000)
    grid = page.get_by_role("grid")
    grid.scroll_into_view_if_needed()
    box = grid.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    taken: list[Frames] = []
    with watch.frames(taken):
        for turn in range(100):
            page.mouse.wheel(0, 300 if turn < 60 else 1500 if turn < 90 else -9000)
            page.wait_for_timeout(50)
    with watch.frames(taken):
        for turn in range(60):
            page.keyboard.down("Control" if turn % 20 < 10 else "Shift")
            page.mouse.wheel(0, (60 if turn % 40 < 20 else -60) if turn % 20 < 10 else 120)
            page.keyboard.up("Control" if turn % 20 < 10 else "Shift")
            page.wait_for_timeout(50)
    return taken[0], taken[1]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=430, help="430 have 3,000 GPUs")
    parser.add_argument("--bookings", type=int, default=6000)
    options = parser.parse_args()
    bars: list[Bar] = []
    print(f"load of the machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n", flush=True)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder, hub(options.nodes) as url:
        browser = playwright.chromium.launch(executable_path=str(pinned(Path(folder))), args=FLAGS)
        nodes = nodes_of(url)
        print(
            f"{ask(url, 'api/v1/summary')['gpus']:,} GPUs, {options.bookings:,} bookings\n\n{FRAMES_HEAD}", flush=True
        )
        with opened(browser) as (page, watch):
            page.goto("about:blank")
            print(stand(page, watch).row("an empty page, the floor"), flush=True)
        for view in ("week", "month"):
            with opened(browser) as (page, watch):
                answered(page, bookings(nodes, options.bookings))
                scrolled, zoomed = measured(page, watch, view, url)
            print(scrolled.row(f"a {view}, while it is scrolled"))
            print(zoomed.row(f"a {view}, while it is moved and zoomed"), flush=True)
            bars.append(Bar(f"longest stall while a {view} is scrolled", scrolled.longest, STALL_BAR, "ms"))
            bars.append(Bar(f"longest stall while a {view} is moved and zoomed", zoomed.longest, STALL_BAR, "ms"))
        browser.close()
    print("\n" + "\n".join(str(bar) for bar in bars))
    print(f"\nload of the machine after: {os.getloadavg()[0]:.1f}")
    sys.exit(0 if all(bar.met for bar in bars) else 1)


if __name__ == "__main__":
    main()
