"""What drivers do to monitors, done to the probe: each fault costs what it must and nothing more."""

import os
import re
import shutil
import signal
import stat
import time
from pathlib import Path

import pytest

from bench.measure import anonymous_bytes
from tests.fake_nvml import Process, h100_node
from tests.patience import PATIENCE_SECONDS
from tests.probe.running import RunningProbe, children, messages, once, only_child
from tests.system.stalls import Stalls

RECORDED = Path(__file__).resolve().parent.parent / "recorded"
VALUES = ("utilization_ratio", "memory_used_bytes", "temperature_celsius", "power_watts")


def with_fault(fault, gpus=2, processes=()):
    """A node whose last card has a fault."""
    return h100_node(gpus, processes) + f"  fault {fault}\n"


def known_values(gpu):
    return [name for name in VALUES if name in gpu]


def test_not_supported_costs_one_field_and_is_not_asked_again(fake):
    # The card would answer the second time: it must not be asked.
    fake.describe(with_fault("nvmlDeviceGetPowerUsage not_supported 1 times"))
    with RunningProbe(fake.environment(), "--interval", "0.1") as probe:
        for _ in range(5):
            snapshot = probe.next()
            assert known_values(snapshot["gpus"][0]) == list(VALUES)
            assert known_values(snapshot["gpus"][1]) == [name for name in VALUES if name != "power_watts"]
            assert snapshot["reports"] == []


@pytest.mark.parametrize("fault", ["lost", "reset_required"])
def test_lost_card_has_a_fault_and_the_others_go_on(fake, fault):
    text = {"lost": "GPU is lost", "reset_required": "GPU requires reset"}[fault]
    fake.describe(h100_node(2))
    with RunningProbe(fake.environment(), "--interval", "0.1") as probe:
        assert known_values(probe.next()["gpus"][1]) == list(VALUES)
        fake.describe(with_fault(f"* {fault}"))
        snapshot = probe.until(lambda taken: "fault" in taken["gpus"][1])
        good, bad = snapshot["gpus"]
        assert known_values(good) == list(VALUES)
        assert (bad["fault"], bad["index"], bad["name"]) == (text, 1, "NVIDIA H100 80GB HBM3")
        assert known_values(bad) == []
        assert messages(snapshot) == [f"GPU 1: {text}"]
        fake.describe(h100_node(2))
        snapshot = probe.until(lambda taken: "fault" not in taken["gpus"][1])
        assert known_values(snapshot["gpus"][1]) == list(VALUES)


def test_card_that_is_lost_from_the_start(fake):
    fake.describe(with_fault("* lost"))
    snapshot = once(fake.environment())
    good, bad = snapshot["gpus"]
    assert known_values(good) == list(VALUES)
    assert (bad["index"], bad["fault"]) == (1, "GPU is lost")


def test_unknown_error_costs_one_field_for_one_tick(fake):
    fake.describe(h100_node(2))
    with RunningProbe(fake.environment(), "--interval", "0.1") as probe:
        probe.next()
        fake.describe(with_fault("nvmlDeviceGetTemperature unknown_error 2 times"))
        snapshot = probe.until(lambda taken: taken["reports"])
        assert messages(snapshot) == ["GPU 1: nvmlDeviceGetTemperature: Unknown Error"]
        assert known_values(snapshot["gpus"][1]) == [name for name in VALUES if name != "temperature_celsius"]
        snapshot = probe.until(lambda taken: not taken["reports"])
        assert known_values(snapshot["gpus"][1]) == list(VALUES)


def test_card_that_answers_unknown_error_to_everything(fake):
    fake.describe(with_fault("* unknown_error"))
    bad = once(fake.environment())["gpus"][1]
    assert bad["fault"] == "Unknown Error"
    assert known_values(bad) == []


def test_missing_permission_is_told(fake, pids):
    fake.describe(with_fault("nvmlDeviceGetProcessUtilization no_permission", 1, [Process(pids[0], sm=30)]))
    snapshot = once(fake.environment())
    assert messages(snapshot) == ["GPU 0: nvmlDeviceGetProcessUtilization: Insufficient Permissions"]
    assert "sm_ratio" not in snapshot["processes"][0]["gpus"][0]


