"""The agent as a service where there is no systemd: a process of its own, a pid file, a crontab."""

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gpulse.transport.bundle import make_agent
from gpulse_probe import __version__
from gpulse_probe.service import control, log, process
from gpulse_probe.service.folder import Folder
from tests.interpreters import interpreters
from tests.patience import PATIENCE_SECONDS
from tests.probe.machine import IDLE, Machine, alive, until

OLDEST = next(iter(interpreters().values()))
TOKEN = "gpn_0123456789ab_" + "0" * 48


@pytest.fixture
def machine(tmp_path):
    one = Machine(tmp_path, OLDEST)
    yield one
    one.end()


def test_install_runs_the_agent_and_keeps_its_secrets(machine):
    told = machine.install(files={"token": TOKEN, "upgrade-key": "ab" * 32})
    assert (told["outcome"], told["by"], told["at_boot"]) == ("installed", "detached", True)
    assert (told["version"], told["token_id"]) == (__version__, "0123456789ab")
    assert told["notes"] == []
    folder = machine.folder()
    assert (folder / "agent.pyz").read_bytes() == make_agent().data
    assert (folder / "token").read_text() == TOKEN
    assert {stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())} == {0o700, 0o600}
    assert alive(told["pid"])
    # Its pid is known before it has become the agent.
    words = "\0".join([OLDEST, str(folder / "agent.pyz"), *IDLE, ""])
    until(lambda: Path(f"/proc/{told['pid']}/cmdline").read_text() == words)
    # Nobody's child, in a session of its own, without the terminal or the pipes of whoever installed it.
    assert os.getsid(told["pid"]) != os.getsid(0)
    assert Path(f"/proc/{told['pid']}/fd/0").readlink() == Path(os.devnull)
    assert Path(f"/proc/{told['pid']}/fd/1").readlink() == folder / "log"
    assert until(lambda: json.loads((folder / "log").read_text() or "{}"))["node"] == "idle"
    assert os.getpriority(os.PRIO_PROCESS, told["pid"]) == os.getpriority(os.PRIO_PROCESS, 0) + 5


@pytest.mark.parametrize("version", interpreters())
def test_every_python_found(version, tmp_path):
    machine = Machine(tmp_path, interpreters()[version])
    try:
        assert machine.install()["outcome"] == "installed"
        assert machine.ask("status")["outcome"] == "running"
        assert machine.ask("remove") == {"outcome": "removed"}
        until(lambda: machine.processes() == [])
    finally:
        machine.end()


def test_to_install_again_changes_nothing(machine):
    first = machine.install(files={"token": TOKEN})
    again = machine.install()
    assert (again["outcome"], again["pid"], again["token_id"]) == ("unchanged", first["pid"], "0123456789ab")
    other = machine.install(arguments=[*IDLE, "--deadline", "9"])
    assert other["outcome"] == "updated"
    assert other["pid"] != first["pid"]
    assert not alive(first["pid"])
    assert machine.crontab.read_text().count("@reboot") == 1


def test_a_damaged_agent_is_replaced(machine):
    first = machine.install()
    (machine.folder() / "agent.pyz").write_bytes(b"half of it")
    again = machine.install()
    assert (again["outcome"], again["version"]) == ("updated", __version__)
    assert not alive(first["pid"])


def test_status_stop_restart_remove(machine):
    assert machine.ask("status") == {"outcome": "absent"}
    assert machine.ask("restart") == {"outcome": "absent"}
    assert machine.ask("stop") == {"outcome": "absent"}
    first = machine.install()
    told = machine.ask("status")
    assert (told["outcome"], told["pid"]) == ("running", first["pid"])
    assert told["since"] == pytest.approx(first["since"])
    for _ in range(2):
        told = machine.ask("stop")
        assert (told["outcome"], told["pid"]) == ("stopped", None)
        until(lambda: machine.processes() == [])
    machine.cron()
    assert machine.ask("status")["outcome"] == "stopped", "cron started what a person had stopped"
    told = machine.ask("restart")
    assert (told["outcome"], alive(told["pid"])) == ("running", True)
    assert machine.ask("remove") == {"outcome": "removed"}
    assert machine.ask("remove") == {"outcome": "absent"}
    until(lambda: machine.processes() == [])
    assert not machine.crontab.exists()
    assert list((machine.home / ".local/share").iterdir()) == []


