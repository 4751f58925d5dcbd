"""An agent of an older version becomes the hub's own, and one that has another key does not."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpulse.auth.upgrades import Upgrades
from gpulse.transport.bundle import make_agent
from gpulse_probe import __version__
from tests.interpreters import interpreters
from tests.system.agents import Agent, Site, write_agent

OLD = {
    "gpulse_probe/__init__.py": (__version__.encode(), b"0.0.1"),
    # Without the time over which nodes spread out.
    "gpulse_probe/upgrade.py": (b"LEAST_SPREAD_SECONDS = 10.0", b"LEAST_SPREAD_SECONDS = 0.0"),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Site(tmp_path_factory.mktemp("site")) as site:
        yield site


def installed(site: Site, node: str, key: str, python: str) -> Agent:
    """As `gpulse agent install` leaves it: program, token and key in one folder."""
    folder = site.folder / node / ".local" / "share" / "gpulse-agent" / node
    file = write_agent(folder / "agent.pyz", OLD)
    for name, text in (("token", site.token(node)), ("upgrade-key", key)):
        (folder / name).write_text(text + "\n")
        (folder / name).chmod(0o600)
    return site.agent(node, "--upgrade", program=[python, "-S", file])


def started(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[19]


@pytest.mark.parametrize("version", [next(iter(interpreters())), list(interpreters())[-1]])
def test_upgrade(site: Site, version: str):
    node = f"old{version.replace('.', '-')}"
    agent = installed(site, node, Upgrades(site.data).upgrade_key(node), interpreters()[version])
    since = started(agent.process.pid)
    agent.says(f"upgraded from 0.0.1 to {__version__}")
    site.hub.until(lambda: site.hub.node(node).get("probe_version") == __version__)
    site.until_up(node)
    # The same process went on as another program.
    assert started(agent.process.pid) == since
    assert (agent.folder / "agent.pyz").read_bytes() == make_agent().data
    assert sorted(file.name for file in agent.folder.iterdir()) == ["agent.pyz", "token", "upgrade-key"]
    assert site.log_text(node).count("its agent connected") == 2
    assert agent.words.count("upgraded") == 1
    assert agent.end() == 0


def test_another_key(site: Site):
    """Another hub's, or one that was made for another node."""
    oldest = next(iter(interpreters().values()))
    agent = installed(site, "stays", Upgrades(site.data).upgrade_key("another"), oldest)
    before = (agent.folder / "agent.pyz").read_bytes()
    words = agent.says(f"cannot upgrade to {__version__}")
    assert f"is not signed with the key in {agent.folder / 'upgrade-key'}" in words
    assert site.until_up("stays")["probe_version"] == "0.0.1"
    assert (agent.folder / "agent.pyz").read_bytes() == before
    assert sorted(file.name for file in agent.folder.iterdir()) == ["agent.pyz", "token", "upgrade-key"]
    # It goes on as it was, and asks not before an hour has passed.
    lines = site.metric("gpulse_hub_lines_total")
    site.hub.until(lambda: site.metric("gpulse_hub_lines_total") > lines + 5)
    assert agent.words.count("cannot upgrade") == 1
    assert agent.process.poll() is None
