"""What lies in a drop folder: which files there are, and what is in them. It blocks, and may hang on a file server."""

import os
import stat
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import msgspec

ENDING = ".json"
LARGEST_FILE = 1 << 20
# Each is a node, which the hub and every page keep in memory.
MOST_FILES = 20_000

# What tells that a file is another than before.
Mark = tuple[int, int, int]
_UNKNOWN = (0, 0, 0)


class Content(msgspec.Struct, frozen=True):
    """A file as it was read: its content, or why there is none."""

    name: str
    mark: Mark
    # When it was written, by the clock of whoever holds the file.
    written_at: float
    data: bytes
    trouble: str = ""
    # Whether that may pass by itself, as on a file server that was just asked while the file was replaced.
    passing: bool = False


class Listing(msgspec.Struct, frozen=True):
    """The marks of files by node, and how many files more there are than MOST_FILES."""

    marks: dict[str, Mark]
    left_out: int


def scan(folder: Path, known: Collection[str], overdue: Collection[str]) -> Listing:
    """Which files there are. Hidden files are somebody's who is still writing.

    `known`: those seen before, which never give way to others.
    `overdue`: those that should have changed by now. A network file system may tell for a minute what it knew before;
    when a file is opened it asks its server.
    """
    marks: dict[str, Mark] = {}
    room = MOST_FILES - len(known)
    left_out = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name.removesuffix(ENDING)
            if name == entry.name or not name or name.startswith(".") or not name.isprintable():
                continue
            if name not in known and room <= 0:
                left_out += 1
                continue
            try:
                state = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                # Gone since the folder was listed.
                continue
            except OSError:
                # One bad file must not hide the others: what is wrong with it is told when it is read.
                marks[name] = _UNKNOWN
            else:
                if not stat.S_ISREG(state.st_mode):
                    continue
                marks[name] = _mark(state)
            room -= name not in known
    for name in overdue:
        if name in marks:
            with suppress(OSError):
                # As above.
                descriptor = _open(folder, name)
                try:
                    marks[name] = _mark(os.fstat(descriptor))
                finally:
                    os.close(descriptor)
    return Listing(marks, left_out)


def read(folder: Path, names: Collection[str]) -> list[Content]:
    """These files; those that are gone are left out."""
    return [content for name in names if (content := _read(folder, name)) is not None]


def _read(folder: Path, name: str) -> Content | None:
    try:
        descriptor = _open(folder, name)
    except FileNotFoundError:
        return None
    except OSError as problem:
        return _unreadable(name, problem)
    try:
        # Before it is read: a file that is written meanwhile differs from its mark next time.
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as problem:
        return _unreadable(name, problem)
    finally:
        os.close(descriptor)
    if len(data) > LARGEST_FILE:
        return Content(name, _mark(state), state.st_mtime, b"", f"it is larger than {LARGEST_FILE >> 20} MiB")
    return Content(name, _mark(state), state.st_mtime, data)


def _unreadable(name: str, problem: OSError) -> Content:
    return Content(name, _UNKNOWN, 0.0, b"", f"it cannot be read: {problem.strerror or problem}", passing=True)


def _open(folder: Path, name: str) -> int:
    # A pipe or a link that somebody put there must neither hang us nor lead elsewhere.
    return os.open(folder / (name + ENDING), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)


def _mark(state: os.stat_result) -> Mark:
    return state.st_mtime_ns, state.st_size, state.st_ino
