"""Where the recorded outputs of other people's machines are found; they are never copied into the repository."""

import os
from pathlib import Path

import pytest


def _find() -> Path | None:
    named = os.environ.get("GPULSE_TESTDATA")
    beside = Path(__file__).resolve().parent.parent.parent / "shared" / "testdata"
    for folder in (Path(named).resolve() if named else None, beside):
        if folder and folder.is_dir():
            return folder
    return None


TESTDATA = _find()
MISSING = "recorded outputs not found: set GPULSE_TESTDATA to the folder that holds them"


def capture(name: str) -> bytes:
    """One recorded output, byte for byte."""
    if TESTDATA is None:
        pytest.skip(MISSING)
    return (TESTDATA / name).read_bytes()


def captures(pattern: str) -> list[str]:
    """The names of all recorded outputs that match; none where the data are missing."""
    return sorted(str(path.relative_to(TESTDATA)) for path in TESTDATA.glob(pattern)) if TESTDATA else []


def archive(name: str, folder: Path) -> Path:
    """Unpack a recorded tree (.ttar: Path, Lines, content) into a folder."""
    lines = capture(name).decode("utf-8", "surrogateescape").split("\n")
    position = 0
    target = folder
    while position < len(lines):
        line = lines[position]
        position += 1
        if line.startswith("Path: "):
            target = folder / line[6:].lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
        elif line.startswith("Directory: "):
            (folder / line[11:].lstrip("/")).mkdir(parents=True, exist_ok=True)
        elif line.startswith("SymlinkTo: "):
            target.symlink_to(line[11:])
        elif line.startswith("Lines: "):
            count = int(line[7:])
            content = "".join(text + "\n" for text in lines[position : position + count])
            content = content.replace("NULLBYTE", "\0").removesuffix("EOF\n")
            target.write_bytes(content.encode("utf-8", "surrogateescape"))
            position += count
    return folder
