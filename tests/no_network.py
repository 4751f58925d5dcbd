"""A machine without a network, for one test: a namespace in which there is loopback and nothing else."""

import os
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

import pytest

from tests.conftest import CANNOT
from tests.patience import PATIENCE_SECONDS

# By hand, as not every machine has iproute2: SIOCSIFFLAGS with IFF_UP.
_LOOPBACK_UP = """import fcntl, socket, struct, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as door:
    fcntl.ioctl(door, 0x8914, struct.pack("16sh14x", b"lo", 1))
print("ready", flush=True)
time.sleep(3600)
"""


class NoNetwork:
    """A context manager; `enter` goes before a command that is to run in it."""

    def __init__(self) -> None:
        # Root needs no user namespace, and where one is not allowed may still make one of networks.
        own = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        self._holder = subprocess.Popen(
            ["unshare", *own, "--net", sys.executable, "-c", _LOOPBACK_UP],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._holder.stdout
        self.possible = self._holder.stdout.readline() == "ready\n"
        users = ["--user", "--preserve-credentials"] if own else []
        self.enter = ["nsenter", "--target", str(self._holder.pid), *users, "--net"]

    def __enter__(self) -> "NoNetwork":
        if not self.possible:
            why = self._holder.communicate()[1].strip().splitlines()[-1:]
            pytest.skip(f"{CANNOT}make a network namespace: {' '.join(why)}")
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._holder.kill()
        self._holder.communicate()

    def run(self, *command: str | Path, environment: dict[str, str] | None = None) -> str:
        """What the command prints; it must succeed."""
        done = subprocess.run(
            [*self.enter, *command], env=environment, capture_output=True, text=True, timeout=240, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def until_it_answers(self, url: str, seconds: float = PATIENCE_SECONDS) -> str:
        """What is at this address in there."""
        end = time.monotonic() + seconds
        while True:
            done = subprocess.run(
                [*self.enter, "curl", "--silent", "--show-error", "--fail", "--max-time", "10", url],
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode == 0:
                return done.stdout
            if time.monotonic() > end:
                raise AssertionError(f"{url} does not answer: {done.stderr}")
            time.sleep(0.1)
