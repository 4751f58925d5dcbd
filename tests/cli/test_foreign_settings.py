"""A gpulse.toml that somebody else left in the folder: its settings could run programs."""

import os
from pathlib import Path

import pytest

from gpulse.cli import up
from gpulse.config import Config
from gpulse.discovery import ConfigFile, config_file
from gpulse.errors import ConfigError
from tests.cli.hub import gpulse

NOBODY = 65534
SETTINGS = '[hub]\ndata = "theirs"\nlocal = false\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GPULSE_TRUST_FOLDER", raising=False)
    return tmp_path


def of_somebody_else(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root can give it away; others become, for gpulse, somebody else."""
    if os.geteuid() == 0:
        os.chown(path, NOBODY, -1, follow_symlinks=False)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: NOBODY)


def test_it_is_refused_unless_it_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch):
    file = folder / "gpulse.toml"
    file.write_text(SETTINGS)
    assert up.read_config(None)[0].hub.data == folder / "theirs"
    of_somebody_else(file, monkeypatch)
    with pytest.raises(ConfigError, match=r"gpulse.toml belongs to .*, and its settings could run programs as you"):
        up.read_config(None)
    assert up.read_config(Path("gpulse.toml"))[0].hub.data == folder / "theirs"
    assert up.own_config() == Config(), "commands that ask a hub go on without it"
    monkeypatch.setenv("GPULSE_TRUST_FOLDER", str(folder))
    assert up.read_config(None)[0].hub.data == folder / "theirs"
    monkeypatch.setenv("GPULSE_TRUST_FOLDER", str(folder.parent))
    with pytest.raises(ConfigError):
        up.read_config(None)


def test_a_link_of_somebody_else_is_theirs_too(folder: Path, monkeypatch: pytest.MonkeyPatch):
    (folder / "other.toml").write_text(SETTINGS)
    (folder / "gpulse.toml").symlink_to("other.toml")
    assert up.read_config(None)[0].hub.data == folder / "theirs"
    of_somebody_else(folder / "gpulse.toml", monkeypatch)
    with pytest.raises(ConfigError, match="belongs to"):
        up.read_config(None)


def test_a_file_that_is_swapped_after_its_owner_was_looked_at(folder: Path, monkeypatch: pytest.MonkeyPatch):
    """Whoever can write to the folder can do that: the owner of what was read counts."""
    file = folder / "gpulse.toml"
    file.write_text(SETTINGS)
    source, said = ConfigFile(Path("gpulse.toml"), Config()), []
    source.targets(said.append)
    file.write_text(SETTINGS + '[[nodes]]\nhosts = ["evil"]\n')
    of_somebody_else(file, monkeypatch)
    for module in (up, config_file):
        monkeypatch.setattr(module, "other_owner", lambda _path: "")
    with pytest.raises(ConfigError, match="belongs to"):
        up.read_config(None)
    assert up.own_config() == Config()
    assert source.targets(said.append) == []
    assert "restart gpulse if you trust it" in said[-1]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_up_does_not_start(folder: Path):
    file, mark = folder / "gpulse.toml", folder / "ran"
    file.write_text(f'[hub]\nlocal = false\n[ssh]\nconfig_files = ["{folder}/ssh"]\n[[nodes]]\nhosts = ["a"]\n')
    (folder / "ssh").write_text(f"Host a\n  ProxyCommand touch {mark}\n")
    os.chown(file, NOBODY, -1)
    told = gpulse("up", "--port", "0", "--data", str(folder / "data"))
    assert told.returncode != 0
    assert "belongs to nobody" in told.stderr
    assert "--config gpulse.toml" in told.stderr
    assert not mark.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_that_becomes_somebody_elses_is_not_followed(folder: Path):
    file = folder / "gpulse.toml"
    file.write_text('[[nodes]]\nhosts = ["a"]\n')
    source, said = ConfigFile(Path("gpulse.toml"), Config()), []
    assert [one.name for one in source.targets(said.append)] == ["a"]
    file.write_text('[[nodes]]\nhosts = ["evil"]\n')
    os.chown(file, NOBODY, -1)
    assert [one.name for one in source.targets(said.append)] == ["a"]
    assert "belongs to nobody now; restart gpulse if you trust it" in said[-1]
    # Who named the file trusts whose it is.
    named = ConfigFile(Path("gpulse.toml"), Config())
    assert [one.name for one in named.targets(said.append)] == ["evil"]
