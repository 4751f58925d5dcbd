"""Read a text file that a person keeps."""

from pathlib import Path

# A hundred thousand hosts, a line each, with room; a path that is no such file (/dev/zero) must not eat the memory.
MOST_BYTES = 16 * 1024 * 1024


def read_bytes(path: Path) -> bytes:
    """All of the file; OSError where it cannot be read or is far too large for what it should be."""
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise OSError(0, f"it is larger than {MOST_BYTES} bytes")
    return data


def reason(error: OSError) -> str:
    return error.strerror or str(error)
