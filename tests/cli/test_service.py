"""gpulse service: the hub kept running on this machine, by crontab here and by a real systemd."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.hub.running import GPULSE
from tests.patience import PATIENCE_SECONDS
from tests.ports import free_port
from tests.probe.machine import Machine, alive, until
from tests.system.own_machine import OwnMachine

# `gpulse`, where a hub counts as started only after a minute: one that ends may take its time on a busy machine.
PATIENT = """
from gpulse.cli import main
from gpulse_probe.service import services

def patient(made=services.hub):
    hub = made()
    hub.seconds = 60.0
    return hub

services.hub = patient
main()
"""


@pytest.fixture
def machine(tmp_path):
    one = Machine(tmp_path / "machine")
    yield one
    one.end()


@pytest.fixture
def service(machine, tmp_path):
    """`gpulse service …` as a person types it, in a folder of theirs."""
    work = tmp_path / "work"
    work.mkdir()

    def run(
        *words: str, code: int = 0, enter: list[str] | None = None, patient: bool = False
    ) -> subprocess.CompletedProcess[str]:
        program = [sys.executable, "-c", PATIENT] if patient else [GPULSE]
        ran = subprocess.run(
            [*(enter or []), *program, "service", *words],
            env={**machine.environment(), "PYTHONIOENCODING": "utf-8"},
            cwd=work,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )
        assert ran.returncode == code, ran.stdout + ran.stderr
        return ran

    return run


def answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=PATIENCE_SECONDS).status_code == 200
    except httpx.TransportError:
        return False


def test_a_hub_that_stays(service, machine, tmp_path):
    port = free_port()
    (tmp_path / "work/gpulse.toml").write_text(f"[hub]\nport = {port}\nlocal = false\n")
    install = ("install", "--data", "kept", "--json")
    told = json.loads(service(*install).stdout)
    assert (told["outcome"], told["by"], told["at_boot"]) == ("installed", "detached", True)
    assert until(lambda: answers(port))
    words = Path(f"/proc/{told['pid']}/cmdline").read_text().split("\0")
    assert f"{tmp_path}/work/gpulse.toml" in words
    assert f"{tmp_path}/work/kept" in words
    assert "@reboot" in machine.crontab.read_text()

    assert json.loads(service(*install).stdout)["outcome"] == "unchanged"
    shown = service("status").stdout
    assert shown.startswith("✓ hub  running")
    assert f"pid {told['pid']}" in shown

    service("stop")
    assert not answers(port)
    assert service("status", code=1).stdout.startswith("– hub  stopped")
    service("restart")
    assert until(lambda: answers(port))
    service("remove")
    assert not answers(port)
    assert service("status", code=1).stdout == "– hub  absent\n"
    assert not machine.crontab.exists()
    assert (tmp_path / "work/kept").exists(), "the hub's data was taken away"
    service("remove")


def test_cron_starts_the_hub(service, machine):
    port = free_port()
    told = json.loads(service("install", "--no-local", "--port", str(port), "--json").stdout)
    os.kill(told["pid"], 9)
    until(lambda: not alive(told["pid"]))
    machine.cron()
    assert until(lambda: answers(port))


def test_mistakes_are_told_now(service, tmp_path):
    assert "is no port" in service("install", "gpu01:x", code=2).stderr
    (tmp_path / "work/gpulse.toml").write_text("[hub]\nprot = 1\n")
    assert "there is no such setting" in service("install", code=2).stderr
    assert service("restart", code=1).stdout == "– hub  absent\n"


def test_a_port_that_is_taken_is_told(service):
    taken = free_port()
    with socket.socket() as other:
        other.bind(("127.0.0.1", taken))
        other.listen()
        ran = service("install", "--no-local", "--port", str(taken), code=1, patient=True)
    assert "✗ hub  it ended right after its start: " in ran.stdout
    assert str(taken) in ran.stdout


def test_by_systemd(service, machine):
    port = free_port()
    with OwnMachine() as own:
        (machine.bin / "systemctl").unlink()
        own.start_systemd(machine.home, lingers=True)
        install = ("install", "--no-local", "--port", str(port), "--json")
        told = json.loads(service(*install, enter=own.enter).stdout)
        assert (told["outcome"], told["by"]) == ("installed", "systemd")
        assert until(lambda: answers(port))
        name = f"gpulse-hub-{os.uname().nodename}.service"
        assert own.systemctl("is-enabled", name) == "enabled"
        assert json.loads(service("remove", "--json", enter=own.enter).stdout)["outcome"] == "removed"
        assert not answers(port)
        assert not machine.crontab.exists()
