"""The agent's file: it runs on every Python, and replaces itself by the hub's newer one, and by nothing else."""

import hashlib
import hmac
import io
import os
import subprocess
import sys
import zipfile

import pytest

from gpulse.transport.bundle import AGENT_ONLY, make_agent, make_bundle
from gpulse_probe import __version__
from gpulse_probe.upgrade import numbers
from tests.interpreters import interpreters
from tests.patience import PATIENCE_SECONDS
from tests.probe.hub_stand_in import StandInHub, http, refusal
from tests.probe.pushing import NODE_TOKEN, RunningAgent, files
from tests.probe.running import only_child

AGENT = "/api/v1/ingest/agent"
KEY = "5e" * 32


def agent_of(version, broken=False):
    """The agent with another version."""
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(make_agent().data)) as old, zipfile.ZipFile(packed, "w") as new:
        for entry in old.infolist():
            data = old.read(entry)
            if entry.filename == "gpulse_probe/__init__.py":
                data = data.replace(__version__.encode(), version.encode())
            if entry.filename == "gpulse_probe/agent.py" and broken:
                data = b"import no_such_module\n"
            new.writestr(entry, data)
    return packed.getvalue()


def signed(data, key=KEY, version="9.9.9"):
    signature = hmac.new(key.encode(), data, hashlib.sha256).hexdigest()
    headers = (f"X-Gpulse-Version: {version}", f"X-Gpulse-Signature: {signature}")
    return lambda _headers, _body: http(200, data, *headers, kind="application/zip")


@pytest.fixture
def hub():
    with StandInHub() as stand_in:
        stand_in.hello["gpulse"] = "9.9.9"
        yield stand_in


@pytest.fixture
def installed(tmp_path, hub):
    """Starts an agent from a file of its own, version 0.0.1, that upgrades at once."""
    folder = tmp_path / "a"
    folder.mkdir()
    file = folder / "agent.pyz"
    # Without the pause before it, for the sake of the test.
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(agent_of("0.0.1"))) as old, zipfile.ZipFile(packed, "w") as new:
        for entry in old.infolist():
            data = old.read(entry)
            if entry.filename == "gpulse_probe/upgrade.py":
                assert b"LEAST_SPREAD_SECONDS = 10.0" in data
                data = data.replace(b"LEAST_SPREAD_SECONDS = 10.0", b"LEAST_SPREAD_SECONDS = 0.0")
            new.writestr(entry, data)
    file.write_bytes(packed.getvalue())
    (folder / "upgrade-key").write_text(KEY + "\n")

    def start(python=sys.executable):
        return RunningAgent(
            folder, hub.url, "--upgrade", python=python, program=["-S", str(file)], environment={"PYTHONPATH": ""}
        )

    start.file = file
    return start


@pytest.mark.parametrize("version", interpreters())
def test_upgrade(version, hub, installed):
    new = agent_of("9.9.9")
    asked = []
    page = signed(new)
    hub.pages[AGENT] = lambda headers, body: asked.append(headers["Authorization"]) or page(headers, body)
    with installed(interpreters()[version]) as agent:
        assert hub.visit().line()["probe"]["version"] == "0.0.1"
        first = hub.visit().line()
        assert first["probe"]["version"] == "9.9.9"
        assert first["probe"]["python"].startswith(version + ".")
        assert "upgraded from 0.0.1 to 9.9.9" in agent.words
        assert installed.file.read_bytes() == new
        assert asked == [f"Bearer {NODE_TOKEN}"]
        assert files(agent.folder) == ["agent.pyz", "log", "upgrade-key"]
        only_child(agent.process.pid)
        # The one it has become listens to signals as the first did.
        assert agent.end() == 0


