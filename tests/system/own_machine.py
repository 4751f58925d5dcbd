"""A view of this machine for one test, in a mount namespace: /run, the crontabs and systemd's state are its own.

In it a person's real systemd can run, which a container without systemd as its first process otherwise refuses.
"""

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.conftest import CANNOT
from tests.patience import PATIENCE_SECONDS

MANAGERS = ("/usr/lib/systemd/systemd", "/lib/systemd/systemd")
_SET_UP = """set -e
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system /run/user
mkdir -m 700 /run/user/$(id -u)
mount -t tmpfs tmpfs /var/lib/systemd
if [ -d /var/spool/cron/crontabs ]; then mount -t tmpfs -o mode=700 tmpfs /var/spool/cron/crontabs; fi
mount -t tmpfs tmpfs /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mkdir {cgroup}
echo ready
exec sleep infinity
"""


class OwnMachine:
    """A context manager; `enter` goes before a command that is to run in it."""

    def __init__(self) -> None:
        self.cgroup = f"/sys/fs/cgroup/gpulse-test-{os.getpid()}-{time.monotonic_ns()}"
        self._holder = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", _SET_UP.format(cgroup=self.cgroup)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._holder.stdout
        self.possible = self._holder.stdout.readline() == "ready\n"
        self.enter = ["nsenter", "--target", str(self._holder.pid), "--mount"]

    def __enter__(self) -> "OwnMachine":
        if not self.possible:
            why = self._holder.communicate()[1].strip()
            pytest.skip(f"{CANNOT}make a mount namespace: {why}")
        return self

    def __exit__(self, *_error: object) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            end = time.monotonic() + 3
            while (left := self.processes()) and time.monotonic() < end:
                for pid in left:
                    try:
                        os.kill(pid, number)
                    except ProcessLookupError:
                        continue
                time.sleep(0.05)
        self.run("find", self.cgroup, "-depth", "-type", "d", "-exec", "rmdir", "{}", ";")
        self._holder.kill()
        self._holder.communicate()

    def run(self, *command: str, check: bool = False) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.enter, *command], capture_output=True, text=True, check=check, timeout=PATIENCE_SECONDS
        )

    def start(self, *command: str, environment: dict[str, str] | None = None, log: Path) -> int:
        """A program that ends with the machine; its pid."""
        into = f'echo $$ > {self.cgroup}/cgroup.procs; exec "$@"'
        with log.open("ab") as file:
            process = subprocess.Popen(
                [*self.enter, "sh", "-c", into, "sh", *command],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        return process.pid

    def start_systemd(self, home: Path, lingers: bool) -> None:
        """The person's own systemd, as PAM would have started it."""
        manager = next((path for path in MANAGERS if Path(path).exists()), None)
        if manager is None:
            pytest.skip("systemd is missing")
        if lingers:
            user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
            self.run("mkdir", "-p", "/var/lib/systemd/linger", check=True)
            self.run("touch", f"/var/lib/systemd/linger/{user}", check=True)
        runtime = f"/run/user/{os.getuid()}"
        environment = {
            "HOME": str(home),
            "PATH": "/usr/bin:/bin",
            "XDG_RUNTIME_DIR": runtime,
            # Without the services that happen to be installed here.
            "SYSTEMD_UNIT_PATH": f"{home}/.config/systemd/user:/usr/lib/systemd/user",
        }
        log = home / "systemd.log"
        self.start(manager, "--user", "--log-target=console", environment=environment, log=log)
        end = time.monotonic() + 15
        state = ["env", f"XDG_RUNTIME_DIR={runtime}", "systemctl", "--user", "is-system-running"]
        while self.run(*state).stdout.strip() not in ("running", "degraded"):
            if time.monotonic() > end:
                pytest.skip(f"{CANNOT}run a person's systemd: {log.read_text('utf-8', 'replace')[-500:]}")
            time.sleep(0.05)

    def systemctl(self, *words: str) -> str:
        runtime = f"XDG_RUNTIME_DIR=/run/user/{os.getuid()}"
        return self.run("env", runtime, "systemctl", "--user", *words).stdout.strip()

    def processes(self, part: Sequence[str] = ()) -> list[int]:
        """All that was started in it by start(), or by its systemd."""
        found = self.run("find", "/".join([self.cgroup, *part]), "-name", "cgroup.procs", "-exec", "cat", "{}", ";")
        return [int(pid) for pid in found.stdout.split()]
