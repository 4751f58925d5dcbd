"""What the page costs a browser: Chromium on one core, a real hub with a simulated fleet on the other.

    python -m bench.page [--only load|pan|table|memory] [--nodes 14400] [--seconds 300]

The hub is `gpulse demo`; it sends the recorded lives of its simulated nodes once a second. The browser is the machine's
Chromium, headless and without a graphics card, driven with a real mouse and keyboard. Other programs make frames late:
the load they make is printed, and CPU time of the page's own thread beside each figure, which they do not change.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from bench.measure import family
from bench.page_frames import FRAMES_HEAD
from bench.page_parts import first_look, memory, open_map, opened, pan, stand, table, traffic_of

HUB_CORE, BROWSER_CORE = 0, 1
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
PARTS = ("load", "pan", "table", "memory")
SCRIPT_BAR, VISIBLE_BAR, PICTURE_BAR, FRAME_BAR, STALL_BAR = 150.0, 1.0, 3.0, 50.0, 200.0
# Growth in percent of the mean that is still called flat; what comes before the page has settled is not counted.
FLAT_BAR = 5.0
SETTLED_MINUTES = 1.0
# What earlier monitors send for a page of 50 nodes.
OTHERS = (("monitor A", 1_190_000), ("monitor B", 140_000), ("monitor C", 308_000))


@dataclass
class Bar:
    """A figure, and what it may be at most."""

    name: str
    value: float
    bar: float
    unit: str

    @property
    def met(self) -> bool:
        return self.value <= self.bar

    def __str__(self) -> str:
        share = f"{self.value / self.bar:.2f} of the bar, {self.bar:g} {self.unit}"
        return f"- {self.name}: {self.value:.2f} {self.unit} ({share}): {'met' if self.met else 'MISSED'}"


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
            while ask(url, "api/v1/summary")["nodes_up"] < nodes:
                time.sleep(0.5)
            yield url
        finally:
            process.terminate()
            process.wait(30)


def ask(url: str, path: str) -> dict[str, int]:
    with urllib.request.urlopen(url + path, timeout=20) as answer:  # noqa: S310 - our own
        return dict(json.load(answer))


def load_bars(browser: Browser) -> list[Bar]:
    """A small fleet: how soon it is seen, and what it sends."""
    with hub(40) as url:
        nodes = ask(url, "api/v1/nodes?limit=100")["items"]
        visible, worked = first_look(browser, url, [node["name"] for node in nodes])  # type: ignore[attr-defined]
    with hub(50) as url:
        traffic = traffic_of(browser, url)
    page_bytes = sum(traffic.files.values()) + traffic.frames[0]
    print("| a page of 50 nodes | sends | of ours |\n|---|---|---|")
    for name, size in (("gpulse, all of it, gzip", page_bytes), *OTHERS):
        print(f"| {name} | {size / 1000:,.0f} kB | {size / page_bytes:.1f} |")
    print(f"\nthen {statistics.mean(traffic.frames[1:]):,.0f} bytes a second")
    print(f"40 nodes are seen after {worked * 1000:.0f} ms of CPU time of the page's thread\n")
    return [
        Bar("JavaScript at first load, gzip", sum(traffic.scripts.values()) / 1000, SCRIPT_BAR, "kB"),
        Bar("40 nodes are seen after", visible, VISIBLE_BAR, "s"),
    ]


def pan_bars(browser: Browser, url: str) -> list[Bar]:
    with opened(browser) as (page, watch):
        page.goto("about:blank")
        floor = stand(page, watch)
        picture = open_map(page, url)
        worked = watch.thread_seconds()
        still = stand(page, watch)
        panned = pan(page, watch)
    print(FRAMES_HEAD)
    print(floor.row("an empty page, the floor"))
    print(still.row("the map, which nobody touches"))
    print(panned.row("the map, while it is panned"))
    print(f"\nthe first picture and three seconds after it: {worked:.2f} s of CPU time of the page's thread\n")
    return [
        Bar("the large map is drawn after", picture, PICTURE_BAR, "s"),
        Bar("p99 of its frames while it is panned", panned.p99, FRAME_BAR, "ms"),
    ]


def table_bars(browser: Browser, url: str) -> list[Bar]:
    with opened(browser) as (page, watch):
        scrolled, sorted_ = table(page, watch, url)
    print(FRAMES_HEAD)
    print(scrolled.row("the table, while it is scrolled"))
    print(sorted_.row("the table, while it is sorted") + "\n")
    return [
        Bar("longest stall while the table is scrolled", scrolled.longest, STALL_BAR, "ms"),
        Bar("longest stall while it is sorted", sorted_.longest, STALL_BAR, "ms"),
    ]


def memory_bars(browser: Browser, url: str, seconds: float) -> list[Bar]:
    with opened(browser) as (page, watch):
        open_map(page, url)
        samples = memory(page, watch, _browser_pid(), seconds)
    settled = min(SETTLED_MINUTES, samples[-1][0] / 2)
    counted = [sample for sample in samples if sample[0] >= settled]
    bars = []
    print("| memory with the map open | at first | at last | a minute |\n|---|---|---|---|")
    for at, name in ((1, "JavaScript's"), (2, "Chromium's")):
        held = [sample[at] for sample in counted]
        slope = statistics.linear_regression([sample[0] for sample in counted], held).slope
        print(f"| {name} | {held[0] / 1e6:.1f} MB | {held[-1] / 1e6:.1f} MB | {slope / 1e6:+.2f} MB |")
        grown = slope * (counted[-1][0] - counted[0][0]) / statistics.mean(held) * 100
        bars.append(Bar(f"{name} memory grows in {samples[-1][0]:.0f} minutes by", grown, FLAT_BAR, "%"))
    print()
    return bars


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=PARTS, help="one part of it")
    parser.add_argument("--nodes", type=int, default=14_400, help="of the large fleet; 14,400 have 100,080 GPUs")
    parser.add_argument("--seconds", type=float, default=300, help="how long memory is watched")
    options = parser.parse_args()
    parts = PARTS if options.only is None else (options.only,)
    bars: list[Bar] = []
    print(f"load of the machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n", flush=True)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=str(pinned(Path(folder))), args=FLAGS)
        if "load" in parts:
            bars += load_bars(browser)
        if parts != ("load",):
            with hub(options.nodes) as url:
                print(f"{ask(url, 'api/v1/summary')['gpus']:,} GPUs on {options.nodes:,} nodes\n", flush=True)
                if "pan" in parts:
                    bars += pan_bars(browser, url)
                if "table" in parts:
                    bars += table_bars(browser, url)
                if "memory" in parts:
                    bars += memory_bars(browser, url, options.seconds)
        browser.close()
    print("\n".join(str(bar) for bar in bars))
    print(f"\nload of the machine after: {os.getloadavg()[0]:.1f}")
    sys.exit(0 if all(bar.met for bar in bars) else 1)


def pinned(folder: Path) -> Path:
    """A program that starts Chromium on its core."""
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("bench.page: there is no chromium here; apt-get install chromium")
    program = folder / "chromium"
    program.write_text(f'#!/bin/sh\nexec taskset --cpu-list {BROWSER_CORE} {chromium} "$@"\n', "utf-8")
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
