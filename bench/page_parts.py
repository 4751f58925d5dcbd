"""What somebody does on the page while it is measured: opens it, pans the map, scrolls and sorts the table, waits."""

import gzip
import json
import random
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from playwright.sync_api import Browser, Page, Response, WebSocket

from bench.measure import anonymous_bytes, family
from bench.page_frames import PICTURE, Frames, Watch, seen

TRIES = 5
FIRST_FRAMES = 5
SAMPLE_SECONDS = 20


@dataclass
class Traffic:
    """What a page has asked for."""

    answers: list[Response] = field(default_factory=list)
    scripts: dict[str, int] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=dict)
    frames: list[int] = field(default_factory=list)

    def listen(self, page: Page) -> None:
        page.on("response", self._answered)
        page.on("websocket", self._connected)

    def _answered(self, answer: Response) -> None:
        self.answers.append(answer)

    def weigh(self) -> None:
        """Reads the answers so far, while their page is open."""
        for answer in tuple(self.answers):
            # As a hub or a proxy sends it: text is packed.
            size = len(gzip.compress(answer.body(), 6))
            self.files[answer.url] = size
            if answer.request.resource_type == "script":
                self.scripts[answer.url] = size

    def _connected(self, socket: WebSocket) -> None:
        socket.on("framereceived", lambda payload: self.frames.append(len(payload)))


@contextmanager
def opened(browser: Browser) -> Iterator[tuple[Page, Watch]]:
    context = browser.new_context(viewport={"width": 1600, "height": 900})
    page = context.new_page()
    try:
        yield page, Watch(page)
    finally:
        context.close()


def first_look(browser: Browser, url: str, names: list[str]) -> tuple[float, float]:
    """Seconds until all of these nodes are seen, and the CPU seconds of the page's thread for it: medians."""
    test = f"""() => {{
      const text = document.body?.textContent ?? "";
      return {json.dumps(names)}.every((name) => text.includes(name));
    }}"""
    times, worked = [], []
    for _ in range(TRIES):
        with opened(browser) as (page, watch):
            page.goto(url, wait_until="commit")
            times.append(seen(page, test))
            worked.append(watch.thread_seconds())
    return statistics.median(times), statistics.median(worked)


def traffic_of(browser: Browser, url: str) -> Traffic:
    """What a page asks for until its first frames are there: some seconds, more on a busy machine."""
    traffic = Traffic()
    with opened(browser) as (page, _):
        traffic.listen(page)
        page.goto(url)
        while len(traffic.frames) < FIRST_FRAMES:
            page.wait_for_timeout(200)
        traffic.weigh()
    return traffic


def open_map(page: Page, url: str) -> float:
    """Seconds until the map is drawn."""
    page.goto(f"{url}#/?view=map", wait_until="commit")
    first = seen(page, PICTURE)
    page.wait_for_timeout(3000)
    chart = page.get_by_role("application")
    chart.scroll_into_view_if_needed()
    chart.focus()
    return first


def pan(page: Page, watch: Watch, seconds: float = 15) -> Frames:
    """The map's frames while somebody pans: with small cells, and with shapes."""
    taken: list[Frames] = []
    for steps in (1, 5):
        for _ in range(steps):
            page.keyboard.press("+")
        page.wait_for_timeout(500)
        with watch.frames(taken):
            drag(page, seconds)
    page.keyboard.press("0")
    return taken[0] + taken[1]


def drag(page: Page, seconds: float) -> None:
    box = page.get_by_role("application").bounding_box()
    assert box
    chance = random.Random(1)  # noqa: S311 - where a mouse goes
    end = time.monotonic() + seconds
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    while time.monotonic() < end:
        x = box["x"] + chance.uniform(0.1, 0.9) * box["width"]
        y = box["y"] + chance.uniform(0.1, 0.9) * box["height"]
        page.mouse.move(x, y, steps=25)
    page.mouse.up()


def stand(page: Page, watch: Watch, seconds: float = 10) -> Frames:
    """The frames of a page nobody touches."""
    taken: list[Frames] = []
    with watch.frames(taken):
        page.wait_for_timeout(seconds * 1000)
    return taken[0]


def table(page: Page, watch: Watch, url: str) -> tuple[Frames, Frames]:
    """The frames of a table while somebody scrolls it, and while they sort it by each column, both ways."""
    page.goto(f"{url}#/?view=table")
    grid = page.get_by_role("grid")
    grid.get_by_role("row").nth(10).wait_for()
    page.wait_for_timeout(3000)
    grid.scroll_into_view_if_needed()
    box = grid.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    taken: list[Frames] = []
    with watch.frames(taken):
        for turn in range(100):
            page.mouse.wheel(0, 400 if turn < 60 else 20_000)
            page.wait_for_timeout(50)
        grid.focus()
        for key in ("End", "Home", "PageDown", "PageDown", "End", "PageUp"):
            page.keyboard.press(key)
            page.wait_for_timeout(200)
    places = [head.bounding_box() for head in grid.get_by_role("columnheader").get_by_role("button").all()]
    with watch.frames(taken):
        for place in places:
            assert place
            for _ in range(2):
                page.mouse.click(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
                page.wait_for_timeout(400)
    return taken[0], taken[1]


def memory(page: Page, watch: Watch, browser_pid: int, seconds: float) -> list[tuple[float, int, int]]:
    """Now and then the minute, and the bytes JavaScript and all of Chromium hold, with the map open and live."""
    samples = []
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        drag(page, seconds=2)
        page.wait_for_timeout((SAMPLE_SECONDS - 2) * 1000)
        minute = (time.monotonic() - began) / 60
        samples.append((minute, watch.heap_bytes(), anonymous_bytes(family(browser_pid))))
    return samples