def test_what_the_agent_before_left_is_cleared_away(hub, tmp_path):
    """A process that becomes another program keeps its children: one that ended late must not stay for ever."""
    program = """
import os, sys
pid = os.fork()
if not pid:
    os._exit(0)
os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
    with RunningAgent(tmp_path / "a", hub.url, program=["-c", program, "-m", "gpulse_probe"]) as agent:
        hub.visit().line()
        only_child(agent.process.pid)


REFUSED = {
    "bad signature": (lambda: signed(agent_of("9.9.9"), key="other"), "is not signed with the key in"),
    "no signature": (lambda: lambda _h, _b: http(200, agent_of("9.9.9")), "is not signed with the key in"),
    "broken": (lambda: signed(agent_of("9.9.9", broken=True)), "does not run here: ModuleNotFoundError: "),
    "no zip": (lambda: signed(b"nothing"), "does not run here: "),
    "older under a newer name": (lambda: signed(agent_of("0.0.1")), "what the hub sent is 0.0.1, not newer than 0.0.1"),
    "refused": (lambda: lambda _h, _b: refusal(404, "no_agent", "this hub has none"), "this hub has none"),
    "endless": (lambda: signed(b"x" * (5 << 20)), "its answer is longer than"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_taken(name, hub, installed):
    make, said = REFUSED[name]
    hub.pages[AGENT] = make()
    before = installed.file.read_bytes()
    with installed() as agent:
        visit = hub.visit()
        words = agent.says("cannot upgrade to 9.9.9: ")
        assert said in words
        assert "; trying again in an hour" in words
        assert installed.file.read_bytes() == before
        visit.line()
        assert agent.process.poll() is None
        assert files(agent.folder) == ["agent.pyz", "log", "upgrade-key"]
        only_child(agent.process.pid)


def test_without_a_key_nothing_is_asked_for(hub, installed):
    (installed.file.parent / "upgrade-key").unlink()
    asked = []
    hub.pages[AGENT] = lambda _headers, _body: asked.append(1) or b""
    with installed() as agent:
        agent.says("upgrade-key: No such file or directory")
        assert asked == []


@pytest.mark.parametrize("version", ["0.0.1", "0.0.0", "0.0.1rc3", "words"])
def test_a_hub_that_is_not_newer(version, hub, installed):
    asked = []
    hub.hello["gpulse"] = version
    hub.pages[AGENT] = lambda _headers, _body: asked.append(1) or b""
    with installed():
        visit = hub.visit()
        for _ in range(5):
            visit.line()
        assert asked == []


def test_not_from_a_file_of_its_own(hub, tmp_path):
    with RunningAgent(tmp_path / "a", hub.url, "--upgrade") as agent:
        agent.says("this agent does not upgrade itself")
        hub.visit().line()


def test_upgrade_is_only_done_when_it_was_asked_for(hub, tmp_path):
    file = tmp_path / "agent.pyz"
    file.write_bytes(agent_of("0.0.1"))
    with RunningAgent(tmp_path / "a", hub.url, program=[str(file)], environment={"PYTHONPATH": ""}) as agent:
        visit = hub.visit()
        for _ in range(5):
            visit.line()
        # On a busy machine there may be a line that was taken before the connection was there.
        (said,) = [line for line in agent.words.splitlines() if "told the hub what it missed" not in line]
        assert " connected to " in said


def test_versions_compare_by_their_numbers():
    assert numbers("0.10.0") > numbers("0.9.9")
    assert numbers("1.0.0") > numbers("0.99")
    assert numbers("0.2.0rc1") == numbers("0.2.0") == (0, 2, 0)
    assert numbers("0.2.dev1") == (0, 2)
    assert numbers("x") == numbers("") == ()
    assert numbers("1." + "9" * 5000) == (1,)


@pytest.mark.parametrize("version", interpreters())
def test_agent_runs_as_a_file_and_booted(version, tmp_path):
    agent = make_agent()
    file = tmp_path / "agent.pyz"
    file.write_bytes(agent.data)
    python = interpreters()[version]
    for word in ("push", "serve", "drop"):
        ran = subprocess.run(
            [python, "-S", file, word, "--help"], capture_output=True, text=True, check=True, timeout=PATIENCE_SECONDS
        )
        assert ran.stdout.startswith(f"usage: gpulse-probe {word} ")
    booted = subprocess.run(
        ["sh", "-c", agent.command("push", "--version", python=python)],
        input=agent.data,
        capture_output=True,
        check=True,
        timeout=PATIENCE_SECONDS,
    )
    assert booted.stdout.split(b"\n")[-2] == f"gpulse-probe {__version__}".encode()


def test_bundle_for_ssh_goes_without_the_agent():
    def names(bundle):
        with zipfile.ZipFile(io.BytesIO(bundle.data)) as archive:
            return {name.removeprefix("gpulse_probe/") for name in archive.namelist()}

    small, large = names(make_bundle()), names(make_agent())
    assert small < large
    left_out = large - small
    assert {"agent.py", "websocket.py", "outlets/push.py"} <= left_out
    for entry in AGENT_ONLY:
        assert any(name == entry or (entry.endswith("/") and name.startswith(entry)) for name in left_out), entry


def test_bundle_for_ssh_misses_nothing_it_imports(tmp_path):
    """Every module of it can be imported without those of the agent."""
    file = tmp_path / "probe.zip"
    file.write_bytes(make_bundle().data)
    with zipfile.ZipFile(file) as archive:
        modules = [
            name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            for name in archive.namelist()
            if name.startswith("gpulse_probe/")
        ]
    code = f"import sys; sys.path.insert(0, {str(file)!r})\nfor name in {modules!r}: __import__(name)"
    subprocess.run(
        [sys.executable, "-S", "-c", code], check=True, timeout=PATIENCE_SECONDS, env={"PATH": os.environ["PATH"]}
    )