def test_cron_starts_it_after_its_end_and_after_a_boot(machine):
    first = machine.install()
    os.kill(first["pid"], signal.SIGKILL)
    until(lambda: not alive(first["pid"]))
    assert machine.ask("status")["outcome"] == "stopped"
    machine.cron()
    second = machine.ask("status")
    assert second["outcome"] == "running"
    machine.cron()
    assert machine.ask("status")["pid"] == second["pid"]
    machine.ask("stop")
    # What a person stopped before the last boot runs again.
    (machine.folder() / "stopped").write_text("another boot")
    machine.cron()
    assert machine.ask("status")["outcome"] == "running"


@pytest.mark.parametrize("mark", ["{pid} 1 {boot}\n", "{pid} {start} another-boot\n", "{pid}\n", "", "x y z\n"])
def test_a_pid_that_passed_on_to_another_is_left_alone(machine, pids, mark):
    first = machine.install()
    boot = (machine.folder() / "pid").read_text().split()[2]
    machine.ask("stop")
    start = Path(f"/proc/{pids[0]}/stat").read_text().rpartition(")")[2].split()[19]
    (machine.folder() / "pid").write_text(mark.format(pid=pids[0], start=start, boot=boot))
    assert machine.ask("status")["outcome"] == "stopped"
    assert machine.ask("stop")["outcome"] == "stopped"
    assert machine.ask("restart")["pid"] not in (pids[0], first["pid"])
    assert machine.ask("remove")["outcome"] == "removed"
    assert alive(pids[0])


def test_nodes_that_share_a_home(machine):
    one, two = machine.install("gpu01"), machine.install("gpu02")
    assert machine.crontab.read_text().count("@reboot") == 2
    machine.ask("remove", "gpu01")
    assert machine.ask("status", "gpu01") == {"outcome": "absent"}
    assert machine.ask("status", "gpu02")["pid"] == two["pid"]
    assert not alive(one["pid"])
    assert "gpu01" not in machine.crontab.read_text()


@pytest.mark.parametrize("missing", ["service.json", "agent.pyz", "pid", "log", "crontab", "everything"])
def test_removed_also_where_half_of_it_is_missing(machine, missing):
    told = machine.install()
    os.kill(told["pid"], signal.SIGKILL)
    if missing == "crontab":
        machine.crontab.unlink()
    else:
        for path in machine.folder().iterdir():
            if missing in (path.name, "everything"):
                path.unlink()
    assert machine.ask("remove") == {"outcome": "removed"}
    assert not machine.folder().exists()
    assert not machine.crontab.exists()


def test_without_its_settings_it_is_still_stopped(machine):
    told = machine.install()
    (machine.folder() / "service.json").unlink()
    assert machine.ask("status")["outcome"] == "running"
    assert machine.ask("stop")["outcome"] == "stopped"
    assert not alive(told["pid"])


def test_an_agent_that_ends_at_once_is_told_with_its_words(machine):
    told = machine.install(arguments=["--no-such-option"], seconds=10.0)
    assert told["outcome"] == "failed"
    assert "it ended right after its start: gpulse-probe: unknown argument --no-such-option" in told["error"]
    assert str(machine.folder() / "log") in told["error"]
    assert machine.install()["outcome"] == "updated"


def test_one_that_does_not_heed_signals_is_ended_by_force(machine, monkeypatch):
    machine.install()
    process = subprocess.Popen(["sh", "-c", "trap '' TERM; echo; while :; do sleep 0.1; done"], stdout=subprocess.PIPE)
    try:
        assert process.stdout and process.stdout.readline()
        start = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19]
        mark = (machine.folder() / "pid").read_text().split()
        machine.ask("stop")
        (machine.folder() / "pid").write_text(f"{process.pid} {start} {mark[2]}\n")
        from gpulse_probe.service import process as module

        monkeypatch.setattr(module, "END_SECONDS", 0.3)
        assert module.end(Folder(str(machine.folder())))
        assert process.wait(PATIENCE_SECONDS) == -signal.SIGKILL
    finally:
        process.kill()
        process.communicate()


