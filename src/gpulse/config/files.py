"""Read a file that a person keeps, and tell who else can."""

import os
import pwd
import shlex
import stat
from collections.abc import Callable
from pathlib import Path

from gpulse.errors import ConfigError

# A hundred thousand hosts, a line each, with room; a path that is no such file (/dev/zero) must not eat the memory.
MOST_BYTES = 16 * 1024 * 1024
LONGEST_NAME = 200
# Gets the name of somebody else, or ""; raises if they are not trusted.
CheckOwner = Callable[[str], None]


def read_bytes(path: Path, check_owner: CheckOwner | None = None) -> bytes:
    """Return all of the file; raise OSError if it can't be read or is far too large for what it should be.

    `check_owner` gets the owner of what is read, "" for this user and root: by its path it may be another file by now.
    """
    with path.open("rb") as file:
        if check_owner is not None:
            check_owner(_stranger(os.fstat(file.fileno())))
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise OSError(0, f"it is larger than {MOST_BYTES} bytes")
    return data


def read_secret(path: Path, setting: str) -> bytes:
    """Without spaces around it; ConfigError where it cannot be read, or where others can."""
    try:
        secret = read_bytes(path).strip()
        exposed = exposed_to(path, stat.S_IRGRP | stat.S_IROTH)
    except OSError as error:
        raise ConfigError([f"{setting}: {path} cannot be read ({reason(error)}); put the secret there"]) from None
    if exposed:
        raise ConfigError([f"{setting}: {exposed}"])
    return secret


def exposed_to(path: Path, whom: int) -> str:
    """Who beside its owner can read it, and what helps; "" where none of `whom`, which are bits of a mode, can."""
    readers = path.stat().st_mode & whom
    if not readers:
        return ""
    who = "everybody on this machine" if readers & stat.S_IROTH else "its group"
    return f"{path} can be read by {who}; run: chmod 600 {shlex.quote(str(path))}"


def is_file_name(text: str) -> bool:
    """Return whether a name that comes from elsewhere can name a file: it leads to no other folder, and hides none."""
    return (
        text.isprintable() and 0 < len(text.encode()) <= LONGEST_NAME and "/" not in text and not text.startswith(".")
    )


def other_owner(path: Path) -> str:
    """Return whose file it is, or whose link to it; "" if it is this user's own or root's."""
    return _stranger(path.lstat()) or _stranger(path.stat())


def _stranger(found: os.stat_result) -> str:
    if found.st_uid in (os.geteuid(), 0):
        return ""
    try:
        return pwd.getpwuid(found.st_uid).pw_name
    except KeyError:
        return f"the user with the number {found.st_uid}"


def reason(error: OSError) -> str:
    return error.strerror or str(error)
