"""The container recipe, as far as it can be tried without an engine: its steps are run, its lines are checked."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
from itertools import pairwise
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

import pytest
import typer.main
import yaml

from gpulse.cli.commands import app
from gpulse.config import Config
from gpulse_probe import __version__
from tests.hub.running import RunningHub
from tests.patience import PATIENCE_SECONDS

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "container.md"
# Where the docs mount something.
PLACES = ("/data", "/settings", "/home/gpulse/.ssh")
UP = typer.main.get_command(app).commands["up"]


def instructions(root: Path = ROOT) -> list[tuple[str, str]]:
    """(RUN, what follows it), in order, with continued lines joined."""
    text = re.sub(r"^#.*\n", "", (root / "Containerfile").read_text("utf-8"), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines if line.strip()]


def every(name: str) -> list[str]:
    return [rest for instruction, rest in instructions() if instruction == name]


def one(name: str) -> str:
    found = every(name)
    assert len(found) == 1, f"{name}: {found}"
    return found[0]


def entry() -> list[str]:
    words = json.loads(one("ENTRYPOINT"))
    assert words[:2] == ["gpulse", "up"]
    return words[2:]


def is_left_out(path: PurePosixPath, patterns: list[str]) -> bool:
    """As engines read .dockerignore: the last line that fits the path, or a folder it is in, decides."""
    verdict = False
    for pattern in patterns:
        glob = re.escape(pattern.lstrip("!")).replace(r"\*\*/", "(.*/)?").replace(r"\*", "[^/]*")
        if any(re.fullmatch(glob, str(part)) for part in (path, *path.parents)):
            verdict = not pattern.startswith("!")
    return verdict


def context(root: Path, target: Path) -> None:
    """What the first stage gets: the files its COPY lines name, without those that .dockerignore leaves out."""
    lines = (root / ".dockerignore").read_text("utf-8").splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    for instruction, rest in instructions(root):
        if instruction != "COPY" or rest.startswith("--from"):
            continue
        *sources, folder = rest.split()
        for source in sources:
            assert (root / source).exists(), source
            files = [root / source] if (root / source).is_file() else sorted((root / source).rglob("*"))
            for file in files:
                name = file.relative_to(root)
                if not file.is_file() or is_left_out(PurePosixPath(name), patterns):
                    continue
                copy = target / folder / (file.relative_to(root / source) if (root / source).is_dir() else name)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, copy)


def test_what_engines_read_as_left_out():
    patterns = ["*", "!src", "!web", "web/node_modules", "**/__pycache__"]
    assert is_left_out(PurePosixPath(".venv/bin/python"), patterns)
    assert not is_left_out(PurePosixPath("src/gpulse/app.py"), patterns)
    assert is_left_out(PurePosixPath("web/node_modules/vite/a.js"), patterns)
    assert not is_left_out(PurePosixPath("web/src/a.ts"), patterns)
    assert is_left_out(PurePosixPath("src/gpulse/__pycache__/app.pyc"), patterns)


@pytest.mark.timeout(600)
def test_it_is_built_from_a_source_archive_on_a_machine_with_only_python(tmp_path: Path):
    """The recipe's own step, in what its COPY lines take of an sdist, with no Node.js: PyPI's builds the page.

    To be quick, the page's npm packages are those installed here, and gpulse goes in without what it needs.
    """
    command = [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    with tarfile.open(next(tmp_path.glob("gpulse-*.tar.gz"))) as archive:
        assert not [name for name in archive.getnames() if "/node_modules/" in name or "/static/web/" in name]
        archive.extractall(tmp_path, filter="data")
    tree = tmp_path / "source"
    context(tmp_path / f"gpulse-{__version__}", tree)
    take_packages(tree)
    path = only_python(tmp_path / "path")
    environment = {**os.environ, "PATH": str(path)}
    venv = tmp_path / "opt"
    step = every("RUN")[0].replace("/opt/gpulse", str(venv))
    assert "pip install " in step
    step = step.replace("pip install ", "pip install --no-deps --no-compile ")
    done = subprocess.run(
        ["/bin/sh", "-c", step], cwd=tree, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (venv / "bin/gpulse").exists()
    static = next(venv.glob("lib/python3*/site-packages/gpulse/api/static"))
    scripts = re.findall(r'src="\./(assets/[^"]+\.js)"', (static / "web/index.html").read_text("utf-8"))
    assert scripts
    assert all((static / "web" / name).stat().st_size > 10_000 for name in scripts)
    assert (static / "export/page.js").exists()


def only_python(folder: Path) -> Path:
    """A path with Python, and the shell that npm starts scripts with."""
    folder.mkdir()
    (folder / "sh").symlink_to("/bin/sh")
    # Not the environment the tests run in, which may have a Node.js of its own.
    (folder / "python").symlink_to(Path(sys.executable).resolve())
    assert shutil.which("node", path=str(folder)) is None
    return folder


def take_packages(tree: Path) -> None:
    """Those of the page that were installed here, without what was noted of a build."""

    def link(source: str, target: str) -> None:
        try:
            os.link(source, target)
        except OSError:
            shutil.copy2(source, target)

    left_out = shutil.ignore_patterns(".built", ".vite*")
    here = ROOT / "web/node_modules"
    shutil.copytree(here, tree / "web/node_modules", copy_function=link, symlinks=True, ignore=left_out)


def test_it_runs_as_somebody_with_few_rights_and_a_place_for_data():
    assert one("USER") == "gpulse"
    assert one("VOLUME") == entry()[entry().index("--data") + 1] == "/data"
    making = every("RUN")[1]
    assert re.search(r"install --directory --owner=gpulse .*/data\b", making)
    assert one("EXPOSE") == str(Config().hub.port)
    # Python of both stages must be the same: an environment knows where its Python is.
    assert len({base.split()[0] for base in every("FROM")}) == 1


def test_its_command_starts_a_hub_that_its_health_check_asks(tmp_path: Path):
    check = one("HEALTHCHECK")
    program, *arguments = json.loads(check[check.index("CMD ") + len("CMD ") :])
    assert program == "python"
    UP.make_context("up", [*entry(), "me@gpu[01-16]", "gpu40"])

    def is_healthy(url: str) -> bool:
        port = str(urlsplit(url).port)
        mine = [argument.replace("7070", port) for argument in arguments]
        assert mine != arguments
        return subprocess.run([sys.executable, *mine], capture_output=True, check=False).returncode == 0

    settings = tmp_path / "gpulse.toml"
    for text in ("", '[web]\nbase_path = "/gpus"\n'):
        settings.write_text(text)
        # Options that are given again win: here, others must not reach it.
        own = ["--host", "127.0.0.1", "--data", str(tmp_path / "data")]
        with RunningHub("up", *entry(), *own, directory=tmp_path) as hub:
            hub.until(lambda hub=hub: is_healthy(hub.url))
            assert hub.get("api/v1/nodes")["items"] == []
            assert hub.end(15) == 0
            assert not is_healthy(hub.url)


def run_lines() -> list[list[str]]:
    blocks = "\n".join(re.findall(r"```sh\n(.*?)```", DOCUMENT.read_text("utf-8"), flags=re.DOTALL))
    lines = blocks.replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True) for line in lines if re.match(r"(podman|docker) run", line)]


def place_of(mount: str) -> str:
    return mount.removesuffix(":ro").split(":")[-1]


def test_the_lines_of_the_docs_are_those_of_the_recipe():
    lines = run_lines()
    assert {line[0] for line in lines} == {"podman", "docker"}
    for line in lines:
        for option, value in pairwise(line):
            if option == "-p":
                assert value.endswith(":" + one("EXPOSE"))
            if option == "-v":
                assert place_of(value) in PLACES
        after = line[len(line) - line[::-1].index("gpulse") :]
        if "--entrypoint" in line:
            typer.main.get_command(app).commands[after[0]].make_context(after[0], after[1:])
        else:
            assert "--name" in line
            UP.make_context("up", [*entry(), *after])


def test_places_of_the_docs_are_in_the_recipe():
    assert every("WORKDIR")[-1] == "/settings"
    assert all(place in every("RUN")[1] for place in ("/data", "/home/gpulse/.ssh"))


def variables() -> dict[str, str]:
    return dict(word.split("=", 1) for line in every("ENV") for word in shlex.split(line))


def test_commands_beside_the_hub_are_those_of_who_runs_it(tmp_path: Path):
    """As `podman exec gpulse gpulse free` is run: where nobody else may read, by the hub's socket."""
    assert variables()["GPULSE_DATA"] == one("VOLUME")
    data = tmp_path / "data"
    (tmp_path / "gpulse.toml").write_text('access.anonymous = "none"\n')
    own = ["--host", "127.0.0.1", "--data", str(data)]
    with RunningHub("up", *entry(), *own, directory=tmp_path) as hub:
        hub.until(lambda: list(data.glob("local-*")))

        def free(**more: str) -> subprocess.CompletedProcess[str]:
            environment = {**os.environ, "HOME": str(tmp_path), "GPULSE_HUB": hub.url, **more}
            command = [str(Path(sys.executable).with_name("gpulse")), "free"]
            # Elsewhere than the settings, which name no folder here.
            place = tmp_path / "elsewhere"
            place.mkdir(exist_ok=True)
            return subprocess.run(
                command,
                env=environment,
                cwd=place,
                capture_output=True,
                text=True,
                check=False,
                timeout=PATIENCE_SECONDS,
            )

        refused = free()
        assert refused.returncode == 2
        assert "gpulse login --hub" in refused.stderr
        assert "--data DIR" in refused.stderr
        # 1: there are none.
        assert free(GPULSE_DATA=str(data)).returncode == 1
        assert hub.end(15) == 0


