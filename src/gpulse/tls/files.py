"""Where a certificate and its key are, and what can be seen of them from outside."""

import stat
from pathlib import Path
from typing import NamedTuple

from gpulse.config.files import exposed_to

FOLDER = "tls"


class Files(NamedTuple):
    """Where the two are."""

    certificate: Path
    key: Path

    def stamps(self) -> tuple[tuple[int, ...] | None, ...]:
        """What changes with them, also where a link is switched to another file; None for one that is not there."""
        return tuple(map(_stamp, self))

    def exposed(self) -> str:
        """A word of warning where others on this machine can read the key, else ""."""
        # A group may be meant to: some systems have one for keys.
        return exposed_to(self.key, stat.S_IROTH)


def own_files(data: Path) -> Files:
    """Those that the hub makes itself, in its data folder."""
    return Files(data / FOLDER / "certificate.pem", data / FOLDER / "key.pem")


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        seen = path.stat()
    except OSError:
        # Why is told when it is read.
        return None
    return seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns
