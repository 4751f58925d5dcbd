"""Makes the pictures of README.md and docs/ (docs/images/) from simulated clusters: `python -m scripts.screenshots`."""

import argparse
import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, Page, StorageState, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
# People do not wait for pictures: all of them together, as they are loaded with the README.
MOST_BYTES = 1_000_000
# So long the lines of ten minutes take to be full.
WARM_SECONDS = 600
# What is asked every five seconds has come then.
SETTLE_MS = 7000
GPULSE = Path(sys.executable).with_name("gpulse")
LAB, LARGE = "lab", "large"
NODES = {LAB: 16, LARGE: 1250}
SEED = 1
# Colours of a picture that stay as they are.
_OFTEN = 64
# What is there only when a page has its data.
LOADED = "main :is(.panels li, .uplot, tbody tr, [role=grid] [role=row], .two form)"


class Shot(NamedTuple):
    """A picture. In `path`, {node}, {gpu} and {person} stand for some that have much to show."""

    name: str
    path: str
    width: int = 1440
    height: int = 900
    theme: str = "light"
    hub: str = LAB
    # What is pressed before, and the part of the page that is taken: selectors; none: the whole window.
    press: str | None = None
    part: str | None = None
    # Phones have twice the pixels.
    scale: float = 1


SHOTS = (
    Shot("fleet-light", "#/?view=cards"),
    Shot("fleet-dark", "#/?view=cards", theme="dark"),
    Shot("phone", "#/?view=cards", 360, 740, scale=2),
    Shot("panels", "#/?view=cards", part="main .panels"),
    Shot("quick-bar", "#/?view=cards", part="main nav[aria-label=Nodes]"),
    Shot("filter", "#/?view=cards&q=model:A100 free", height=640),
    Shot("details", "#/?view=cards", press="article li[data-slot]", part="#gpu-details"),
    Shot("table", "#/?view=table&sort=person", part="[aria-label='Table of the fleet']"),
    Shot("map", "#/?view=map", hub=LARGE),
    Shot("map-people", "#/?view=map&colour=person", theme="dark", hub=LARGE, part="[aria-label='Map of the fleet']"),
    Shot("node", "#/nodes/{node}"),
    Shot("gpu", "#/gpus/{gpu}"),
    Shot("people", "#/people", height=640),
    Shot("person", "#/people/{person}", height=640),
    Shot("reservations", "#/reservations"),
    Shot("kiosk", "#/?kiosk=0&view=cards", 1920, 1080, theme="dark"),
    Shot("yellow", "#/?view=cards", height=560, theme="yellow"),
    Shot("blue", "#/?view=cards", height=560, theme="blue"),
    Shot("tell-me", "#/?view=cards&q=model:H100", press="button[popovertarget=tell-me]", part="#tell-me"),
)


class Cluster(NamedTuple):
    """A hub, and the folder of its accounts."""

    url: str
    data: str


class Stand(NamedTuple):
    """A hub, and what there is to show on it."""

    url: str
    node: str
    gpu: str
    person: str


@contextlib.contextmanager
def cluster(nodes: int) -> Iterator[Cluster]:
    """A simulated one, which ends with the block."""
    with tempfile.TemporaryDirectory() as data:
        words = [GPULSE, "demo", "--nodes", str(nodes), "--seed", str(SEED), "--port", "0", "--data", data]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as hub:  # noqa: S603 - our own words
            try:
                # Its first line; what it says afterwards is nothing to us.
                yield Cluster(next(iter(hub.stdout or ())).strip(), data)
            finally:
                hub.terminate()


def asked(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310 # a hub of our own, by http
        return json.load(answer)


def stand(url: str) -> Stand:
    """A node on which several people work, the busiest of its GPUs, and somebody with GPUs on several nodes."""
    nodes = [node for node in asked(f"{url}api/v1/nodes?limit=50")["items"] if node["state"] == "up" and node["gpus"]]

    def life(node: dict[str, Any]) -> tuple[int, int]:
        people = {use["person"] for gpu in node["gpus"] for use in gpu.get("people") or []}
        return len(people), sum(gpu["state"] == "busy" for gpu in node["gpus"])

    node = max(nodes, key=life)
    gpu = max(node["gpus"], key=lambda one: one.get("utilization_ratio") or 0)
    people = asked(f"{url}api/v1/users")["items"]
    person = max(people, key=lambda one: (2 <= len(one["nodes"]) <= 4, one["gpus"]))
    return Stand(url, node["name"], gpu["id"], person["person"])


def signed_in(browser: Browser, on: Stand, data: str) -> StorageState:
    """What a browser keeps of that person, who gets an account for it."""

    def user(*words: str) -> str:
        command = [GPULSE, "user", *words, "--data", data]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout  # noqa: S603 - our own words

    user("add", on.person, "--role", "member", "--no-password")
    link = user("link", on.person, "--hub", on.url).strip()
    context = browser.new_context()
    page = context.new_page()
    page.goto(link)
    page.get_by_role("button", name="Your account").wait_for(timeout=60_000)
    kept = context.storage_state()
    context.close()
    return kept


def take(
    browser: Browser,
    shot: Shot,
    on: Stand,
    folder: Path,
    settle_ms: float = SETTLE_MS,
    kept: StorageState | None = None,
) -> Path:
    context = browser.new_context(
        storage_state=kept,
        viewport={"width": shot.width, "height": shot.height},
        device_scale_factor=shot.scale,
        has_touch=shot.scale > 1,
        reduced_motion="reduce",
        color_scheme="dark" if shot.theme in ("dark", "blue") else "light",
    )
    chosen = {"gpulse.theme": shot.theme, "gpulse.me": on.person}
    script = "".join(f"localStorage.setItem({json.dumps(k)}, {json.dumps(json.dumps(v))});" for k, v in chosen.items())
    context.add_init_script(script)
    page = context.new_page()
    page.goto(on.url + shot.path.format(node=on.node, gpu=quote(on.gpu, safe=""), person=on.person))
    page.locator(LOADED).first.wait_for(timeout=60_000)
    page.wait_for_timeout(settle_ms)
    file = folder / f"{shot.name}.png"
    picture(page, shot, file, settle_ms)
    context.close()
    return file


def picture(page: Page, shot: Shot, file: Path, settle_ms: float) -> None:
    if shot.press is not None:
        page.locator(shot.press).first.click()
        page.wait_for_timeout(settle_ms)
    if shot.part is None:
        page.screenshot(path=file)
    else:
        page.locator(shot.part).first.screenshot(path=file)
    with Image.open(file) as full:
        small = with_palette(full.convert("RGB"))
    small.save(file, optimize=True)


def with_palette(full: Image.Image) -> Image.Image:
    """A third as large. What is most of the picture keeps its colours, or grey grounds would be green; the others are
    chosen so that the red of a small mark is not lost."""
    pixels = np.asarray(full).reshape(-1, 3)
    colours, where, counts = np.unique(pixels, axis=0, return_inverse=True, return_counts=True)
    often = colours[np.argsort(counts)[::-1][:_OFTEN]]
    others = full.quantize(256 - len(often), Image.Quantize.MAXCOVERAGE).getpalette() or []
    palette = np.concatenate([often, np.array(others, np.uint8).reshape(-1, 3)])
    distances = ((colours[:, None].astype(np.int32) - palette[None].astype(np.int32)) ** 2).sum(axis=2)
    nearest = distances.argmin(axis=1).astype(np.uint8)
    small = Image.fromarray(nearest[where].reshape(full.height, full.width), "P")
    small.putpalette(palette.tobytes())
    return small


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.screenshots", description=__doc__)
    parser.add_argument("--to", type=Path, default=IMAGES, metavar="DIR", help="where to (default: docs/images)")
    parser.add_argument("--warm", type=float, default=WARM_SECONDS, metavar="SECONDS", help="how long to wait first")
    parser.add_argument("--only", nargs="*", metavar="NAME", help="these pictures")
    options = parser.parse_args(arguments)
    chromium = shutil.which("chromium")
    if chromium is None:
        print("chromium is missing; on Debian: apt-get install -y --no-install-recommends chromium", file=sys.stderr)
        return 1
    wanted = [shot for shot in SHOTS if options.only is None or shot.name in options.only]
    options.to.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        hubs = {hub: stack.enter_context(cluster(NODES[hub])) for hub in sorted({shot.hub for shot in wanted})}
        print(f"waiting {options.warm:.0f} s for the lines of the last minutes", flush=True)
        time.sleep(options.warm)
        stands = {name: stand(hub.url) for name, hub in hubs.items()}
        playwright = stack.enter_context(sync_playwright())
        flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=chromium, args=flags)
        people = {name: signed_in(browser, on, hubs[name].data) for name, on in stands.items()}
        for shot in wanted:
            file = take(browser, shot, stands[shot.hub], options.to, kept=people[shot.hub])
            print(f"{file}: {file.stat().st_size / 1000:.0f} kB", flush=True)
    size = sum(path.stat().st_size for path in options.to.glob("*.png"))
    print(f"together {size / 1000:.0f} kB")
    if size > MOST_BYTES:
        print(f"more than the {MOST_BYTES / 1000:.0f} kB that pictures may have: make some smaller", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
