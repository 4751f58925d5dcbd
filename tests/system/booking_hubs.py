"""Hubs that are up in no time: most of what a start takes is to load the modules, and these have them loaded.

As a program it reads lines with the arguments of `gpulse`, and runs it with each in a child process. It says the number
of the child, then what the child prints, and at last by which signal it ended.
"""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

ROOT = Path(__file__).resolve().parents[2]
_SECONDS = 60.0


class BookingHubs:
    """One hub after the other, with the same arguments, in the same folder; a context manager."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._arguments = "\t".join((*arguments, "--port", "0"))
        self.log = folder / "hubs.log"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.system.booking_hubs", str(folder)],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        self._running: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._running is not None:
            os.kill(self._running, signal.SIGKILL)
        self._process.communicate(timeout=_SECONDS)

    def start(self) -> str:
        """The URL it answers at."""
        assert self._process.stdin is not None
        self._process.stdin.write(self._arguments.encode() + b"\n")
        self._process.stdin.flush()
        self._running = int(self._line())
        url = self._line()
        assert url.startswith("http://"), (url, self.log.read_text("utf-8", "replace"))
        return url

    def kill(self) -> None:
        """kill -9, and it is gone."""
        assert self._running is not None
        os.kill(self._running, signal.SIGKILL)
        ended = self._line()
        self._running = None
        assert ended == f"ended by {int(signal.SIGKILL)}", (ended, self.log.read_text("utf-8", "replace"))

    def _line(self) -> str:
        assert self._process.stdout is not None
        ready = select.select([self._process.stdout], [], [], _SECONDS)[0]
        assert ready, "nothing was said"
        # Not more than one line: what is read ahead, nobody can wait for.
        line = b""
        while not line.endswith(b"\n"):
            piece = os.read(self._process.stdout.fileno(), 1)
            assert piece, self.log.read_text("utf-8", "replace")
            line += piece
        return line.decode().strip()


def _say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def _main(folder: str) -> None:
    # All that a hub loads.
    import gpulse.cli.hub_process  # noqa: F401
    from gpulse.cli import main

    os.chdir(folder)
    while line := sys.stdin.readline():
        child = os.fork()
        if not child:
            _say(str(os.getpid()))
            sys.argv = ["gpulse", *line.strip().split("\t")]
            main()
            os._exit(0)
        _say(f"ended by {os.WTERMSIG(os.waitpid(child, 0)[1])}")


if __name__ == "__main__":
    _main(sys.argv[1])
