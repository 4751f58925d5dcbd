"""The Python interpreters found on this machine, from 3.6 on: on PATH and among pyenv's."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


@cache
def interpreters() -> dict[str, str]:
    """{version: path}, one for each minor version."""
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    folders += _pyenv_folders()
    found = {f"{sys.version_info[0]}.{sys.version_info[1]}": sys.executable}
    for folder in folders:
        if folder.name == "shims":
            continue
        for minor in range(6, 30):
            program = folder / f"python3.{minor}"
            if f"3.{minor}" not in found and os.access(program, os.X_OK) and _runs_as(program, f"3.{minor}"):
                found[f"3.{minor}"] = str(program)
    return dict(sorted(found.items(), key=lambda item: int(item[0].split(".")[1])))


def _pyenv_folders() -> list[Path]:
    try:
        root = Path(os.environ.get("PYENV_ROOT") or Path("~/.pyenv").expanduser())
        return sorted(root.glob("versions/*/bin"))
    except (OSError, RuntimeError):
        # Somebody else's, which we may not look into, or nobody's home.
        return []


def _runs_as(program: Path, version: str) -> bool:
    ran = subprocess.run([program, "-c", _VERSION], capture_output=True, text=True, check=False)
    return ran.returncode == 0 and ran.stdout.strip() == version
