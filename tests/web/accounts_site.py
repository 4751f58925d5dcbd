"""A hub with accounts and one node, and ways into it."""

import json
import os
import re
import subprocess
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.api.fleets import card, process, snapshot
from tests.hub.running import GPULSE
from tests.patience import PATIENCE_SECONDS
from tests.system.agents import Site
from tests.web.browsing import Seen

PASSWORD = "correct horse battery staple"  # noqa: S105 - of accounts that tests make
_PROBE = {"version": "0.1.0", "python": "3.11", "interval_seconds": 600.0, "gpu_source": "nvml"}
# What a browser says of an answer of 401, 403 or 429 is no complaint about the page.
_REFUSED = re.compile(r"error: Failed to load resource: the server responded with a status of (401|403|429) ")


class AccountsSite(Site):
    """gpu1 has a process of ann's and one of bob's. The first admin has the name of whoever runs the tests."""

    def __init__(self, folder: Path, anonymous: str = "none"):
        (folder / "gpulse.toml").write_text(f'[access]\nanonymous = "{anonymous}"\n')
        super().__init__(folder)
        cards = [card(f"GPU-{index}", index, memory_used_bytes=40 << 30, utilization_ratio=0.9) for index in (0, 1)]
        processes = [process(101, "ann", "GPU-0", "python mine.py"), process(102, "bob", "GPU-1", "python other.py")]
        answer = self.post(self.token("gpu1"), snapshot("gpu1", cards, processes, probe=_PROBE))
        assert answer.status_code == 200, answer.text
        assert self.hub.process.stdout
        words, _, self.first_link = self.hub.process.stdout.readline().decode().strip().partition(": ")
        assert words == "Sign in as admin"

    def user(self, *words: str, told: str = "") -> str:
        """What `gpulse user …` says."""
        ran = subprocess.run(
            [GPULSE, "user", *words, "--data", self.data],
            env={**os.environ, "HOME": str(self.folder)},
            input=told,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.strip()

    def add(self, name: str, role: str = "viewer") -> None:
        self.user("add", name, "--role", role, "--password-stdin", told=PASSWORD + "\n")

    def link(self, name: str) -> str:
        """Where it says it is has no port of its own: tests have a free one."""
        return f"{self.url}#/sign-in/" + self.user("link", name).rpartition("/")[2]


def is_in(page: Page) -> None:
    """Somebody is signed in, and sees the fleet."""
    expect(page.get_by_role("button", name="Pause live data")).to_contain_text("Live")
    expect(page.get_by_role("button", name="Your account")).to_be_visible()


def kept_key(page: Page) -> str | None:
    """The page key, as the page keeps it beside the cookie."""
    text = page.evaluate("(hub) => localStorage.getItem(`gpulse.key ${hub}`)", page.url.partition("#")[0])
    return None if text is None else json.loads(text)


def sign_in(page: Page, name: str | None, password: str = PASSWORD) -> None:
    """By keyboard alone; without a name it is there already."""
    if name is not None:
        expect(page.get_by_label("Name", exact=True)).to_be_focused()
        page.keyboard.type(name)
        page.keyboard.press("Tab")
    expect(page.get_by_label("Password", exact=True)).to_be_focused()
    page.keyboard.type(password)
    page.keyboard.press("Enter")


def enter(seen: Seen, link: str, path: str = "#/") -> Page:
    """In by a link, then to a page."""
    seen.page.goto(link)
    is_in(seen.page)
    seen.page.goto(seen.url + path)
    return seen.page


def complaints(seen: Seen) -> list[str]:
    """All but what browsers say of every refusal."""
    return [one for one in seen.complaints if not _REFUSED.match(one)]
