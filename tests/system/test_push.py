"""Agents that push, on every Python there is, to a real hub."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import httpx
import pytest

from gpulse_probe import __version__
from tests.fake_nvml import FakeNvml, NoCompilerError, Process, h100_node
from tests.hub.running import GPULSE
from tests.interpreters import interpreters
from tests.patience import PATIENCE_SECONDS
from tests.probe.running import only_child
from tests.system.agents import Agent, Site

HOURS = 3600.0
# Whatever asks for the time is answered with another.
SHIFTED = """
import runpy, sys, time
real = time.time
time.time = lambda: real() + float({seconds!r})
sys.argv[0] = {file!r}
runpy.run_path({file!r}, run_name="__main__")
"""


@pytest.fixture(scope="module")
def job() -> Iterator[int]:
    """The pid of a process that works on a GPU."""
    with subprocess.Popen(["sleep", "300"]) as process:
        yield process.pid
        process.kill()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, job: int) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    try:
        fake = FakeNvml(folder)
    except NoCompilerError:
        pytest.skip("gcc is missing")
    fake.describe(h100_node(2, [Process(job, gpu=1, memory="5GiB", sm=40)], moving=True))
    with Site(folder, fake.environment({})) as site:
        yield site


@pytest.fixture(scope="module")
def nodes(site: Site) -> dict[str, Agent]:
    """A node for each Python, all at once, with its token in the agent's folder."""
    names = {version: f"py{version.replace('.', '-')}" for version in interpreters()}
    tokens = site.tokens(",".join(names.values()))
    found = {}
    for version, python in interpreters().items():
        folder = site.folder / names[version] / ".local" / "share" / "gpulse-agent" / names[version]
        folder.mkdir(parents=True)
        (folder / "token").write_text(tokens[names[version]] + "\n")
        found[version] = site.agent(names[version], python=python)
    return found


@pytest.mark.parametrize("version", interpreters())
def test_every_python(version: str, site: Site, nodes: dict[str, Agent], job: int):
    agent = nodes[version]
    node = site.until_up(agent.node)
    assert node["address"] == "push"
    assert node["probe_version"] == __version__
    assert node["gpu_source"] == "nvml"
    assert [gpu["model"] for gpu in node["gpus"]] == ["H100 80G"] * 2
    assert node["gpus"][1]["people"][0]["memory_bytes"] == 5 << 30
    assert [process["pid"] for process in node["processes"] if process["gpus"]] == [job]
    assert "connected to http://127.0.0.1:" in agent.words
    # Values go on after the first, whole line.
    before = node["host"]["uptime_seconds"]
    site.hub.until(lambda: site.hub.node(agent.node)["host"]["uptime_seconds"] > before)
    child = only_child(agent.process.pid)
    assert agent.end(signal.SIGTERM) == 0
    site.until_state(agent.node, "down")
    assert "its agent was stopped" in site.hub.node(agent.node)["reason"]
    assert not _runs(child)
    # On a busy machine it may have read something before it was connected.
    rest = agent.words.splitlines()[1:]
    assert all("told the hub what it missed" in words for words in rest)


def _runs(pid: int) -> bool:
    return subprocess.run(["kill", "-0", str(pid)], capture_output=True, check=False).returncode == 0


def test_as_a_command_of_gpulse(site: Site):
    """With what people have on a workstation: gpulse itself, its token in the environment."""
    agent = site.agent("desk", token=site.token("desk"), program=[GPULSE, "agent"])
    assert len(site.until_up("desk")["gpus"]) == 2
    assert agent.end(signal.SIGINT) == 0


@pytest.mark.parametrize("seconds", [5 * HOURS, -7 * HOURS])
def test_clock_hours_off(site: Site, seconds: float):
    name = "ahead" if seconds > 0 else "behind"
    code = SHIFTED.format(seconds=seconds, file=str(site.agent_file))
    agent = site.agent(name, token=site.token(name), program=[sys.executable, "-S", "-c", code])
    site.until_up(name)
    # The node's clock says nothing about how old a line is.
    for _ in range(3):
        node = site.until_up(name)
        assert node["age_seconds"] < 60
        assert node["clock_difference_seconds"] == pytest.approx(seconds, abs=5)
        time.sleep(0.3)
    lines = httpx.get(f"{site.url}metrics", params={"only": "nodes"}, timeout=PATIENCE_SECONDS).text.splitlines()
    (told,) = [line for line in lines if line.startswith(f'gpulse_node_clock_offset_seconds{{node="{name}"')]
    assert float(told.split()[-1]) == pytest.approx(seconds, abs=5)
    assert agent.end() == 0


def test_plain_get_says_how_to_speak(site: Site):
    answer = httpx.get(f"{site.url}api/v1/ingest", timeout=PATIENCE_SECONDS)
    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"
    assert "WebSocket" in answer.json()["error"]["message"]
    assert "POST" in answer.json()["error"]["message"]
