"""The agent as a service of a real systemd, and of a real cron, where the person does not linger."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from gpulse_probe.service import unit
from gpulse_probe.service.services import Service
from tests.interpreters import interpreters
from tests.probe.machine import IDLE, Machine, alive, until
from tests.system.own_machine import OwnMachine

OLDEST = next(iter(interpreters().values()))


@pytest.fixture
def own():
    with OwnMachine() as machine:
        yield machine


@pytest.fixture
def make(own, tmp_path):
    """A machine whose person has a systemd, and lingers or not."""
    machine = Machine(tmp_path, OLDEST, own.enter)

    def start(lingers: bool) -> Machine:
        (machine.bin / "systemctl").unlink()
        own.start_systemd(machine.home, lingers)
        return machine

    yield start
    machine.end()


def test_systemd_keeps_it(make, own):
    machine = make(lingers=True)
    told = machine.install("gpu 01")
    assert (told["outcome"], told["by"], told["at_boot"], told["notes"]) == ("installed", "systemd", True, [])
    assert not machine.crontab.exists()
    name = "gpulse-agent-gpu\\x2001.service"
    assert own.systemctl("is-enabled", name) == "enabled"
    shown = own.systemctl("show", name, "--property=MainPID,Restart,CPUWeight,LoadState")
    assert set(shown.splitlines()) == {f"MainPID={told['pid']}", "Restart=always", "CPUWeight=20", "LoadState=loaded"}
    # Its pid is known before it has become the agent.
    words = "\0".join([OLDEST, str(machine.folder("gpu 01") / "agent.pyz"), *IDLE, ""])
    until(lambda: Path(f"/proc/{told['pid']}/cmdline").read_text() == words)
    assert "schema" in until((machine.folder("gpu 01") / "log").read_text)
    assert "systemd.log" not in told["log"]

    assert (machine.install("gpu 01")["outcome"], machine.ask("status", "gpu 01")["pid"]) == ("unchanged", told["pid"])
    assert machine.install("gpu 01", [*IDLE, "--deadline", "9"])["outcome"] == "updated"

    for _ in range(2):
        assert machine.ask("stop", "gpu 01")["outcome"] == "stopped"
        assert own.systemctl("is-active", name) == "inactive"
    assert own.systemctl("is-enabled", name) == "enabled"
    told = machine.ask("restart", "gpu 01")
    assert told["outcome"] == "running"

    assert machine.ask("remove", "gpu 01") == {"outcome": "removed"}
    assert not alive(told["pid"])
    assert own.systemctl("show", name, "--property=LoadState") == "LoadState=not-found"
    assert list((machine.home / ".config").rglob("*gpulse*")) == []
    assert machine.ask("remove", "gpu 01") == {"outcome": "absent"}


def test_systemd_starts_it_after_its_end(make, own):
    machine = make(lingers=True)
    told = machine.install()
    path = machine.home / ".config/systemd/user/gpulse-agent-gpu01.service"
    assert 5 <= int(path.read_text().partition("RestartSec=")[2].split()[0]) <= 15
    # As it is, only sooner.
    (machine.home / ".config/systemd/user/gpulse-agent-gpu01.service.d").mkdir()
    (machine.home / ".config/systemd/user/gpulse-agent-gpu01.service.d/soon.conf").write_text(
        "[Service]\nRestartSec=0\n"
    )
    own.systemctl("daemon-reload")
    os.kill(told["pid"], signal.SIGKILL)
    other = until(lambda: (one := machine.ask("status"))["outcome"] == "running" and one["pid"] != told["pid"] and one)
    assert other["by"] == "systemd"


def test_the_unit_of_another_machine_is_not_started(make, own):
    """Homes are shared by many machines, and each of them sees all units."""
    machine = make(lingers=True)
    machine.install("gpu01")
    units = machine.home / ".config/systemd/user"
    text = (units / "gpulse-agent-gpu01.service").read_text()
    assert f"ConditionHost={os.uname().nodename}\n" in text
    other = text.replace(f"ConditionHost={os.uname().nodename}", "ConditionHost=another")
    (units / "gpulse-agent-gpu02.service").write_text(other.replace("gpu01", "gpu02"))
    own.systemctl("daemon-reload")
    own.systemctl("start", "gpulse-agent-gpu02.service")
    assert own.systemctl("is-active", "gpulse-agent-gpu02.service") == "inactive"
    assert own.systemctl("is-active", "gpulse-agent-gpu01.service") == "active"


def test_an_agent_that_ends_at_once_is_told_with_its_words(make):
    machine = make(lingers=True)
    told = machine.install(arguments=["--no-such-option"], seconds=10.0)
    assert told["outcome"] == "failed"
    assert "unknown argument --no-such-option" in told["error"]
    assert machine.ask("remove")["outcome"] == "removed"


def test_who_does_not_linger_gets_it_detached_and_moves_on_later(make, own):
    machine = make(lingers=False)
    told = machine.install()
    user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
    assert (told["outcome"], told["by"], told["at_boot"]) == ("installed", "detached", True)
    assert f"as root: loginctl enable-linger {user}, then install again" in told["notes"][0]
    assert "@reboot" in machine.crontab.read_text()
    assert not (machine.home / ".config").exists()

    own.run("mkdir", "-p", "/var/lib/systemd/linger", check=True)
    own.run("touch", f"/var/lib/systemd/linger/{user}", check=True)
    moved = machine.install()
    assert (moved["outcome"], moved["by"]) == ("updated", "systemd")
    assert not alive(told["pid"])
    assert not machine.crontab.exists()

    own.run("rm", f"/var/lib/systemd/linger/{user}", check=True)
    back = machine.install()
    assert (back["outcome"], back["by"]) == ("updated", "detached")
    assert not alive(moved["pid"])
    assert list((machine.home / ".config").rglob("*gpulse*")) == []


def test_linger_is_asked_for(tmp_path):
    """Most machines allow it to everybody."""
    machine = Machine(tmp_path, OLDEST)
    machine.program(
        "systemctl",
        """case "$2" in
