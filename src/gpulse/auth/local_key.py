"""The command line's own key: a file in the data folder that only its owner can read, made anew at each start.

Each hub has one with its port: of two on one folder neither takes the other's.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from gpulse.errors import StoreError

if TYPE_CHECKING:
    # Commands that only ask a hub load no database.
    from gpulse.auth.keys import Keys

_FILE = "cli-key-"
_PORTS = {"http": 80, "https": 443}


@contextmanager
def kept(folder: Path, keys: "Keys", account: str, url: str) -> Iterator[None]:
    """While the block runs, commands of the folder's owner are the account's. `url` is where the hub listens."""
    path, text = place(folder, url), f"{keys.create_local(account)}\n{url}\n"
    try:
        _write(path, text)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written: {error.strerror}; give this user the right to write there, or name another"
            " folder with --data"
        ) from error
    try:
        yield
    finally:
        # Another hub may have been started on the same folder, at the same port of another address.
        if _text(path) == text:
            path.unlink(missing_ok=True)


def read(folder: Path, url: str) -> str | None:
    """The key for the hub at an address on this machine, if it is that of this folder.

    By the port: whatever else listens on this machine, perhaps somebody else's, must not be shown it.
    """
    found = _lines(place(folder, url))
    return found[0] if found is not None and _port(found[1]) == _port(url) else None


def address(folder: Path) -> str | None:
    """Where the hub that runs on this folder listens, of several the one started last; None where none does."""
    started = sorted((made, path) for path in folder.glob(f"{_FILE}*") if (made := _made_at(path)) is not None)
    found = [lines[1] for _, path in reversed(started) if (lines := _lines(path)) is not None]
    return found[0] if found else None


def place(folder: Path, url: str) -> Path:
    """The file of the hub that listens at an address."""
    return folder / f"{_FILE}{_port(url)}"


def _lines(path: Path) -> tuple[str, str] | None:
    lines = (_text(path) or "").splitlines()
    return (lines[0], lines[1]) if len(lines) == 2 else None


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
        return path.read_text("ascii")
    except (FileNotFoundError, PermissionError, NotADirectoryError, UnicodeDecodeError):
        # Another person's hub, or none that runs: there is no key for us.
        return None


def _write(path: Path, text: str) -> None:
    """For its owner alone from the first moment, and whole."""
    new = path.with_name(f".{path.name}-{secrets.token_hex(6)}")
    try:
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(text)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
