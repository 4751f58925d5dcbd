"""An agent started as people start it, whose words a test reads; and the parts of one, to be stepped by hand."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from gpulse_probe import hub_address
from gpulse_probe.backlog import Backlog
from gpulse_probe.outlets.push import Push
from gpulse_probe.tokens import Tokens
from gpulse_probe.trust import Trust
from gpulse_probe.uplink import Uplink
from tests.patience import PATIENCE_SECONDS

SOURCES = Path(__file__).resolve().parents[2] / "src"
NODE_TOKEN = f"gpn_{'0' * 12}_{'1' * 48}"
OTHER_TOKEN = f"gpn_{'0' * 12}_{'2' * 48}"
JOIN_TOKEN = f"gpj_{'a' * 12}_{'3' * 48}"


class RunningAgent:
    """`gpulse_probe push`, ten lines a second; a context manager."""

    def __init__(
        self,
        folder: Path,
        hub: str,
        *options: str,
        python: str = sys.executable,
        program: list[str] | None = None,
        token: str | None = NODE_TOKEN,
        environment: Mapping[str, str] | None = None,
        default_folder: bool = False,
    ):
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self._log = folder / "log"
        full = {**os.environ, "PYTHONPATH": str(SOURCES), **(environment or {})}
        if token is not None:
            full["GPULSE_TOKEN"] = token
        command = [python, *(program or ["-m", "gpulse_probe"]), "push", "--hub", hub, "--interval", "0.1"]
        if not default_folder:
            command += ["--folder", str(folder)]
        with self._log.open("ab") as log:
            self.process = subprocess.Popen([*command, "--node", "n1", *options], env=full, stderr=log)

    def __enter__(self) -> "RunningAgent":
        return self

    def __exit__(self, *_error: object) -> None:
        self.process.kill()
        self.process.wait()

    @property
    def words(self) -> str:
        return self._log.read_text("utf-8")

    def says(self, words: str, seconds: float = PATIENCE_SECONDS) -> str:
        """Wait until it has said so."""
        return until(lambda: words in self.words and self.words, seconds, lambda: f"{words!r} is not in: {self.words}")

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_SECONDS)


def until(condition: Callable[[], Any], seconds: float = PATIENCE_SECONDS, complaint: Callable[[], str] = str) -> Any:
    """Wait for a condition; what it gave."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < end, complaint()
        time.sleep(0.01)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


class Words(list[str]):
    """A Log whose lines are kept."""

    def say(self, words: str) -> None:
        if not self or self[-1] != words:
            self.append(words)


def make_push(
    folder: Path, url: str, backlog: Backlog | None = None, ca: str | None = None, fingerprint: str | None = None
) -> tuple[Push, Words]:
    """A Push whose ticks are made by hand."""
    words = Words()
    trusted = Trust(ca, fingerprint)
    uplink = Uplink(hub_address.read(url), Tokens(str(folder), None, NODE_TOKEN), "n1", words, trusted)
    return Push(uplink, words, backlog=backlog), words


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long it was to wait each time before it tries again."""
    asked_for: list[float] = []
    pause = Uplink._pause

    def noting(uplink: Uplink, seconds: float) -> None:
        asked_for.append(seconds)
        before = time.monotonic()
        pause(uplink, seconds)
        assert before + seconds <= uplink._begin_at <= time.monotonic() + seconds

    monkeypatch.setattr(Uplink, "_pause", noting)
    return asked_for


def go_on(push: Push, condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Let it go on until a condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        push.wait_until(time.monotonic() + 0.02)