show) echo Version=252 ;;
restart) setsid sh -c "$(sed -n s/^ExecStart=//p ~/.config/systemd/user/$3)" >/dev/null 2>&1 & ;;
esac""",
    )
    machine.program(
        "loginctl",
        f"""case "$*" in
*enable-linger*) touch {tmp_path}/lingers ;;
*Linger) [ -e {tmp_path}/lingers ] && echo Linger=yes || echo Linger=no ;;
esac""",
    )
    try:
        told = machine.install()
        assert (told["outcome"], told["by"], told["at_boot"]) == ("installed", "systemd", True)
        assert (tmp_path / "lingers").exists()
        assert not machine.crontab.exists()
    finally:
        machine.end()


def test_a_machine_that_ends_everything_at_logout_is_told(tmp_path):
    machine = Machine(tmp_path, OLDEST)
    machine.program("systemctl", '[ "$2" != show ] || echo Version=252')
    machine.program("loginctl", 'case "$*" in *KillUser*) echo KillUserProcesses=yes ;; *) echo Linger=no ;; esac')
    try:
        told = machine.install()
        assert told["by"] == "detached"
        assert "KillUserProcesses=yes" in told["notes"][1]
    finally:
        machine.end()


def test_a_real_cron_starts_it_at_boot(own, tmp_path):
    if not Path("/usr/sbin/cron").exists():
        pytest.skip("cron is missing")
    machine = Machine(tmp_path, OLDEST, own.enter)
    (machine.bin / "crontab").unlink()
    try:
        told = machine.install()
        assert (told["outcome"], told["at_boot"]) == ("installed", True)
        os.kill(told["pid"], signal.SIGKILL)
        until(lambda: not alive(told["pid"]))
        # Cron's own start is the boot to it.
        own.start("/usr/sbin/cron", "-f", environment={"PATH": "/usr/bin:/bin"}, log=tmp_path / "cron.log")
        again = until(lambda: (one := machine.ask("status"))["outcome"] == "running" and one)
        assert again["pid"] != told["pid"]
        assert machine.ask("remove") == {"outcome": "removed"}
        assert own.run("crontab", "-l").stdout == ""
    finally:
        machine.end()


def test_a_full_disk(own, tmp_path):
    machine = Machine(tmp_path, OLDEST, own.enter)
    own.run("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(machine.home), check=True)
    told = machine.install()
    assert told["outcome"] == "failed"
    assert "agent.pyz: No space left on device; make room on the disk" in told["error"]
    assert own.run("find", str(machine.home), "-name", "*.new").stdout == ""
    assert machine.ask("remove") == {"outcome": "removed"}


def test_names_of_units_are_as_systemd_escapes_them():
    for name in ("gpulse-agent-gpu01", "gpulse-agent-2001:db8::7", "gpulse-agent-gpu 100%", "gpulse-agent-größe"):
        escaped = unit.file_name(name)
        assert escaped.endswith(".service")
        # systemd's own reader takes a - for a /, which has no part in our names.
        told = subprocess.run(
            ["systemd-escape", "--unescape", "--", escaped.removesuffix(".service").replace("-", "\\x2d")],
            capture_output=True,
            text=True,
            check=True,
        )
        assert told.stdout.rstrip("\n") == name


def test_the_command_is_written_as_systemd_reads_it(own, make, tmp_path):
    machine = make(lingers=True)
    strange = tmp_path / "a b%h$HOME'\"\\c"
    strange.mkdir()
    program = strange / "python"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$0" "$@" > /run/told\nexec sleep 1000\n')
    program.chmod(0o755)
    service = Service("gpulse-test", "100% strange", str(strange), ["/bin/sh", str(program)])
    units = machine.home / ".config/systemd/user"
    units.mkdir(parents=True)
    (units / "gpulse-test.service").write_text(unit.text(service))
    own.systemctl("daemon-reload")
    own.systemctl("start", "gpulse-test.service")
    told = until(lambda: own.run("cat", "/run/told").stdout)
    assert told.splitlines() == [str(program), "run", str(strange)]
    assert own.systemctl("show", "gpulse-test.service", "--property=Description") == "Description=100% strange"
