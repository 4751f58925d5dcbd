"""What the page costs a browser: Chromium on one core, a real hub with a simulated fleet on the other.

    python -m bench.page [--nodes 14400] [--seconds 300]

The hub is `gpulse demo`; it sends the recorded lives of its simulated nodes once a second. The browser is the machine's
Chromium, headless and without a graphics card, driven with a real mouse and keyboard.
"""

import argparse
import gzip
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, Page, Response, WebSocket, sync_playwright

from bench.measure import anonymous_bytes, family
from bench.page_frames import FRAMES_HEAD, PICTURE, Frames, Watch, seen

HUB_CORE, BROWSER_CORE = 0, 1
CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
SCRIPT_BAR, VISIBLE_BAR, PICTURE_BAR, FRAME_BAR, STALL_BAR = 150_000, 1.0, 3.0, 50.0, 200.0
# Growth of memory over the counted time that is still called flat; the first fifth is not counted.
FLAT = 0.05
SETTLE_SHARE = 0.2
# What earlier monitors send for a page of 50 nodes.
OTHERS = (("monitor A", 1_190_000), ("monitor B", 140_000), ("monitor C", 308_000))


@contextmanager
def hub(nodes: int) -> Iterator[str]:
    """The address of a hub whose nodes are all there."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["taskset", "--cpu-list", str(HUB_CORE), str(Path(sys.executable).with_name("gpulse")), "demo"]
        process = subprocess.Popen(
            [*command, "--nodes", str(nodes), "--port", "0", "--data", folder],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            assert process.stdout
            url = process.stdout.readline().strip()
            while _ask(url, "api/v1/summary")["nodes_up"] < nodes:
                time.sleep(0.5)
            yield url
        finally:
            process.terminate()
            process.wait(30)


def _ask(url: str, path: str) -> dict[str, int]:
    with urllib.request.urlopen(url + path, timeout=20) as answer:  # noqa: S310 - our own
        return dict(json.load(answer))


@dataclass
class Traffic:
    """What a page has asked for."""

    scripts: dict[str, int] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=dict)
    frames: list[int] = field(default_factory=list)

    def listen(self, page: Page) -> None:
        page.on("response", self._answered)
        page.on("websocket", self._connected)

    def _answered(self, response: Response) -> None:
        # As a hub or a proxy sends it: text is packed.
        size = len(gzip.compress(response.body(), 6))
        self.files[response.url] = size
        if response.request.resource_type == "script":
            self.scripts[response.url] = size

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


def small_fleets(browser: Browser) -> tuple[float, Traffic]:
    """Seconds until 40 nodes are seen, the median of five; and what 50 nodes send."""
    times = []
    with hub(40) as url:
        names = [node["name"] for node in _ask(url, "api/v1/nodes?limit=100")["items"]]  # type: ignore[attr-defined]
        test = f"() => {json.dumps(names)}.every((name) => document.body.textContent.includes(name))"
        for _ in range(5):
            with opened(browser) as (page, _):
                page.goto(url)
                times.append(seen(page, test))
    traffic = Traffic()
    with hub(50) as url, opened(browser) as (page, _):
        traffic.listen(page)
        page.goto(url)
        page.wait_for_timeout(5000)
    return statistics.median(times), traffic


def map_of(page: Page, watch: Watch, url: str) -> tuple[float, Frames]:
    """Seconds until the map is drawn, and its frames while somebody pans: with small cells, and with shapes."""
    page.goto(f"{url}#/?view=map")
    first = seen(page, PICTURE)
    page.wait_for_timeout(3000)
    chart = page.get_by_role("application")
    chart.scroll_into_view_if_needed()
    chart.focus()
    panned = Frames([], 0)
    for steps in (1, 5):
        for _ in range(steps):
            page.keyboard.press("+")
        page.wait_for_timeout(500)
        watch.begin()
        _drag(page, seconds=15)
        panned += watch.taken()
    page.keyboard.press("0")
    return first, panned


def _drag(page: Page, seconds: float) -> None:
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


def memory_of(page: Page, watch: Watch, browser_pid: int, seconds: float) -> tuple[list[int], list[int]]:
    """What JavaScript and all of Chromium hold, every ten seconds, with the map open and live."""
    heaps, held = [], []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        _drag(page, seconds=2)
        page.wait_for_timeout(8000)
        heaps.append(watch.heap_bytes())
        held.append(anonymous_bytes(family(browser_pid)))
    return heaps, held


def growth(samples: list[int]) -> float:
    """From the first half to the second of what is counted."""
    counted = samples[int(len(samples) * SETTLE_SHARE) :]
    middle = len(counted) // 2
    return statistics.mean(counted[middle:]) / statistics.mean(counted[:middle]) - 1


def table_of(page: Page, watch: Watch, url: str) -> tuple[Frames, Frames]:
    """The frames of a table while somebody scrolls it, and while they sort it by each column, both ways."""
    page.goto(f"{url}#/?view=table")
    grid = page.get_by_role("grid")
    grid.get_by_role("row").nth(10).wait_for()
    page.wait_for_timeout(3000)
    grid.scroll_into_view_if_needed()
    box = grid.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    watch.begin()
    for turn in range(100):
        page.mouse.wheel(0, 400 if turn < 60 else 20_000)
        page.wait_for_timeout(50)
    grid.focus()
    for key in ("End", "Home", "PageDown", "PageDown", "End", "PageUp"):
        page.keyboard.press(key)
        page.wait_for_timeout(200)
    scrolled = watch.taken()
    watch.begin()
    for head in grid.get_by_role("columnheader").get_by_role("button").all():
        for _ in range(2):
            head.click()
            page.wait_for_timeout(400)
    return scrolled, watch.taken()


def idle(page: Page, watch: Watch, seconds: float = 10) -> Frames:
    """The floor: a page with nothing on it, on the same core."""
    page.goto("about:blank")
    watch.begin()
    page.wait_for_timeout(seconds * 1000)
    return watch.taken()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=14_400, help="of the large fleet; 14,400 have 100,080 GPUs")
    parser.add_argument("--seconds", type=float, default=300, help="how long memory is watched")
    options = parser.parse_args()
    busy = os.getloadavg()[0]
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=str(_pinned(Path(folder))), args=FLAGS)
        pid = _browser_pid()
        visible, traffic = small_fleets(browser)
        with hub(options.nodes) as url:
            gpus = _ask(url, "api/v1/summary")["gpus"]
            with opened(browser) as (page, watch):
                floor = idle(page, watch)
                picture, panned = map_of(page, watch, url)
                heaps, held = memory_of(page, watch, pid, options.seconds)
            with opened(browser) as (page, watch):
                scrolled, sorted_ = table_of(page, watch, url)
        browser.close()
    scripts = sum(traffic.scripts.values())
    page_bytes = sum(traffic.files.values()) + traffic.frames[0]
    # Other programs make frames late; the CPU time of a frame is the same beside them.
    print(f"{gpus:,} GPUs on {options.nodes:,} nodes; load of the machine before: {busy:.1f}\n\n{FRAMES_HEAD}")
    print(floor.row("an empty page, the floor"))
    print(panned.row("the map, while it is panned"))
    print(scrolled.row("the table, while it is scrolled"))
    print(sorted_.row("the table, while it is sorted"))
    print(
        f"\nmemory in {options.seconds:.0f} s of the map: JavaScript {_megabytes(heaps)}, Chromium {_megabytes(held)}\n"
    )
    print("| a page of 50 nodes | sends | of ours |\n|---|---|---|")
    for name, size in (("gpulse, all of it, gzip", page_bytes), *OTHERS):
        print(f"| {name} | {size / 1000:,.0f} kB | {size / page_bytes:.1f} |")
    print(f"\nthen {statistics.mean(traffic.frames[1:]):,.0f} bytes a second\n")
    bars = (
        ("JavaScript at first load, gzip", scripts / 1000, SCRIPT_BAR / 1000, "kB"),
        ("40 nodes are seen after", visible, VISIBLE_BAR, "s"),
        (f"the map of {gpus:,} GPUs is drawn after", picture, PICTURE_BAR, "s"),
        ("p99 of its frames while it is panned", panned.p99, FRAME_BAR, "ms"),
        ("JavaScript's memory grows by", growth(heaps) * 100, FLAT * 100, "%"),
        ("Chromium's memory grows by", growth(held) * 100, FLAT * 100, "%"),
        ("longest stall while the table is scrolled", scrolled.longest, STALL_BAR, "ms"),
        ("longest stall while it is sorted", sorted_.longest, STALL_BAR, "ms"),
    )
    for name, value, bar, unit in bars:
        print(f"- {name}: {value:.2f} {unit} (bar {bar:g} {unit}) {'met' if value <= bar else 'MISSED'}")
    sys.exit(0 if all(value <= bar for _, value, bar, _ in bars) else 1)


def _megabytes(samples: list[int]) -> str:
    return f"{samples[0] / 1e6:.0f} to {samples[-1] / 1e6:.0f} MB"


def _pinned(folder: Path) -> Path:
    """A program that starts Chromium on its core."""
    program = folder / "chromium"
    program.write_text(f'#!/bin/sh\nexec taskset --cpu-list {BROWSER_CORE} {CHROMIUM} "$@"\n', "ascii")
    program.chmod(0o755)
    return program


def _browser_pid() -> int:
    """Of the Chromium that this process has started."""
    for pid in family(os.getpid()):
        if b"--remote-debugging" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return pid
    raise RuntimeError("Chromium has not started")


if __name__ == "__main__":
    main()
