"""Drivers that take long: what may take long is waited for, and nothing else waits for it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpulse_probe.commands import Commands, DeadlinePassed, StillStuck
from gpulse_probe.page import Page
from gpulse_probe.system import System
from tests.fake_nvml import h100_node
from tests.patience import PATIENCE_SECONDS
from tests.probe.running import RunningProbe, children, messages, once

DOCUMENT = Path(__file__).resolve().parent.parent / "recorded" / "nvidia_smi" / "h100-mig.xml"


def with_nvidia_smi(fake, tmp_path, script):
    """An environment in which NVML does not fit the driver, and nvidia-smi is this script."""
    program = tmp_path / "bin" / "nvidia-smi"
    program.parent.mkdir(exist_ok=True)
    program.write_text("#!/bin/sh\n" + script)
    program.chmod(0o755)
    fake.describe("fault nvmlInit* version_mismatch\n" + h100_node(1))
    environment = fake.environment()
    return {**environment, "PATH": f"{program.parent}:{environment['PATH']}"}


SLOW = [
    ("fault nvmlInit_v2 slow 3500\n", ""),
    ("", "  fault nvmlDeviceGetHandleByIndex_v2 slow 3500\n"),
    ("fault nvmlDeviceGetCount_v2 slow 3500\n", ""),
]


@pytest.mark.parametrize(("before", "after"), SLOW, ids=["init", "handle", "count"])
def test_one_snapshot_waits_for_a_driver_that_wakes_up(fake, before, after):
    fake.describe(before + h100_node(1) + after)
    snapshot = once(fake.environment(), "--deadline", "3")
    assert len(snapshot["gpus"]) == 1
    assert snapshot["reports"] == []


def test_one_snapshot_waits_for_nvidia_smi(fake, tmp_path):
    environment = with_nvidia_smi(fake, tmp_path, f"sleep 3.5\nexec cat '{DOCUMENT}'\n")
    snapshot = once(environment, "--deadline", "3")
    assert len(snapshot["gpus"]) > 1
    assert len(snapshot["reports"]) == 1


def test_a_stream_goes_on_while_the_driver_wakes_up(fake):
    fake.describe("fault nvmlInit_v2 hang\n" + h100_node(1))
    complaint = re.compile(r"waiting for the driver \(nvmlInit_v2\), [1-9]\d* s")
    with RunningProbe(fake.environment(), "--deadline", "3", "--interval", "0.3") as probe:
        # Mostly the first: on a busy machine the child may begin late.
        snapshot = probe.until(lambda taken: any(map(complaint.fullmatch, messages(taken))))
        assert len(messages(snapshot)) == 1
        assert "gpus" not in snapshot
        assert snapshot["host"]["memory_total_bytes"] > 0
        alive = children(probe.process.pid)
        fake.describe(h100_node(1))
        snapshot = probe.until(lambda taken: "gpus" in taken)
        assert snapshot["reports"] == []
        assert set(children(probe.process.pid)) <= set(alive), "the child that waited was not let go of"


def test_old_values_hold_while_nvidia_smi_takes_long(fake, tmp_path):
    slow = tmp_path / "slow"
    script = f"[ -e '{slow}' ] && sleep 3\nexec cat '{DOCUMENT}'\n"
    environment = with_nvidia_smi(fake, tmp_path, script)
    with RunningProbe(environment, "--deadline", "1", "--interval", "0.5") as probe:
        assert "fault" not in probe.next()["gpus"][0]
        slow.touch()
        snapshot = probe.until(lambda taken: len(taken["reports"]) > 1)
        assert messages(snapshot)[0].startswith("waiting for nvidia-smi, ")
        assert "memory_used_bytes" in snapshot["gpus"][0]
        assert "processes" in snapshot
        assert snapshot["devices_age_seconds"] > 1
        # What took three seconds to be read is that old.
        snapshot = probe.until(lambda taken: len(taken["reports"]) == 1)
        assert snapshot["devices_age_seconds"] >= 3
        assert "fault" not in snapshot["gpus"][0]
        slow.unlink()
        probe.until(lambda taken: taken.get("devices_age_seconds", 0.0) < 2)


def running(program):
    """The processes whose command line has this word."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = folder.joinpath("cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if program.encode() in words:
            found.append(int(folder.name))
    return found


