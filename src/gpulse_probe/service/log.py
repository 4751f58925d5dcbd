"""The log of a service: what it prints, kept within bounds."""

import os

from gpulse_probe.service.folder import cannot

LOG = "log"
MOST_BYTES = 1 << 20
_SHOWN_LINES = 3
_LONGEST_LINE = 300


def take_output(folder):
    """Standard output and errors of this process go to the log from now on; a long one is put aside first."""
    path = folder.file(LOG)
    try:
        if os.path.exists(path) and os.path.getsize(path) > MOST_BYTES:
            os.rename(path, path + ".1")
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
    except OSError as error:
        raise cannot("write", path, error)
    os.dup2(nothing, 0)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    for surplus in {nothing, descriptor} - {0, 1, 2}:
        os.close(surplus)


def last_lines(folder, since=0):
    """The last lines, of those written after the first `since` bytes."""
    try:
        with open(folder.file(LOG), "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(min(since, size), size - 8192))
            text = file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return []
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return [line[:_LONGEST_LINE] for line in lines[-_SHOWN_LINES:]]


def size(folder):
    try:
        return os.path.getsize(folder.file(LOG))
    except OSError:
        return 0
