"""Watches a page from inside: when something is first seen, how long its frames take, and what they cost."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import quantiles
from time import monotonic
from typing import Any

from playwright.sync_api import CDPSession, Page

# Runs before anything of the page does. The page's own policy does not hold for what a debugger puts in.
_WATCH = """
window.benchFrames = [];
let before = 0;
const note = (now) => {
  if (before > 0) window.benchFrames.push(now - before);
  before = now;
  requestAnimationFrame(note);
};
requestAnimationFrame(note);
window.benchSeen = (test) => new Promise((done) => {
  const look = () => (test() ? done(performance.now()) : setTimeout(look, 20));
  look();
});
"""

# A picture is there when the map's canvas shows more than its background.
PICTURE = """() => {
  const canvas = document.querySelector("[role=application] canvas");
  if (!canvas || canvas.width === 0) return false;
  const wide = Math.min(300, canvas.width), high = Math.min(150, canvas.height);
  const shot = new OffscreenCanvas(wide, high);
  const context = shot.getContext("2d");
  context.drawImage(canvas, 0, 0);
  return new Set(new Uint32Array(context.getImageData(0, 0, wide, high).data.buffer)).size > 8;
}"""

_MARK = "bench"


@dataclass
class Frames:
    """Some seconds of a page: how long its frames took, and what its own thread worked; milliseconds."""

    lengths: list[float]
    seconds: float
    # CPU time of the page's thread: what other programs do does not count.
    worked: float
    # CPU time of each of its tasks.
    tasks: list[float]

    def __add__(self, other: "Frames") -> "Frames":
        return Frames(
            self.lengths + other.lengths,
            self.seconds + other.seconds,
            self.worked + other.worked,
            self.tasks + other.tasks,
        )

    @property
    def p50(self) -> float:
        return quantiles(self.lengths, n=100)[49]

    @property
    def p99(self) -> float:
        return quantiles(self.lengths, n=100)[98]

    @property
    def longest(self) -> float:
        return max(self.lengths)

    def row(self, name: str) -> str:
        share = self.worked / self.seconds / 1000
        return (
            f"| {name} | {len(self.lengths):,} | {self.p50:.0f} ms | {self.p99:.0f} ms | {self.longest:.0f} ms "
            f"| {share:.0%} | {self.worked / len(self.lengths):.1f} ms | {max(self.tasks, default=0):.0f} ms |"
        )


FRAMES_HEAD = (
    "| what | frames | p50 | p99 | longest | CPU of its thread | a frame | in its longest task |\n"
    "|---|---|---|---|---|---|---|---|"
)


class Watch:
    """Counts the frames of a page, from its next navigation on."""

    def __init__(self, page: Page):
        self._page = page
        page.add_init_script(_WATCH)
        self.session: CDPSession = page.context.new_cdp_session(page)
        self.session.send("Performance.enable")

    @contextmanager
    def frames(self, into: list[Frames]) -> Iterator[None]:
        """Adds the frames of what is done inside."""
        browser = self._page.context.browser
        assert browser
        browser.start_tracing(page=self._page, categories=["toplevel", "blink.user_timing"])
        self._page.evaluate(f"() => {{ window.benchFrames.length = 0; performance.mark('{_MARK}'); }}")
        worked, began = self.thread_seconds(), monotonic()
        yield
        seconds, worked = monotonic() - began, self.thread_seconds() - worked
        lengths = self._page.evaluate("() => window.benchFrames.slice()")
        into.append(Frames(lengths, seconds, worked * 1000, _tasks(json.loads(browser.stop_tracing()))))

    def heap_bytes(self) -> int:
        """What the page's JavaScript keeps, typed arrays included, after what it does not keep was taken away."""
        self.session.send("HeapProfiler.collectGarbage")
        usage = self.session.send("Runtime.getHeapUsage")
        return int(usage["usedSize"] + usage.get("backingStorageSize", 0))

    def thread_seconds(self) -> float:
        """CPU time of the page's own thread since it began."""
        metrics = self.session.send("Performance.getMetrics")["metrics"]
        return float(next(metric["value"] for metric in metrics if metric["name"] == "ThreadTime"))


def _tasks(trace: dict[str, Any]) -> list[float]:
    """CPU milliseconds of each task of the page's own thread, of the events Chromium traced."""
    events = trace["traceEvents"]
    # Chromium has other pages of its own; ours has left its mark.
    page = next((event["pid"], event["tid"]) for event in events if event["name"] == _MARK)
    tasks = (event for event in events if event["ph"] == "X" and (event["pid"], event["tid"]) == page)
    return [task.get("tdur", 0) / 1000 for task in tasks]


def seen(page: Page, test: str) -> float:
    """Seconds from the navigation until a test in JavaScript holds."""
    return float(page.evaluate(f"() => window.benchSeen({test})")) / 1000
