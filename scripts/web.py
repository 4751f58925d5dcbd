"""Builds and checks the page: `python -m scripts.web build|check|types`; does only what has not been done."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from scripts import nodejs

ROOT = Path(__file__).resolve().parent.parent
WEB = ROOT / "web"
MODULES = WEB / "node_modules"
STATIC = ROOT / "src" / "gpulse" / "api" / "static"
BUILT = (STATIC / "web" / "index.html", STATIC / "export" / "index.html")


class BuildFailed(Exception):
    """npm or one of its tools has failed; what it said is in the message."""


def build() -> bool:
    """Builds the page where its sources have changed since. False: there was nothing to do."""
    if not is_stale():
        return False
    state = _digest(_sources())
    found = nodejs.find()
    install(found)
    _run([*found.npm, "run", "--silent", "build"], found, "the page could not be built")
    _stamp().write_text(state)
    return True


def is_stale() -> bool:
    """Whether the page is not built, or from other sources than those that are there."""
    if not all(path.exists() for path in BUILT) or not _stamp().is_file():
        return True
    return _stamp().read_text() != _digest(_sources())


def _stamp() -> Path:
    """Has what the sources were when the page was built last."""
    return MODULES / ".built"


def install(found: nodejs.NodeJs) -> None:
    """What package-lock.json names, where that has changed since."""
    stamp = MODULES / ".installed"
    state = _digest([WEB / "package-lock.json"])
    if stamp.is_file() and stamp.read_text() == state:
        return
    _run([*found.npm, "ci", "--no-audit", "--no-fund"], found, "the packages of the page could not be installed")
    stamp.write_text(state)


def check() -> None:
    """Types, style and tests of the page."""
    found = nodejs.find()
    install(found)
    for task in ("check", "lint", "test"):
        _run([*found.npm, "run", "--silent", task], found, f"npm run {task} in web/ has found something")


def types() -> None:
    """The types of the API, from its description."""
    found = nodejs.find()
    install(found)
    _run([*found.npm, "run", "--silent", "types"], found, "the types of the API could not be made")


def _run(command: Sequence[str], found: nodejs.NodeJs, failure: str) -> None:
    folder = str(Path(found.node[0]).parent)
    # npm's scripts start "node" by its name; types.mjs starts a Python that has gpulse.
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ.get('PATH', '')}", "PYTHON": sys.executable}
    done = subprocess.run(  # noqa: S603 - our own words
        command, cwd=WEB, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode != 0:
        raise BuildFailed(f"{done.stdout.strip()}\n{failure}")


def _sources() -> Iterator[Path]:
    """What the page is made of, which its tests are not."""
    for path in sorted(WEB.iterdir()):
        if path.name != MODULES.name:
            found = sorted(path.rglob("*")) if path.is_dir() else [path]
            yield from (one for one in found if not one.name.endswith(".test.ts"))


def _digest(paths: Iterator[Path] | Sequence[Path]) -> str:
    digest = hashlib.blake2s()
    for path in paths:
        if path.is_file():
            digest.update(str(path.relative_to(WEB)).encode() + b"\0")
            digest.update(hashlib.blake2s(path.read_bytes()).digest())
    return digest.hexdigest()


def _with_wheel() -> None:
    """Where the system has no Node.js that will do, PyPI's goes into the environment this runs in."""
    if nodejs.system() is None and nodejs.wheel() is None:
        print(f"installing {nodejs.WHEEL}, as there is no Node.js {nodejs.NEEDED}")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", nodejs.WHEEL]
        subprocess.run(command, check=False)  # noqa: S603 - our own words


def main(arguments: Sequence[str]) -> int:
    tasks = {"build": build, "check": check, "types": types}
    if len(arguments) != 1 or arguments[0] not in tasks:
        print(f"usage: python -m scripts.web {'|'.join(tasks)}", file=sys.stderr)
        return 2
    try:
        _with_wheel()
        tasks[arguments[0]]()
    except (nodejs.NoNodeJs, BuildFailed) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