def test_version_mismatch_falls_back_to_nvidia_smi(fake, tmp_path):
    program = tmp_path / "bin" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\nexec cat '{RECORDED / 'nvidia_smi' / 'h100-mig.xml'}'\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    fake.describe("fault nvmlInit* version_mismatch\n" + h100_node(1))
    environment = fake.environment()
    environment["PATH"] = f"{program.parent}:{environment['PATH']}"
    snapshot = once(environment)
    assert snapshot["probe"]["gpu_source"] == "nvidia-smi"
    assert {gpu["vendor"] for gpu in snapshot["gpus"]} == {"nvidia"}
    assert any("parent_uuid" in gpu for gpu in snapshot["gpus"])
    assert messages(snapshot)[0] == (
        "NVML: driver/library version mismatch; reload the NVIDIA driver or reboot the node"
    )


def test_version_mismatch_without_nvidia_smi_is_told_not_taken_for_no_gpu(fake):
    fake.describe("fault nvmlInit* version_mismatch\n" + h100_node(1))
    snapshot = once({**fake.environment(), "PATH": "/nonexistent"})
    assert "gpus" not in snapshot
    assert messages(snapshot) == ["NVML: driver/library version mismatch; reload the NVIDIA driver or reboot the node"]


def test_driver_that_goes_away_and_comes_back(fake):
    fake.describe(h100_node(2))
    with RunningProbe(fake.environment(), "--interval", "0.2") as probe:
        probe.next()
        fake.describe("fault nvmlDevice* driver_not_loaded\n" + h100_node(2))
        snapshot = probe.until(lambda taken: taken["reports"])
        assert "NVIDIA driver is not loaded" in messages(snapshot)[0]
        assert [(gpu["index"], known_values(gpu)) for gpu in snapshot["gpus"]] == [(0, []), (1, [])]
        assert "processes" not in snapshot
        fake.describe(h100_node(2))
        snapshot = probe.until(lambda taken: not taken["reports"])
        assert known_values(snapshot["gpus"][1]) == list(VALUES)


def test_a_driver_that_is_reloaded_is_seen_at_once(fake):
    """Within three seconds, not with the next of the tries that are a minute apart."""
    fake.describe(h100_node(2))
    with RunningProbe(fake.environment(), "--interval", "0.2") as probe:
        probe.next()
        fake.describe("fault nvml* driver_not_loaded\n" + h100_node(2))
        snapshot = probe.until(
            lambda taken: any("nvmlInit" not in text for text in messages(taken)) and taken["seq"] > 20
        )
        assert "NVIDIA driver is not loaded" in messages(snapshot)[0]
        assert [gpu["failed_fields"][-1] for gpu in snapshot["gpus"]] == ["processes"] * 2
        assert "NVIDIA driver is not loaded" in snapshot["gpus"][0]["failed_reason"]
        fake.describe(h100_node(2))
        snapshot = probe.until(lambda taken: not taken["reports"], 20)
        assert [known_values(gpu) for gpu in snapshot["gpus"]] == [list(VALUES)] * 2


def test_slow_calls_make_old_values_not_missing_ones(fake):
    fake.describe(h100_node(2))
    with RunningProbe(fake.environment(), "--interval", "0.2") as probe:
        probe.next()
        fake.describe(with_fault("nvmlDeviceGetPowerUsage slow 900"))
        snapshot = probe.until(lambda taken: taken.get("devices_age_seconds", 0) > 0.4)
        assert known_values(snapshot["gpus"][1]) == list(VALUES)
        assert snapshot["reports"] == []
        began = time.monotonic()
        for _ in range(10):
            probe.next()
        assert time.monotonic() - began < 9, "snapshots waited for the slow card"


def test_hang_in_the_middle_of_a_stream_and_recovery(fake, pids):
    """The default deadline, the words of the report, host data that go on, and the way back."""
    fake.describe(h100_node(2, [Process(pids[0], sm=30)]))
    with Stalls() as stalls, RunningProbe(fake.environment(), "--interval", "0.5") as probe:
        assert len(probe.next()["processes"]) == 1
        fake.describe(with_fault("nvmlDeviceGetPowerUsage hang", 2, [Process(pids[0], sm=30)]))
        hung_at = time.time()
        snapshot = probe.until(lambda taken: taken["reports"])
        assert 1.5 < snapshot["time"] - hung_at < 15
        probe.until(lambda taken: "failed_fields" in taken["gpus"][1])
        seen = set()
        for _ in range(6):
            asked = time.monotonic()
            snapshot = probe.next()
            assert time.monotonic() - asked - stalls.since(asked) < 4, "a snapshot waited for the card"
            seen.update(messages(snapshot))
            assert snapshot["host"]["memory_total_bytes"] > 0
            assert [known_values(gpu) for gpu in snapshot["gpus"]] == [list(VALUES)] * 2
            assert [gpu["name"] for gpu in snapshot["gpus"]] == ["NVIDIA H100 80GB HBM3"] * 2
            assert ["failed_fields" in gpu for gpu in snapshot["gpus"]] == [False, True]
            assert len(snapshot["processes"]) == 1
        assert all(text.startswith("waiting for the driver (nvmlDeviceGetPowerUsage, GPU 1), ") for text in seen)
        fake.describe(h100_node(2, [Process(pids[0], sm=30)]))
        snapshot = probe.until(lambda taken: not taken["reports"])
        assert [known_values(gpu) for gpu in snapshot["gpus"]] == [list(VALUES)] * 2
        assert len(snapshot["processes"]) == 1
        only_child(probe.process.pid)


