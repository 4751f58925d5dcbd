"""Asks PyPI and npm for known holes in what gpulse is built with: `python -m scripts.audit`.

It succeeds only where every package was looked up and nothing was found: what was not audited is a failure too.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from scripts import nodejs

ROOT = Path(__file__).resolve().parent.parent
WEB = ROOT / "web"
# Its packages are not ours: they stay apart from what is audited.
ENVIRONMENT = ROOT / ".venv-audit"
REQUIREMENTS = ROOT / "requirements" / "audit.txt"
# Who has no network is told so after that long, and not after many tries.
SECONDS = 300
MOST_NAMED = 3


class NotAudited(Exception):
    """Nobody knows whether there are holes; the message says why."""


def python_packages() -> list[str]:
    """What was found in the packages of the environment this runs in."""
    wanted = installed()
    program = _pip_audit()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "requirements.txt"
        file.write_text("".join(f"{name}=={version}\n" for name, version in sorted(wanted.items())))
        # They are pinned, all of them: nothing has to be resolved or installed once more.
        options = ["--no-deps", "--disable-pip", "--progress-spinner=off", "--format=json"]
        done = _run([str(program), *options, "--requirement", str(file)], ROOT)
    return judge_python(done.stdout, done.stderr, wanted)


def page_packages() -> list[str]:
    """What was found in those of web/package-lock.json."""
    try:
        found = nodejs.find()
    except nodejs.NoNodeJs as error:
        raise NotAudited(str(error)) from None
    # A setting of the person who runs it must not turn the questions off: npm would answer that all is well.
    done = _run([*found.npm, "audit", "--json", "--audit", "--no-offline", "--package-lock-only"], WEB)
    return judge_page(done.stdout, done.stderr, locked())


AUDITS: dict[str, Callable[[], list[str]]] = {"Python packages": python_packages, "packages of the page": page_packages}


def installed() -> dict[str, str]:
    """Versions by name, without gpulse itself."""
    done = _run([sys.executable, "-m", "pip", "list", "--format=json", "--disable-pip-version-check"], ROOT)
    try:
        listed: list[dict[str, str]] = json.loads(done.stdout)
    except ValueError:
        raise NotAudited(f"pip does not list what is installed: {_last_words(done.stderr)}") from None
    found = {_normal(one["name"]): one["version"] for one in listed}
    found.pop("gpulse", None)
    return found


def locked() -> int:
    """How many packages the page's lock file has."""
    packages = json.loads((WEB / "package-lock.json").read_text("utf-8"))["packages"]
    return sum(1 for name in packages if name)


def judge_python(output: str, said: str, wanted: Mapping[str, str]) -> list[str]:
    """The holes that pip-audit tells of; NotAudited unless it has looked at each of the `wanted`."""
    try:
        told: list[dict[str, Any]] = json.loads(output)["dependencies"]
    except (ValueError, KeyError, TypeError):
        raise NotAudited(f"pip-audit has not answered: {_last_words(said)}") from None
    skipped = {_normal(one["name"]): str(one["skip_reason"]) for one in told if "skip_reason" in one}
    looked_at = {_normal(one["name"]) for one in told if "vulns" in one}
    missing = sorted(set(wanted) - looked_at)
    if missing:
        # It takes a mirror that knows of no holes for PyPI, and says that all is well.
        named = [f"{name} {wanted[name]} ({skipped.get(name, 'no answer')})" for name in missing[:MOST_NAMED]]
        more = [f"and {len(missing) - MOST_NAMED} more"] if len(missing) > MOST_NAMED else []
        words = ", ".join([*named, *more])
        raise NotAudited(f"pip-audit did not look at {len(missing)} of {len(wanted)} packages: {words}")
    if not wanted:
        raise NotAudited("nothing is installed")
    return [
        f"{one['name']} {one['version']}: {hole['id']}, mended in {', '.join(hole['fix_versions']) or 'no version yet'}"
        for one in told
        for hole in one.get("vulns", ())
    ]


def judge_page(output: str, said: str, wanted: int) -> list[str]:
    """The holes that `npm audit` tells of; NotAudited unless it has looked at as many packages as are locked."""
    try:
        told: dict[str, Any] = json.loads(output)
    except ValueError:
        raise NotAudited(f"npm audit has not answered: {_last_words(said)}") from None
    if told.get("auditReportVersion") != 2:
        error = told.get("error") or {}
        why = error.get("summary") or told.get("message") or _last_words(said)
        raise NotAudited(f"npm audit has not answered: {why}")
    looked_at = told["metadata"]["dependencies"]["total"]
    if wanted == 0 or looked_at < wanted:
        raise NotAudited(f"npm audit looked at {looked_at} packages, and {wanted} are locked")
    return [f"{name}: {_advisories(hole)} ({hole['severity']})" for name, hole in told["vulnerabilities"].items()]


def _advisories(hole: Mapping[str, Any]) -> str:
    return ", ".join(one if isinstance(one, str) else str(one.get("url") or one.get("title")) for one in hole["via"])


def _pip_audit() -> Path:
    done = _run([str(ROOT / "scripts" / "venv"), str(ENVIRONMENT), "--requirement", str(REQUIREMENTS)], ROOT)
    if done.returncode != 0:
        raise NotAudited(f"pip-audit could not be installed: {_last_words(done.stderr)}")
    return ENVIRONMENT / "bin" / "pip-audit"


def _run(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHON": sys.executable}
    try:
        return subprocess.run(  # noqa: S603 - our own words
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise NotAudited(f"{Path(command[0]).name} did not end within {SECONDS} s") from None
    except OSError as error:
        raise NotAudited(f"{command[0]} cannot be run: {error.strerror}") from None


def _last_words(text: str) -> str:
    """The last line that is an error, else the last one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or ["it said nothing"])[-1][:300]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> int:
    trouble = False
    for what, audit in AUDITS.items():
        try:
            holes = audit()
        except NotAudited as error:
            trouble = True
            print(f"{what}: NOT AUDITED: {error}; this asks PyPI and npm, and needs the Internet", file=sys.stderr)
            continue
        trouble = trouble or bool(holes)
        print("\n".join([f"{what}: known holes: {len(holes) or 'none'}", *(f"  {hole}" for hole in holes)]))
    return int(trouble)


if __name__ == "__main__":
    sys.exit(main())
