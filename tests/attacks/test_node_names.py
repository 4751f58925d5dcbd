"""Names of nodes that lead out of a folder: wherever a name becomes the name of a file or a folder."""

import json
import os
import subprocess
import urllib.parse
from pathlib import Path

import pytest

from gpulse.agents.node_secrets import PullSecrets
from gpulse.config.hosts import is_host, parse
from gpulse.discovery.consul import decode
from gpulse.errors import AgentError, HostsError, NodeLost
from gpulse.hub_side import Asked, _token
from gpulse_probe.options import UsageError
from gpulse_probe.outlets.drop import check_name
from gpulse_probe.outlets.push import _default_folder
from gpulse_probe.service.folder import ServiceError
from gpulse_probe.service.services import agent
from tests.api.fleets import card, snapshot
from tests.attacks.speaking import asked, status_of
from tests.discovery.consul_server import entry
from tests.hub.running import GPULSE, RunningHub
from tests.system.agents import CALM

OUTWARD = ("../../escaped", "..", ".", "/var/empty/escaped", "a/../../escaped", ".hidden", "a/b", "a\0b", "")
# As names of files they are possible, and as parts of an address or a command they must stay names.
ODD = ("..;x", "%2e%2e%2fescaped", "..%2fescaped", "a\\..\\escaped", "$(touch escaped)", "`touch escaped`", "a b;c")


def as_json(line: bytes) -> str:
    """Return a snapshot as files have it."""
    return line.decode()


@pytest.mark.parametrize("name", OUTWARD)
def test_nobody_makes_a_file_or_folder_of_it(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch):
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "escaped").write_text("x" * 48)
    monkeypatch.setenv("HOME", str(home))
    target = Asked(name=name, host="h", port=1, tls=False, token_file=home / "a" / "b" / "{name}", interval_seconds=1.0)
    with pytest.raises(NodeLost):
        _token(target)
    with pytest.raises(AgentError):
        PullSecrets(home / "data").files(name, None)
    with pytest.raises(UsageError):
        check_name(name)
    if name:
        with pytest.raises(UsageError):
            _default_folder(name)
        with pytest.raises(ServiceError):
            agent(name)
    assert set(tmp_path.rglob("*")) == {home, tmp_path / "escaped"}


@pytest.mark.parametrize("name", [*OUTWARD, *ODD, "fe80::1%../../escaped", "fe80::1%$(id)", "gpu1\n", "gpu1 -oX"])
def test_no_list_of_nodes_has_it(name: str):
    assert not is_host(name)
    problems: list[str] = []
    assert decode(json.dumps([entry(name)]).encode(), problems) == []
    assert problems
    if name != "gpu1 -oX":
        try:
            hosts = [address.host for address in parse(name)]
        except HostsError:
            return
        assert all(is_host(host) and not host.startswith((".", "/")) for host in hosts)


def test_files_in_a_drop_folder(tmp_path: Path):
    """Their names are those of nodes; what they say of themselves, and links, lead nowhere."""
    folder, site = tmp_path / "drop", tmp_path / "site"
    folder.mkdir()
    site.mkdir()
    (tmp_path / "outside.json").write_text(as_json(snapshot("link", [card("GPU-outside", 0)], probe=CALM)))
    (folder / "link.json").symlink_to(tmp_path / "outside.json")
    (folder / "honest.json").write_text(as_json(snapshot("honest", [card("GPU-1", 0)], probe=CALM)))
    for number, name in enumerate(ODD):
        (folder / f"{name}.json").write_text(as_json(snapshot(name, [card(f"GPU-odd{number}", 0)], probe=CALM)))
    for number, name in enumerate(OUTWARD):
        (folder / f"liar{number}.json").write_text(as_json(snapshot(name, [card(f"GPU-l{number}", 0)], probe=CALM)))
    (site / "gpulse.toml").write_text(f'[[drop_folders]]\npath = "{folder}"\n')
    environment = {**os.environ, "HOME": str(site)}
    before = {path for path in tmp_path.rglob("*") if not path.is_relative_to(site)}
    with RunningHub("up", "--no-local", "--data", str(site / "data"), environment=environment, directory=site) as hub:
        hub.until(lambda: hub.node("honest")["state"] == "up")
        names = {node["name"] for node in hub.get("api/v1/nodes")["items"]}
        assert "honest" in names
        assert not names & {"outside", "link", *OUTWARD}
        for name in (*ODD, *OUTWARD):
            target = f"/api/v1/nodes/{urllib.parse.quote(name, safe='')}"
            for address in (target, f"{target}/log", f"{target}/checks"):
                assert status_of(asked(hub.url, address)) in (200, 400, 404)
        made = site / "made" / "here"
        command = [GPULSE, "export", str(made), "--hub", hub.url]
        home = {**environment, "GPULSE_DATA": str(site / "data")}
        ran = subprocess.run(command, env=home, capture_output=True, text=True, timeout=60, check=False, cwd=site)
        assert ran.returncode == 0, ran.stderr
    assert {path for path in tmp_path.rglob("*") if not path.is_relative_to(site)} == before
    assert not [path for path in site.rglob("*") if "escaped" in path.name or "liar" in path.name]
