"""Real OpenSSH servers on loopback, each a node of its own: port, host key, home, login shell and fake NVML."""

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import zlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.fake_nvml import FakeNvml, h100_node
from tests.interpreters import interpreters
from tests.patience import PATIENCE_SECONDS
from tests.ports import free_port

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
PLAIN_PATH = "/usr/bin:/bin"


def oldest_python() -> str:
    """The oldest interpreter here that the probe must run on."""
    return next(iter(interpreters().values()))


class Client:
    """The person who runs the hub: a home with keys, ssh_config and known_hosts."""

    def __init__(self, folder: Path) -> None:
        self.home = folder
        self.ssh = folder / ".ssh"
        self.ssh.mkdir(parents=True)
        self.ssh.chmod(0o700)
        self.key = self.ssh / "id_ed25519"
        make_key(self.key)
        self.known_hosts = self.ssh / "known_hosts"
        self.config = self.ssh / "config"

    def know(self, *servers: "Sshd") -> None:
        with self.known_hosts.open("a", encoding="ascii") as file:
            for server in servers:
                file.write(f"[127.0.0.1]:{server.port} {server.public_host_key}\n")


def make_key(path: Path, passphrase: str = "") -> str:
    """A new key; its public half."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", path], check=True)
    return " ".join(path.with_name(path.name + ".pub").read_text("ascii").split()[:2])


class Sshd:
    """One server. `login` is what runs the command, as a login shell would; `path` is its PATH."""

    def __init__(
        self,
        folder: Path,
        client: Client,
        *,
        login: Sequence[str] = ("/bin/sh",),
        python: str | None = sys.executable,
        path: str = PLAIN_PATH,
        wrapper: str = "",
        config: str = "",
        gpus: int = 2,
        fake: bool = True,
    ) -> None:
        if SSHD is None:
            pytest.skip("sshd is missing")
        if os.geteuid() == 0:
            # sshd wants it for the part of it that has no privileges.
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        self.folder = folder
        self.home = folder / "home"
        self.bin = folder / "bin"
        for each in (self.home, self.bin):
            each.mkdir(parents=True)
        if python:
            self.program("python3", f'exec {shlex.quote(python)} "$@"')
        self.public_host_key = make_key(folder / "host_key")
        (folder / "authorized_keys").write_bytes(client.key.with_suffix(".pub").read_bytes())
        environment = {
            "HOME": str(self.home),
            "PATH": f"{self.bin}:{path}" if path else str(self.bin),
            "GPULSE_TEST_NODE": str(folder),
            "SHELL": login[0],
        }
        self.fake = FakeNvml(folder) if fake else None
        if self.fake:
            self.describe(h100_node(gpus))
            environment = self.fake.environment(environment)
        exports = "\n".join(f"export {name}={shlex.quote(value)}" for name, value in environment.items())
        wrapped = wrapper or f'exec {" ".join(map(shlex.quote, login))} -c "$SSH_ORIGINAL_COMMAND"'
        self._script(folder / "login", f"cd {shlex.quote(str(self.home))}\nunset SHLVL\n{exports}\n{wrapped}")
        self.port = free_port()
        # SHLVL: where the account's own shell is bash, it must not run this machine's start-up files.
        (folder / "sshd_config").write_text(
            f"""{config}
ListenAddress 127.0.0.1:{self.port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PrintMotd no
MaxStartups 1000
MaxSessions 1000
UseDNS no
SetEnv SHLVL=5
ForceCommand {folder}/login
""",
            "utf-8",
        )
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [SSHD or "", "-D", "-e", "-f", str(self.folder / "sshd_config")], stderr=log, start_new_session=True
            )
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            with socket.socket() as connecting:
                if connecting.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            if self.process.poll() is not None:
                raise AssertionError((self.folder / "log").read_text("utf-8"))
            time.sleep(0.02)
        raise AssertionError("sshd does not listen")

    def program(self, name: str, text: str) -> None:
        """Put a program on the node's PATH."""
        self._script(self.bin / name, text)

    def describe(self, text: str) -> None:
        """Give it these cards, with UUIDs of its own: all servers here are one machine, whose cards count once."""
        own = f"GPU-{zlib.crc32(self.folder.name.encode()):08x}-"
        self.fake.describe(re.sub("GPU-[0-9a-f]{8}-", own, text))

    def _script(self, path: Path, text: str) -> None:
        path.write_text(f"#!/bin/sh\n{text}\n", "utf-8")
        path.chmod(0o755)

    def login_processes(self) -> list[int]:
        """What its logins run: the probes and their children, and shells around them."""
        mark = f"GPULSE_TEST_NODE={self.folder}".encode()
        found = []
        for each in Path("/proc").iterdir():
            if each.name.isdigit():
                try:
                    if mark in (each / "environ").read_bytes().split(b"\0"):
                        found.append(int(each.name))
                except OSError:
                    # It ended meanwhile.
                    continue
        return found

    def everything(self) -> list[int]:
        """sshd, its connections and what their logins run."""
        assert self.process
        found = [self.process.pid]
        for parent in found:
            try:
                children = Path(f"/proc/{parent}/task/{parent}/children").read_text("ascii")
            except OSError:
                continue
            found += [int(child) for child in children.split()]
        return list(dict.fromkeys(found + self.login_processes()))

    def signal(self, number: int, pids: Sequence[int] | None = None) -> None:
        for pid in self.everything() if pids is None else pids:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue

    def stop(self) -> None:
        """End it and all that belongs to it, also what is stopped."""
        everything = self.everything()
        self.signal(signal.SIGKILL, everything)
        if self.process:
            self.process.wait(PATIENCE_SECONDS)
