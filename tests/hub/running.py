"""A hub started as people start it, for tests."""

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

from tests.patience import PATIENCE_SECONDS
from tests.ports import free_port

GPULSE = Path(sys.executable).with_name("gpulse")


class RunningHub:
    """`gpulse up …` or `gpulse demo …` on a free port, unless one is given; a context manager."""

    def __init__(
        self,
        *arguments: str,
        environment: dict[str, str] | None = None,
        directory: Path | None = None,
        port: int = 0,
    ):
        self._stderr = b""
        # Never the folder of the person who runs the tests.
        self._data = tempfile.TemporaryDirectory()
        data = [] if "--data" in arguments else ["--data", self._data.name]
        self.process = subprocess.Popen(
            [GPULSE, *arguments, *data, "--port", str(port or free_port())],
            env=environment,
            cwd=directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # What is read ahead, nobody can wait for.
            bufsize=0,
        )
        assert self.process.stdout
        ready = select.select([self.process.stdout], [], [], PATIENCE_SECONDS)[0]
        line = self.process.stdout.readline().decode() if ready else ""
        if not line.startswith(("http://", "https://")):
            self.process.kill()
            raise AssertionError(f"no URL but {line!r}: {self.process.communicate()[1].decode()}")
        self.url = line.strip()

    def __enter__(self) -> "RunningHub":
        return self

    def __exit__(self, *_error: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        self._data.cleanup()

    def get(self, path: str, **parameters: Any) -> Any:
        answer = httpx.get(self.url + path.lstrip("/"), params=parameters, timeout=PATIENCE_SECONDS)
        answer.raise_for_status()
        return answer.json()

    def node(self, name: str) -> Any:
        return self.get(f"api/v1/nodes/{name}")

    def until(self, condition: Any, seconds: float = PATIENCE_SECONDS) -> Any:
        """Ask until the condition gives something true, and give that back."""
        end = time.monotonic() + seconds
        while True:
            try:
                found = condition()
                if found:
                    return found
                last: object = found
            except httpx.HTTPError as error:
                last = error
            if time.monotonic() > end:
                raise AssertionError(f"not within {seconds} s; last: {last!r}; it said: {self.said()}")
            time.sleep(0.1)

    def said(self) -> str:
        """What it told on stderr so far."""
        assert self.process.stderr
        os.set_blocking(self.process.stderr.fileno(), False)
        while piece := self.process.stderr.read():
            self._stderr += piece
        return self._stderr.decode()

    def end(self, number: int = signal.SIGINT, seconds: float = PATIENCE_SECONDS) -> int:
        self.process.send_signal(number)
        return self.process.wait(seconds)
