"""A file for those targets that read one."""

import tempfile
from pathlib import Path

_FOLDER = tempfile.TemporaryDirectory()


def holding(data: bytes) -> Path:
    path = Path(_FOLDER.name, "file")
    path.write_bytes(data)
    return path
