"""Makes what is handed on (`make dist`): a wheel of gpulse, and a wheelhouse that installs it with no network."""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)
# The glibc that wheels of the older names need: https://peps.python.org/pep-0600
GLIBC = {"manylinux1": 5, "manylinux2010": 12, "manylinux2014": 17}
_ABOUT = "import platform, sys; print(*sys.version_info[:2], platform.system(), platform.machine())"


class DistFailed(Exception):
    """It could not be made; what pip said is in the message."""


class Target(NamedTuple):
    """What the wheels are for."""

    version: tuple[int, int]
    platform: str
    # An interpreter of that kind on this machine; None: there is none, pip is told what to pretend.
    python: str | None

    def __str__(self) -> str:
        return f"Python {self.version[0]}.{self.version[1]} on {self.platform}"


def here(python: str) -> Target:
    """What that interpreter of this machine is."""
    path = shutil.which(python)
    if path is None:
        raise DistFailed(f"there is no {python}; name another: make dist PYTHON=python3.12")
    told = _run([path, "-c", _ABOUT], f"{python} could not be started").split()
    return Target(_checked((int(told[0]), int(told[1]))), f"{told[2]} {told[3]}", path)


def elsewhere(version: str, platform: str) -> Target:
    """What was named in the command line."""
    match = re.fullmatch(r"(\d+)\.(\d+)", version)
    if match is None:
        raise DistFailed(f'"{version}" is no version of Python; as in: --python-version 3.13')
    if re.fullmatch(r"manylinux_2_\d+_\w+", platform) is None:
        raise DistFailed(
            f'"{platform}" is no platform; as in: --platform manylinux_2_28_aarch64, for glibc 2.28 or later'
        )
    return Target(_checked((int(match[1]), int(match[2]))), platform, None)


def make(folder: Path, target: Target) -> Path:
    """The wheel in `folder` and the wheelhouse beside it; what was there of before is replaced when all is done."""
    with tempfile.TemporaryDirectory() as name:
        made = Path(name)
        _run([*_pip(), "wheel", "--no-deps", "--wheel-dir", name, str(ROOT)], "the wheel of gpulse could not be made")
        wheel = next(made.glob("gpulse-*.whl"))
        house = made / "wheelhouse"
        house.mkdir()
        shutil.copy(wheel, house)
        _fill(house, wheel, target)
        folder.mkdir(parents=True, exist_ok=True)
        # An older gpulse beside it would be one too many.
        for old in folder.glob("gpulse-*.whl"):
            old.unlink()
        shutil.rmtree(folder / house.name, ignore_errors=True)
        shutil.copytree(house, folder / house.name)
        return Path(shutil.copy(wheel, folder))


def _fill(house: Path, wheel: Path, target: Target) -> None:
    command = [*_pip(target), "download", "--quiet", "--only-binary", ":all:", "--dest", str(house)]
    # A site that has PostgreSQL has no network either.
    command.append(f"{wheel}[postgresql]")
    if target.python is None:
        command += ["--python-version", f"{target.version[0]}.{target.version[1]}"]
        command += [word for tag in tags(target.platform) for word in ("--platform", tag)]
    _run(command, f"not everything that gpulse needs could be had for {target}")
    if target.python is not None:
        # Isolated: what this machine has set for pip, the other will not have.
        tried = [*_pip(target), "--isolated", "install", "--dry-run", "--ignore-installed", "--no-index", "--quiet"]
        _run([*tried, "--find-links", str(house), "gpulse[postgresql]"], "the wheelhouse lacks something")


def tags(platform: str) -> list[str]:
    """The platforms whose wheels run on this one: pip takes names as they are, newer ones do not include older ones."""
    match = re.fullmatch(r"manylinux_2_(\d+)_(\w+)", platform)
    if match is None:
        return [platform]
    newest, machine = int(match[1]), match[2]
    names = [f"manylinux_2_{minor}_{machine}" for minor in range(newest, 4, -1)]
    return names + [f"{name}_{machine}" for name, minor in reversed(GLIBC.items()) if minor <= newest]


def needed_glibc(wheels: Sequence[str]) -> int | None:
    """The x of the glibc 2.x that all of these wheels run with; None: they need none."""
    needs = []
    for name in wheels:
        numbers = [int(found) for found in re.findall(r"manylinux_2_(\d+)_", name)]
        numbers += [minor for old, minor in GLIBC.items() if f"{old}_" in name]
        if numbers:
            needs.append(min(numbers))
    return max(needs, default=None)


def _checked(version: tuple[int, int]) -> tuple[int, int]:
    if version < OLDEST:
        raise DistFailed(f"gpulse needs Python {OLDEST[0]}.{OLDEST[1]} or later, not {version[0]}.{version[1]}")
    return version


def _pip(target: Target | None = None) -> list[str]:
    """The pip of this environment, which need not be that of the other interpreter."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    return [*command, "--python", target.python] if target and target.python else command


def _run(command: Sequence[str], failure: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own words
    if done.returncode != 0:
        raise DistFailed(f"{done.stdout}{done.stderr}".strip() + f"\n{failure}")
    return done.stdout


def _summary(wheel: Path, target: Target) -> str:
    house = wheel.with_name("wheelhouse")
    wheels = sorted(path.name for path in house.iterdir())
    glibc = needed_glibc(wheels)
    needs = f", glibc 2.{glibc} or later" if glibc else ""
    size = sum(path.stat().st_size for path in house.iterdir())
    lines = [
        f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB, for any Python from {OLDEST[0]}.{OLDEST[1]} on",
        f"{house}: {size / 1e6:.1f} MB, {len(wheels)} wheels, for {target}{needs}",
    ]
    if target.python is None:
        lines.append("it was not tried, as this machine is another")
    lines += [
        "to install it there, with no network:",
        f"    python{target.version[0]}.{target.version[1]} -m pip install --no-index --find-links {house} gpulse",
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.dist", description=__doc__)
    parser.add_argument("--to", type=Path, default=Path("dist"), metavar="DIR", help="where to (default: dist)")
    parser.add_argument("--python", default=sys.executable, help="for this interpreter (default: the one it is run by)")
    parser.add_argument("--python-version", metavar="3.13", help="for a Python that is not here; with --platform")
    parser.add_argument("--platform", metavar="manylinux_2_28_aarch64", help="for a machine of another kind")
    options = parser.parse_args(arguments)
    if (options.python_version is None) != (options.platform is None):
        parser.error("--python-version and --platform go together")
    try:
        if options.platform is None:
            target = here(options.python)
        else:
            target = elsewhere(options.python_version, options.platform)
        print(_summary(make(options.to, target), target))
    except DistFailed as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
