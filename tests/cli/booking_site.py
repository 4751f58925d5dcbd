"""A hub with reservations on a socket, and the commands as its people run them, also on a terminal."""

import os
import pty
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from tests.api.booking import Site
from tests.api.serving import served
from tests.cli.hub import GPULSE, env, gpulse
from tests.patience import PATIENCE_SECONDS

ZONE = "Europe/Berlin"


class Running:
    """A site on a socket, and the commands as its people run them; its clock stands still until it is moved."""

    def __init__(self, site: Site, port: int):
        self.site = site
        self.url = f"http://127.0.0.1:{port}"
        self._keys = {who: site.people.key(who) for who in ("viewer", "member", "admin")}

    def settings(self, who: str | None) -> dict[str, str]:
        return {"TZ": ZONE} if who is None else {"GPULSE_KEY": self._keys[who], "TZ": ZONE}

    def run(self, *words: str, who: str | None = "member") -> "subprocess.CompletedProcess[str]":
        return gpulse(*words, hub=self.url, **self.settings(who))

    def start(self, *words: str) -> "subprocess.Popen[str]":
        environment = env(self.url, **self.settings("member"))
        return subprocess.Popen(
            [*GPULSE, *words], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def on_a_terminal(self, *words: str) -> "OnATerminal":
        return OnATerminal([*GPULSE, *words], env(self.url, TERM="dumb", **self.settings("member")))

    def reserved(self) -> list[tuple[str, str, bool]]:
        now = self.site.clock.now
        return [(one.person, " ".join(map(str, one.places)), one.hold) for one in self.site.table.current(now)]


class OnATerminal:
    """A command that somebody answers; a context manager."""

    def __init__(self, command: list[str], environment: dict[str, str]):
        self._own, theirs = pty.openpty()
        try:
            self._process = subprocess.Popen(command, env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
        finally:
            os.close(theirs)
        self._said = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._own)

    def until(self, words: str, seconds: float = PATIENCE_SECONDS) -> str:
        """What it has said since the last answer, up to these words."""
        end = time.monotonic() + seconds
        while words not in self._said:
            self._read(end)
        before, _, self._said = self._said.partition(words)
        return before

    def answer(self, line: str) -> None:
        os.write(self._own, line.encode() + b"\n")

    def ended(self, seconds: float = 60.0) -> tuple[int, str]:
        """Its exit code, and what it said after the last answer."""
        end = time.monotonic() + seconds
        while self._read(end):
            pass
        return self._process.wait(seconds), self._said

    def _read(self, end: float) -> bool:
        """False where it says nothing any more."""
        ready = select.select([self._own], [], [], max(0.0, end - time.monotonic()))[0]
        assert ready, f"it waits, after {self._said!r}"
        try:
            piece = os.read(self._own, 65536)
        except OSError:
            # So a terminal tells that nobody is there any more.
            return False
        self._said += piece.decode().replace("\r\n", "\n")
        return bool(piece)


@contextmanager
def running(folder: Path, **settings: Any) -> Iterator[Running]:
    """The settings are those of [reservations]."""
    site = Site(folder, now=time.time(), **settings)
    try:
        with served(site.app) as port:
            yield Running(site, port)
    finally:
        site.close()