def test_no_nvidia_smi_outlives_the_probe(fake, tmp_path):
    """Neither one that ends as it should nor one that is killed."""
    word = f"34567.{os.getpid()}"
    environment = with_nvidia_smi(fake, tmp_path, f"exec sleep {word}\n")
    for number in (signal.SIGTERM, signal.SIGKILL):
        with RunningProbe(environment, "--deadline", "1", "--interval", "0.2") as probe:
            probe.next()
            probe.until(lambda _: len(running(word)) == 1)
            probe.process.send_signal(number)
            probe.process.wait(PATIENCE_SECONDS)
            end = time.monotonic() + PATIENCE_SECONDS
            while running(word):
                assert time.monotonic() < end, "nvidia-smi was left behind"
                time.sleep(0.05)


def test_no_nvidia_smi_outlives_a_child_that_was_given_up(fake, tmp_path):
    word = f"45678.{os.getpid()}"
    environment = with_nvidia_smi(fake, tmp_path, f"exec sleep {word}\n")
    with RunningProbe(environment, "--deadline", "1", "--interval", "0.2") as probe:
        probe.until(lambda _: running(word))
        (first,) = running(word)
        probe.until(lambda _: first not in running(word))
        for _ in range(20):
            probe.next()
            assert len(running(word)) <= 1


class Unkillable(Commands):
    """Stands for a machine on which a command is stuck in the driver."""

    def _kill(self, process):
        self._left_behind.append(process)


def test_a_stuck_command_is_the_last_also_for_the_next_process():
    """The one that started it may be replaced: the page is shared by all."""
    system, page = System(), Page()
    first = Unkillable(system.process_start)
    with pytest.raises(DeadlinePassed):
        first.run(["sleep", "777"], 0.2, page)
    (stuck,) = first._left_behind
    try:
        for commands in (Unkillable(system.process_start), first, Commands(system.process_start)):
            with pytest.raises(StillStuck):
                commands.run(["true"], 5, page)
    finally:
        stuck.kill()
        stuck.wait()
    assert Commands(system.process_start).run(["echo", "fine"], 5, page) == (0, b"fine\n")
    assert page.command() == (0, 0)


def test_a_pid_that_was_given_to_another_is_not_stuck():
    page = Page()
    page.set_command(os.getpid(), 1)
    assert Commands(System().process_start).run(["echo", "fine"], 5, page) == (0, b"fine\n")


def test_xid_events_outlive_the_child(fake):
    fake.describe("gpu\n")
    with RunningProbe(fake.environment(), "--interval", "0.2") as probe:
        probe.next()
        fake.describe("gpu\n  xid 79\n")
        events = probe.until(lambda taken: "xid_events" in taken["gpus"][0])["gpus"][0]["xid_events"]
        os.kill(children(probe.process.pid)[0], signal.SIGKILL)
        assert probe.until(lambda taken: taken["reports"])["gpus"][0]["xid_events"] == events
        # The driver tells its new listener of the error again, as a fake one may: the old time stays with it.
        assert probe.until(lambda taken: not taken["reports"])["gpus"][0]["xid_events"][0] == events[0]


def asked(root):
    """What the device child answers on a machine with these files, without any library or program."""
    script = (
        "import sys\n"
        "from gpulse_probe.devices import Devices\n"
        "from gpulse_probe.page import Page\n"
        "from gpulse_probe.system import System\n"
        "print(Devices(System(sys.argv[1]), Page()).answer().decode())"
    )
    environment = {**os.environ, "PATH": "/nonexistent", "LD_LIBRARY_PATH": ""}
    ran = subprocess.run(
        [sys.executable, "-c", script, str(root)], env=environment, capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_a_card_and_nothing_to_read_it_with_is_told(tmp_path):
    card = tmp_path / "sys/bus/pci/devices/0000:01:00.0"
    card.mkdir(parents=True)
    (card / "vendor").write_text("0x10de\n")
    (card / "class").write_text("0x030200\n")
    _head, gpus, processes, reports, _collectors = asked(tmp_path)
    assert (gpus, processes) == (None, None)
    (report,) = reports
    assert report["message"].startswith("there is an NVIDIA GPU but nothing to read it with: install the NVIDIA driver")


def test_a_driver_and_nothing_to_read_it_with_is_told(tmp_path):
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    assert "install" in asked(tmp_path)[3][0]["message"]


def test_other_hardware_is_no_reason_to_complain(tmp_path):
    """An NVIDIA sound device, and another maker's graphics."""
    for place, vendor, kind in (("0000:01:00.1", "0x10de", "0x040300"), ("0000:02:00.0", "0x1002", "0x030000")):
        device = tmp_path / "sys/bus/pci/devices" / place
        device.mkdir(parents=True)
        (device / "vendor").write_text(vendor + "\n")
        (device / "class").write_text(kind + "\n")
    assert asked(tmp_path)[1:4] == [[], [], []]
