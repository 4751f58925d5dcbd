"""`make dist`: the wheel has the page in it, and the wheelhouse installs where there is no network."""

import os
import re
import select
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpulse_probe import __version__
from scripts import dist
from tests.no_network import NoNetwork
from tests.patience import PATIENCE_SECONDS

ROOT = Path(__file__).resolve().parent.parent
UV = Path(sys.executable).with_name("uv")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder, and what was said."""
    folder = tmp_path_factory.mktemp("made") / "dist"
    command = [sys.executable, "-m", "scripts.dist", "--to", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


@pytest.fixture
def alone(tmp_path: Path) -> dict[str, str]:
    """The environment of somebody for whom nothing is set: no index, no folder of wheels, no cache."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_", "PYTHON"))}
    return {**kept, "PIP_CONFIG_FILE": os.devnull, "HOME": str(tmp_path), "UV_NO_CONFIG": "1"}


@pytest.mark.timeout(600)
def test_the_wheel_holds_the_page_and_nothing_else(made: tuple[Path, str]):
    wheel = made[0] / f"gpulse-{__version__}-py3-none-any.whl"
    folder = "gpulse/api/static/"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        index = archive.read(folder + "web/index.html").decode()
        metadata = archive.read(f"gpulse-{__version__}.dist-info/METADATA").decode()
    named = re.findall(r'(?:src|href)="\./(assets/[^"]+)"', index)
    assert any(name.endswith(".js") for name in named)
    assert {f"{folder}web/{name}" for name in named} <= names
    assert {folder + "export/index.html", folder + "export/page.js"} <= names
    assert {name.split("/")[0] for name in names} == {"gpulse", "gpulse_probe", f"gpulse-{__version__}.dist-info"}
    assert "nodejs" not in metadata


@pytest.mark.timeout(600)
def test_what_it_says_is_so(made: tuple[Path, str]):
    folder, said = made
    wheel = folder / f"gpulse-{__version__}-py3-none-any.whl"
    house = sorted(path.name for path in (folder / "wheelhouse").iterdir())
    assert wheel.name in house
    assert any(name.startswith("psycopg_binary-") for name in house)
    assert all(name.endswith(".whl") for name in house)
    size = sum(path.stat().st_size for path in (folder / "wheelhouse").iterdir())
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB" in said
    assert f"{folder}/wheelhouse: {size / 1e6:.1f} MB, {len(house)} wheels, for Python {here} on Linux" in said
    assert f"python{here} -m pip install --no-index --find-links {folder}/wheelhouse gpulse" in said


@pytest.mark.timeout(600)
def test_it_installs_and_runs_with_no_network(made: tuple[Path, str], alone: dict[str, str], tmp_path: Path):
    house = made[0] / "wheelhouse"
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    # What is not compiled now is when it is first run: the test has no second run.
    quick = {**alone, "PIP_NO_COMPILE": "1"}
    with NoNetwork() as machine:
        assert [line.split(":")[0].strip() for line in machine.run("cat", "/proc/net/dev").splitlines()[2:]] == ["lo"]
        pip = [sys.executable, "-m", "pip", "--python", str(venv / "bin/python")]
        machine.run(*pip, "install", "--no-index", "--find-links", str(house), "gpulse", environment=quick)
        gpulse = venv / "bin/gpulse"
        assert machine.run(gpulse, "--version", environment=alone) == f"gpulse {__version__}\n"
        for url in _demo(machine, gpulse, alone, tmp_path):
            assert machine.until_it_answers(url + "healthz") == '{"status":"ok"}'
            index = machine.until_it_answers(url)
            scripts = re.findall(r'src="\./(assets/[^"]+\.js)"', index)
            assert scripts
            assert len(machine.until_it_answers(url + scripts[0])) > 10_000
            assert '"gpus":' in machine.until_it_answers(url + "api/v1/summary")


