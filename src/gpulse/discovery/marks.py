"""What tells that a file is another than before."""

from pathlib import Path

Mark = tuple[int, int, int, int] | None


def file_mark(path: Path) -> Mark:
    """Another one whenever the file changes; None while there is none."""
    try:
        state = path.stat()
    except OSError:
        # Why it cannot be read is told when it is read.
        return None
    return state.st_mtime_ns, state.st_ctime_ns, state.st_size, state.st_ino
