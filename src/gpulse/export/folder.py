"""Puts a site into a folder so that nobody ever reads half of it.

index.html names a folder with the version's files and is replaced last, by a rename. Who has just read the former page
still finds its files: they go with the version after. That works with any file system and web server, also where
symbolic links are not followed, and from file://.
"""

import fcntl
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gpulse.errors import ExportError
from gpulse.export.site import Site

_PAGE = "index.html"
_LOCK = ".gpulse-export.lock"
_VERSION = re.compile(r"gpulse-[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}")


def put(folder: Path, build: Callable[[str], Site], now: float) -> None:
    """Write a new version and remove those before the last; `build` is told the name of its folder."""
    try:
        # First of all: nothing is left in a folder of somebody else.
        _version_shown(folder)
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder):
            before = _version_shown(folder)
            version = f"gpulse-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(now))}-{secrets.token_hex(4)}"
            site = build(version)
            try:
                for name, content in site.files.items():
                    _write(folder / version / name, content)
                unfinished = folder / f".{_PAGE}.{version}"
                _write(unfinished, site.page.encode())
                unfinished.replace(folder / _PAGE)
            except OSError:
                shutil.rmtree(folder / version, ignore_errors=True)
                raise
            _remove_others(folder, {version, before})
    except OSError as error:
        where = error.filename or folder
        words = error.strerror or str(error)
        raise ExportError(
            f"the site cannot be written: {where}: {words}; make room or name another folder; what is there stays"
        ) from None


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    with (folder / _LOCK).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ExportError(f"another gpulse export writes into {folder} right now; let it end first") from None
        yield


def _version_shown(folder: Path) -> str | None:
    """The version that index.html names; a page of somebody else is not overwritten."""
    page = folder / _PAGE
    if not page.exists():
        return None
    found = _VERSION.search(page.read_text("utf-8", "replace"))
    if found is None:
        raise ExportError(f"{page} is not of gpulse export; name an empty folder, or remove that file")
    return found[0]


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        # A machine that stops must not leave a page whose files are empty.
        os.fsync(file.fileno())


def _remove_others(folder: Path, kept: set[str | None]) -> None:
    for path in folder.iterdir():
        if _VERSION.fullmatch(path.name) and path.name not in kept and path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif _VERSION.fullmatch(path.name.removeprefix(f".{_PAGE}.")) and path.is_file():
            # Of an export that was killed.
            path.unlink()