def _demo(machine: NoNetwork, gpulse: Path, environment: dict[str, str], folder: Path) -> Iterator[str]:
    """Its address, once; then it is ended."""
    command = [*machine.enter, gpulse, "demo", "--nodes", "3", "--port", "0", "--data", folder / "data"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as hub:
        try:
            assert hub.stdout
            ready = select.select([hub.stdout], [], [], PATIENCE_SECONDS)[0]
            line = hub.stdout.readline().decode() if ready else ""
            assert line.startswith("http://127.0.0.1:"), line
            yield line.strip()
        finally:
            hub.kill()


@pytest.mark.timeout(600)
def test_the_lines_for_uv(made: tuple[Path, str], alone: dict[str, str], tmp_path: Path):
    """Those of docs/install.md."""
    house, wheel = made[0] / "wheelhouse", made[0] / f"gpulse-{__version__}-py3-none-any.whl"
    environment = {**alone, "UV_CACHE_DIR": str(tmp_path / "cache"), "UV_TOOL_DIR": str(tmp_path / "tools")}
    environment |= {"UV_TOOL_BIN_DIR": str(tmp_path / "bin"), "UV_PYTHON": sys.executable}
    away = ["--no-index", "--find-links", str(house)]
    with NoNetwork() as machine:
        ran = machine.run(UV, "tool", "run", *away, "--from", wheel, "gpulse", "--version", environment=environment)
        assert ran == f"gpulse {__version__}\n"
        machine.run(UV, "tool", "install", *away, "gpulse", environment=environment)
        assert machine.run(tmp_path / "bin/gpulse", "--version", environment=alone) == f"gpulse {__version__}\n"


def test_a_platform_includes_those_that_need_less():
    found = dist.tags("manylinux_2_17_x86_64")
    assert found[0] == "manylinux_2_17_x86_64"
    assert "manylinux_2_5_x86_64" in found
    assert "manylinux_2_18_x86_64" not in found
    assert found[-3:] == ["manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64"]
    assert "manylinux2014_aarch64" not in dist.tags("manylinux_2_12_aarch64")


def test_the_glibc_that_wheels_need():
    newer = "c-1-cp311-abi3-manylinux_2_34_x86_64.whl"
    older = "n-2-cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.manylinux_2_28_x86_64.whl"
    oldest = "w-3-cp311-cp311-manylinux1_x86_64.manylinux_2_28_x86_64.manylinux_2_5_x86_64.whl"
    assert dist.needed_glibc([newer, older, oldest]) == 34
    assert dist.needed_glibc([older, oldest]) == 17
    assert dist.needed_glibc([oldest]) == 5
    assert dist.needed_glibc(["p-4-py3-none-any.whl"]) is None


def test_for_another_machine_pip_is_told_what_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    asked: list[list[str]] = []

    def run(command: list[str], _failure: str) -> str:
        asked.append(command)
        if "wheel" in command:
            Path(command[command.index("--wheel-dir") + 1], "gpulse-2-py3-none-any.whl").touch()
        return ""

    monkeypatch.setattr(dist, "_run", run)
    for name in ("gpulse-1-py3-none-any.whl", "wheelhouse/gpulse-1-py3-none-any.whl", "other.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert dist.main(["--to", str(tmp_path), "--python-version", "3.13", "--platform", "manylinux_2_28_aarch64"]) == 0
    download = asked[-1]
    assert download[download.index("--python-version") + 1] == "3.13"
    assert {"manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"} <= set(download)
    # Of before there is nothing left that pip could take instead, and what is not ours stays.
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {"gpulse-2-py3-none-any.whl", "wheelhouse/gpulse-2-py3-none-any.whl", "other.txt"}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--python", "python3.99"], "there is no python3.99"),
        (["--python-version", "3.10", "--platform", "manylinux_2_28_x86_64"], "needs Python 3.11 or later, not 3.10"),
        (["--python-version", "3", "--platform", "manylinux_2_28_x86_64"], '"3" is no version'),
        (["--python-version", "3.13", "--platform", "arm"], '"arm" is no platform; as in'),
    ],
)
def test_what_cannot_be_made_is_told_in_one_line(arguments, expected, capsys, tmp_path):
    assert dist.main(["--to", str(tmp_path / "dist"), *arguments]) == 1
    said = capsys.readouterr().err
    assert expected in said
    assert said.count("\n") == 1
    assert not (tmp_path / "dist").exists()


def test_what_pip_says_against_it_is_told(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(dist, "ROOT", tmp_path / "nothing")
    assert dist.main(["--to", str(tmp_path / "dist")]) == 1
    said = capsys.readouterr().err
    assert "nothing" in said
    assert said.endswith("the wheel of gpulse could not be made\n")