def test_no_crontab(machine):
    machine.program("crontab", "echo 'You (x) are not allowed to use this program (crontab)' >&2; exit 1")
    told = machine.install()
    assert (told["outcome"], told["at_boot"]) == ("installed", False)
    assert told["notes"] == [
        "crontab refuses (You (x) are not allowed to use this program (crontab)): "
        "it will not start again by itself, neither after a reboot nor after its end"
    ]
    assert machine.ask("remove") == {"outcome": "removed"}


def test_homes_that_cannot_be_written(machine):
    (machine.home / ".local").write_text("a file")
    told = machine.install()
    assert told["outcome"] == "failed"
    assert f"cannot make {machine.folder()}: Not a directory" in told["error"]
    assert machine.ask("status")["outcome"] == "failed"
    machine.home = Path("/proc")
    assert machine.install()["outcome"] == "failed"
    assert not machine.crontab.exists()


def test_names_that_are_no_folder(machine):
    for name in ("../evil", ".hidden", "", "a\nb"):
        told = machine.install(name)
        assert told["outcome"] == "failed"
        assert "cannot be the name of a folder" in told["error"]
    assert machine.install("2001:db8::7")["outcome"] == "installed"
    assert machine.install("gpu 100%")["outcome"] == "installed"
    for one in machine.processes():
        os.kill(one, signal.SIGKILL)
    until(lambda: machine.processes() == [])
    machine.cron()
    assert machine.ask("status", "gpu 100%")["outcome"] == "running"


def test_a_long_log_is_put_aside(machine):
    machine.install()
    machine.ask("stop")
    (machine.folder() / "log").write_bytes(b"old\n" * (log.MOST_BYTES // 4 + 1))
    machine.ask("restart")
    assert (machine.folder() / "log.1").read_bytes().startswith(b"old\n")
    assert until((machine.folder() / "log").read_bytes).startswith(b"{")
    assert machine.ask("stop")["log"][0].startswith('{"schema"')


def test_two_orders_at_once_leave_one_agent(machine):
    agent = make_agent()
    order = json.dumps({"node": "gpu01", "arguments": IDLE, "files": {}}).encode() + b"\n"
    command = ["sh", "-c", agent.command("service", "install", python=machine.python)]
    asked = [
        subprocess.Popen(command, env=machine.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    for one in asked:
        assert one.stdin
        one.stdin.write(agent.data + order)
        one.stdin.close()
    told = [json.loads(one.stdout.read().splitlines()[-1]) for one in asked if one.stdout]
    for one in asked:
        one.wait(PATIENCE_SECONDS)
    assert sorted(one["outcome"] for one in told) == ["installed", "unchanged", "unchanged"]
    running = [pid for pid in machine.processes() if b"agent.pyz" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert told[0]["pid"] in running
    assert {one["pid"] for one in told} == {told[0]["pid"]}


def test_only_the_one_file_can_be_installed(machine):
    """What is installed with pip is no single file."""
    ran = subprocess.run(
        [sys.executable, "-m", "gpulse_probe", "service", "install"],
        env=machine.environment(),
        input=b'{"node": "gpu01", "arguments": [], "files": {}}\n',
        capture_output=True,
        check=True,
    )
    assert "run: gpulse agent install" in json.loads(ran.stdout)["error"]


@pytest.mark.parametrize("arguments", [(), ("fly",), ("run",), ("run", "/nonexistent"), ("keep", "/nonexistent")])
def test_mistakes_are_told_in_one_line(arguments):
    ran = subprocess.run(
        [sys.executable, "-m", "gpulse_probe", "service", *arguments], capture_output=True, check=False
    )
    assert ran.returncode == 1
    assert ran.stderr.count(b"\n") == 1


def test_a_mark_that_comes_while_it_is_looked_for(tmp_path, monkeypatch):
    """It was taken for the mark of an agent that had ended already."""
    folder = Folder(str(tmp_path))
    read = folder.read

    def read_and_then_written(name):
        found = read(name)
        if found is None and name == process.PID:
            monkeypatch.undo()
            process.remember(folder)
        return found

    monkeypatch.setattr(folder, "read", read_and_then_written)
    assert control._until_it_runs(folder).pid == os.getpid()