def test_hang_at_the_first_call(fake):
    fake.describe("fault nvmlInit* hang\n" + h100_node(1))
    began = time.monotonic()
    snapshot = once(fake.environment(), "--deadline", "1")
    # What may take long is given six times the deadline, but not for ever.
    assert 5.5 < time.monotonic() - began < 20
    (message,) = messages(snapshot)
    assert re.fullmatch(r"waiting for the driver \(nvmlInit_v2\), ([6-9]|\d\d+) s", message)
    assert "gpus" not in snapshot
    assert snapshot["host"]["cpu_threads"] >= 1


def test_many_hangs_leave_nothing_behind(fake):
    """Children, descriptors and memory stay as they were, hang after hang."""
    fake.describe(h100_node(1))
    with RunningProbe(fake.environment(), "--interval", "0.1", "--deadline", "0.3") as probe:
        pid = probe.process.pid
        # On a busy machine the first child may be given up before it has answered at all.
        probe.until(lambda taken: not taken["reports"] and taken.get("gpus") and len(children(pid)) == 1)
        before = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        memory = []
        for _ in range(5):
            fake.describe(with_fault("nvmlDeviceGetMemoryInfo_v2 hang", 1))
            probe.until(lambda taken: taken["reports"])
            fake.describe(h100_node(1))
            probe.until(lambda taken: not taken["reports"])
            memory.append(anonymous_bytes([pid]))
        # The last child that was given up may be about to end.
        probe.until(lambda _: len(children(pid)) == 1 and len(list(Path(f"/proc/{pid}/fd").iterdir())) == before)
        # The first hang brings what was not needed before.
        assert memory[-1] - memory[0] <= 50_000, memory


def test_killed_probe_leaves_no_child_in_the_driver(fake):
    fake.describe(with_fault("nvmlDeviceGetPowerUsage hang", 1))
    with RunningProbe(fake.environment(), "--interval", "0.2", "--deadline", "60") as probe:
        end = time.monotonic() + PATIENCE_SECONDS
        while not (alive := children(probe.process.pid)):
            assert time.monotonic() < end
            time.sleep(0.05)
        time.sleep(1)
        probe.process.send_signal(signal.SIGKILL)
        probe.process.wait()
        end = time.monotonic() + PATIENCE_SECONDS
        while any(Path(f"/proc/{child}").exists() and _state(child) != "Z" for child in alive):
            assert time.monotonic() < end, "a child outlives the probe"
            time.sleep(0.05)


def _state(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def test_crash_in_the_library_is_survived(fake):
    """A driver library that takes its process with it: kill the child as it would be."""
    fake.describe(h100_node(1))
    with RunningProbe(fake.environment(), "--interval", "0.2") as probe:
        probe.next()
        child = only_child(probe.process.pid)
        os.kill(child, signal.SIGSEGV)
        snapshot = probe.until(lambda taken: taken["reports"])
        assert "the reader of the GPUs ended" in messages(snapshot)[0]
        assert known_values(snapshot["gpus"][0]) == []
        snapshot = probe.until(lambda taken: not taken["reports"])
        assert known_values(snapshot["gpus"][0]) == list(VALUES)


def test_vanished_process(fake):
    with RunningProbe(fake.environment(), command=[shutil.which("sleep") or "sleep", "60"]) as sleeper:
        pid = sleeper.process.pid
        fake.describe(h100_node(1, [Process(pid, memory="5GiB")]))
        with RunningProbe(fake.environment(), "--interval", "0.2") as probe:
            (process,) = probe.next()["processes"]
            assert "vanished" not in process
            sleeper.process.kill()
            sleeper.process.wait()
            (process,) = probe.until(lambda taken: taken["processes"][0].get("vanished"))["processes"]
            assert process["command"].endswith("sleep 60")
            assert process["gpus"][0]["memory_bytes"] == 5 << 30
