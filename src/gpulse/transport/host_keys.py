"""Host keys as ssh knows them: user and system known_hosts files, read when they change, appended to on wish."""

import fcntl
import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import asyncssh

Verdict = Literal["unknown", "changed"]
_log = logging.getLogger(__name__)
_Stamp = tuple[int, int, int]


class HostKeys:
    """The lines of all known_hosts files that were ever asked for; a file is read again when it has changed."""

    def __init__(self) -> None:
        self._files: dict[Path, tuple[_Stamp, asyncssh.SSHKnownHosts]] = {}

    def match(self, files: Iterable[Path], host: str, port: int | None) -> tuple[list[asyncssh.SSHKey], ...]:
        """What the files say of a host, as asyncssh wants it: keys, authorities' keys, revoked keys.

        Addresses are left out, as by ssh: a key that is known by name must not be vouched for by an address
        that another machine had before.
        """
        found: tuple[list[asyncssh.SSHKey], ...] = ([], [], [])
        for file in files:
            known = self._read(file)
            if known:
                keys, authorities, revoked = known.match(host, "", port)[:3]
                for kept, more in zip(found, (keys, authorities, revoked), strict=True):
                    kept.extend(more)
        return found

    def verdict(self, files: Iterable[Path], host: str, port: int | None, key: asyncssh.SSHKey) -> Verdict:
        """Of a key that is not trusted: whether the host has none, or another."""
        # Only by its full name: asyncssh also looks without the port, where another sshd may answer.
        known = self.match(files, f"[{host}]:{port}" if port else host, None)[0]
        return "changed" if key not in known and known else "unknown"

    def _read(self, file: Path) -> asyncssh.SSHKnownHosts | None:
        try:
            status = file.stat()
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
            if file in self._files and self._files[file][0] == stamp:
                return self._files[file][1]
            text = file.read_text("utf-8", "replace")
        except FileNotFoundError:
            return None
        except OSError as problem:
            _log.warning("%s cannot be read: %s", file, problem.strerror or problem)
            return None
        known = asyncssh.SSHKnownHosts()
        for number, line in enumerate(text.splitlines(), 1):
            try:
                known.load(line)
            except ValueError as problem:
                # ssh goes on after a line that it cannot read, too.
                _log.warning("%s line %d: %s", file, number, problem)
        self._files[file] = (stamp, known)
        return known


def fingerprint(key: asyncssh.SSHKey) -> str:
    return f"{key.get_algorithm()} {key.get_fingerprint()}"


def add(file: Path, host: str, key: asyncssh.SSHKey) -> None:
    """Append a host's key, in one write under a lock: several hubs may do so at once."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    line = f"{host} ".encode() + key.export_public_key("openssh").split(b"\n")[0].strip() + b"\n"
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            line = b"\n" + line
        os.write(descriptor, line)
    finally:
        os.close(descriptor)
