"""A person's account on a machine, as an agent's service sees it: a home, programs on PATH, a crontab in a file."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gpulse.transport.bundle import make_agent
from gpulse_probe.boot import START_MARKER
from tests.patience import PATIENCE_SECONDS

# It stores what it is given, as the real one does, and says so where there is nothing.
CRONTAB = """case "$1" in
-l) [ -e {file} ] || {{ echo "no crontab for somebody" >&2; exit 1; }}; exec cat {file} ;;
-r) exec rm {file} ;;
-) exec cat > {file} ;;
*) exit 2 ;;
esac"""
# An agent that does nothing for long, and says that it is there.
IDLE = ("--stream", "--interval", "1000", "--node", "idle")


class Machine:
    """The commands of `gpulse agent` as they are on a node, without the way to it."""

    def __init__(self, folder: Path, python: str = sys.executable, enter: Sequence[str] = ()) -> None:
        self.home = folder / "home"
        self.bin = folder / "bin"
        self.crontab = folder / "crontab"
        self.python = python
        self._enter = list(enter)
        for each in (self.home, self.bin):
            each.mkdir(parents=True)
        self.program("crontab", CRONTAB.format(file=self.crontab))
        self.program("systemctl", "exit 1")

    def program(self, name: str, text: str) -> None:
        """Put a program on PATH, before all others."""
        path = self.bin / name
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n", "utf-8")
        path.chmod(0o755)

    def environment(self) -> dict[str, str]:
        return {"HOME": str(self.home), "PATH": f"{self.bin}:/usr/bin:/bin", "GPULSE_TEST_MACHINE": str(self.home)}

    def folder(self, node: str = "gpu01") -> Path:
        return self.home / ".local/share/gpulse-agent" / node

    def ask(self, word: str, node: str = "gpu01", **order: Any) -> dict[str, Any]:
        """Boot the agent's zip from memory, as over SSH, and have it answer."""
        agent = make_agent()
        text = json.dumps({"node": node, "seconds": 0.1, **order}).encode() + b"\n"
        ran = subprocess.run(
            [*self._enter, "sh", "-c", agent.command("service", word, python=self.python)],
            env=self.environment(),
            input=agent.data + text,
            capture_output=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )
        before, marker, after = ran.stdout.partition(f"\n{START_MARKER}\n".encode())
        assert marker, (before, ran.stderr)
        assert ran.stderr == b""
        return json.loads(after)

    def install(
        self,
        node: str = "gpu01",
        arguments: Sequence[str] = IDLE,
        files: dict[str, str] | None = None,
        seconds: float = 0.1,
    ) -> dict[str, Any]:
        return self.ask("install", node, arguments=list(arguments), files=files or {}, seconds=seconds)

    def cron(self) -> None:
        """Do what cron does when the time has come: run every command of the crontab once."""
        for line in self.crontab.read_text("utf-8").splitlines():
            if line.startswith("@reboot"):
                command = line.partition(" ")[2].replace("\\%", "%")
                subprocess.run(
                    [*self._enter, "sh", "-c", command], env=self.environment(), check=True, timeout=PATIENCE_SECONDS
                )

    def processes(self) -> list[int]:
        """All that was started for this account."""
        mark = f"GPULSE_TEST_MACHINE={self.home}".encode()
        found = []
        for each in Path("/proc").iterdir():
            try:
                if each.name.isdigit() and mark in (each / "environ").read_bytes().split(b"\0"):
                    found.append(int(each.name))
            except OSError:
                # It ended meanwhile.
                continue
        return found

    def end(self) -> None:
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


def until(condition: Callable[[], Any], seconds: float = PATIENCE_SECONDS) -> Any:
    """Wait until the condition gives something true, and give that back."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.05)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False
