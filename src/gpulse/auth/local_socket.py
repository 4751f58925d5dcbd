"""The UNIX socket of a running hub: local commands reach it there, and no secret is needed.

A port of loopback belongs to whoever takes it first, so nothing secret is sent to one. The socket is for its owner
alone, and both ends ask the kernel who is at the other end before they say a word. A file in the data folder says
where the socket of the hub at a port is.
"""

import contextlib
import hashlib
import ipaddress
import os
import secrets
import socket
import stat
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from gpulse.errors import StoreError

_RECORD = "local-"
# Where older hubs kept a key that local commands sent over TCP.
_OLD_KEY = "cli-key-"
_PORTS = {"http": 80, "https": 443}
# The kernel takes 107; some systems take less.
LONGEST_PATH = 100
_CREDENTIALS = struct.Struct("3i")
_BACKLOG = 128


class _Record(NamedTuple):
    path: Path
    url: str


@contextmanager
def listening(folder: Path, url: str) -> Iterator[socket.socket]:
    """Listen for local commands while the block runs. `url` is where the hub listens over TCP."""
    with contextlib.ExitStack() as stack:
        try:
            listener, path = _bound(folder, url, stack)
            text = f"{path}\n{url}\n"
            _write(place(folder, url), text)
        except OSError as error:
            raise StoreError(
                f"{place(folder, url)} cannot be written: {error.strerror}; give this user the right to write there, or"
                " name another folder with --data"
            ) from error
        (folder / f"{_OLD_KEY}{_port(url)}").unlink(missing_ok=True)
        try:
            yield listener
        finally:
            # Another hub on the same folder, at the same port of another address, may have replaced it.
            if _text(place(folder, url)) == text:
                place(folder, url).unlink(missing_ok=True)


def connect(folder: Path, url: str) -> socket.socket | None:
    """Connect to the hub of this folder that serves `url`; None if there is none, or if it is somebody else's."""
    record = _record(place(folder, url))
    if record is None or _port(record.url) != _port(url) or not _serves_loopback(record.url):
        return None
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # The hub may have ended without removing its record.
    with contextlib.suppress(OSError):
        connection.connect(os.fspath(record.path))
        if peer_uid(connection) in _trusted(folder):
            return connection
    connection.close()
    return None


def is_own(connection: socket.socket) -> bool:
    """Whether the process at the other end runs as the hub's own user, or as root."""
    return peer_uid(connection) in (os.geteuid(), 0)


def peer_uid(connection: socket.socket) -> int:
    """Return the user of the process at the other end, as the kernel knows it."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(raw)[1])


def address(folder: Path) -> str | None:
    """Return where the hub on this folder listens over TCP: the one started last, None if none runs."""
    started = sorted((made, path) for path in folder.glob(f"{_RECORD}*") if (made := _made_at(path)) is not None)
    found = [record.url for _, path in reversed(started) if (record := _record(path)) is not None]
    return found[0] if found else None


def place(folder: Path, url: str) -> Path:
    """Return the file that says where the socket of the hub at `url` is."""
    return folder / f"{_RECORD}{_port(url)}"


def has_old_key(folder: Path, url: str) -> bool:
    """Whether a hub from before there was a socket runs, or ran, on this folder."""
    return (folder / f"{_OLD_KEY}{_port(url)}").exists()


def _bound(folder: Path, url: str, stack: contextlib.ExitStack) -> tuple[socket.socket, Path]:
    """Bind in the first folder that can hold a socket; folders on a network often can't."""
    trouble = OSError(0, "no folder can hold a socket")
    name = f"hub-{_port(url)}-{hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:8]}"
    for where in _folders(folder, stack):
        path, new = where / f"{name}.sock", where / f".{name}-{secrets.token_hex(3)}"
        if len(os.fsencode(new)) > LONGEST_PATH:
            continue
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(os.fspath(new))
            # Nobody can connect before listen().
            new.chmod(0o600)
            listener.listen(_BACKLOG)
            new.replace(path)
            own = path.stat().st_ino
        except OSError as error:
            listener.close()
            new.unlink(missing_ok=True)
            trouble = error
            continue
        stack.callback(_remove, path, own)
        stack.callback(listener.close)
        return listener, path
    raise trouble


def _folders(data: Path, stack: contextlib.ExitStack) -> Iterator[Path]:
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime.startswith("/") and _is_private(Path(runtime)):
        own = Path(runtime) / "gpulse"
        with contextlib.suppress(OSError):
            own.mkdir(mode=0o700, exist_ok=True)
            yield own
    yield data
    for base in dict.fromkeys((tempfile.gettempdir(), "/tmp")):  # noqa: S108 - a new folder in it, for its owner alone
        with contextlib.suppress(OSError):
            made = Path(tempfile.mkdtemp(prefix="gpulse-", dir=base))
            stack.callback(_remove_folder, made)
            yield made


def _is_private(folder: Path) -> bool:
    try:
        found = folder.stat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022


def _trusted(folder: Path) -> tuple[int, ...]:
    """Return the users whose hub a command may talk to: its own and root; for root also the folder's owner."""
    own = os.geteuid()
    return (own, 0) if own else (0, folder.stat().st_uid)


def _serves_loopback(url: str) -> bool:
    """Whether a hub that listens at `url` is the one that loopback addresses reach."""
    try:
        host = ipaddress.ip_address((urlsplit(url).hostname or "").partition("%")[0])
    except ValueError:
        return False
    return host.is_loopback or host.is_unspecified


def _record(path: Path) -> _Record | None:
    lines = (_text(path) or "").splitlines()
    return _Record(Path(lines[0]), lines[1]) if len(lines) == 2 and lines[0].startswith("/") else None


def _made_at(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        # Its hub has ended this moment.
        return None


def _port(url: str) -> int | None:
    parts = urlsplit(url)
    return parts.port or _PORTS.get(parts.scheme)


def _text(path: Path) -> str | None:
    try:
        return os.fsdecode(path.read_bytes())
    except (FileNotFoundError, PermissionError, NotADirectoryError, IsADirectoryError):
        # Another person's hub, or none that runs.
        return None


def _write(path: Path, text: str) -> None:
    """Write it whole, and for its owner alone from the first moment."""
    new = path.with_name(f".{path.name}-{secrets.token_hex(6)}")
    try:
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(os.fsencode(text))
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def _remove(path: Path, inode: int) -> None:
    with contextlib.suppress(OSError):
        if path.stat().st_ino == inode:
            path.unlink()


def _remove_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()