def test_what_the_docs_run_in_a_container_are_commands(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GPULSE_DATA", variables()["GPULSE_DATA"])
    lines = re.findall(r"podman exec (?:-it )?gpulse gpulse ([^`\n]+)", DOCUMENT.read_text("utf-8"))
    assert len(lines) >= 5
    for line in lines:
        words = shlex.split(line, comments=True)
        command = typer.main.get_command(app)
        while hasattr(command, "commands"):
            command = command.commands[words.pop(0)]
        found = command.make_context("gpulse", words).params
        # What works on the data folder must be told where that is.
        assert str(found.get("data", PLACES[0])) == PLACES[0], line


def test_the_compose_file_of_the_docs():
    text = re.search(r"```yaml\n(.*?)```", DOCUMENT.read_text("utf-8"), flags=re.DOTALL)
    assert text
    compose = yaml.safe_load(text[1])
    service = compose["services"]["gpulse"]
    assert (ROOT / service["build"]["dockerfile"]).exists()
    assert set(service["build"]["args"]) <= {argument.split("=")[0] for argument in every("ARG")}
    assert service["ports"] == [f"127.0.0.1:7070:{one('EXPOSE')}"]
    assert {place_of(volume) for volume in service["volumes"]} == set(PLACES)
    assert "/home/gpulse/.ssh:ro" in " ".join(service["volumes"])
    assert set(compose["volumes"]) == {"gpulse"}
    UP.make_context("up", [*entry(), *service["command"]])
