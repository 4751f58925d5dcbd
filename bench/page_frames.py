"""Watches a page from inside: when something is first seen, and how long each of its frames takes."""

from dataclasses import dataclass
from statistics import quantiles

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


@dataclass
class Frames:
    """How long the frames of some seconds took, and what the page's own thread worked for them, in milliseconds."""

    lengths: list[float]
    worked: float

    def __add__(self, other: "Frames") -> "Frames":
        return Frames(self.lengths + other.lengths, self.worked + other.worked)

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
        mean = self.worked / len(self.lengths)
        return (
            f"| {name} | {len(self.lengths):,} | {self.p50:.0f} ms | {self.p99:.0f} ms | {self.longest:.0f} ms "
            f"| {mean:.1f} ms |"
        )


FRAMES_HEAD = "| what | frames | p50 | p99 | longest | CPU a frame |\n|---|---|---|---|---|---|"


class Watch:
    """Counts the frames of a page, from its next navigation on."""

    def __init__(self, page: Page):
        self._page = page
        self._worked = 0.0
        page.add_init_script(_WATCH)
        self.session: CDPSession = page.context.new_cdp_session(page)
        self.session.send("Performance.enable")

    def begin(self) -> None:
        self._page.evaluate("() => { window.benchFrames.length = 0; }")
        self._worked = self._thread_seconds()

    def taken(self) -> Frames:
        """Those since begin()."""
        worked = self._thread_seconds() - self._worked
        return Frames(self._page.evaluate("() => window.benchFrames.slice()"), worked * 1000)

    def heap_bytes(self) -> int:
        """What the page's JavaScript keeps, after what it does not keep was taken away."""
        self.session.send("HeapProfiler.collectGarbage")
        return int(self.session.send("Runtime.getHeapUsage")["usedSize"])

    def _thread_seconds(self) -> float:
        metrics = self.session.send("Performance.getMetrics")["metrics"]
        return float(next(metric["value"] for metric in metrics if metric["name"] == "ThreadTime"))


def seen(page: Page, test: str) -> float:
    """Seconds from the navigation until a test in JavaScript holds."""
    return float(page.evaluate(f"() => window.benchSeen({test})")) / 1000
