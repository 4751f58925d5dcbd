"""nvidia-smi as a program that is run: small shell scripts stand in for it."""

import errno
import time
from pathlib import Path

import pytest

from gpulse_probe.collectors.nvidia_smi import Answer, NvidiaSmi
from gpulse_probe.commands import StillStuck
from gpulse_probe.page import Page
from gpulse_probe.system import System

DOCUMENT = b"""<?xml version="1.0" ?>
<nvidia_smi_log>
  <attached_gpus>1</attached_gpus>
  <gpu id="00000000:3B:00.0">
    <uuid>GPU-1</uuid>
    <temperature><gpu_temp>40 C</gpu_temp></temperature>
  </gpu>
</nvidia_smi_log>
"""


def machine(tmp_path: Path, script: str, where: str = "/usr/bin") -> System:
    program = tmp_path / where.lstrip("/") / "nvidia-smi"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text("#!/bin/sh\n" + script)
    program.chmod(0o755)
    return System(str(tmp_path))


def printing(tmp_path: Path, printed: bytes, code: int = 0) -> System:
    """A machine whose nvidia-smi prints so, and notes each of its runs."""
    (tmp_path / "printed").write_bytes(printed)
    return machine(tmp_path, f'echo "$@" >> {tmp_path}/runs\ncat {tmp_path}/printed\nexit {code}\n')


def collect(collector: NvidiaSmi, now: float) -> tuple[Answer | None, list[str]]:
    reports: list[str] = []
    return collector.collect(now, reports.append), reports


def test_no_program_is_absent(tmp_path):
    assert collect(NvidiaSmi(System(str(tmp_path)), Page()), 100.0) == (None, [])


@pytest.mark.parametrize(
    "where", ["/usr/bin", "/usr/lib/wsl/lib", "/usr/local/nvidia/bin", "/run/nvidia/driver/usr/bin", "/opt/bin"]
)
def test_the_program_is_found_in_the_usual_places(tmp_path, where, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    answer, reports = collect(NvidiaSmi(machine(tmp_path, "echo No devices were found; exit 6", where), Page()), 0.0)
    assert answer == ([], [], 0.0)
    assert reports == []


def test_one_command_at_most_every_five_seconds(tmp_path):
    collector = NvidiaSmi(printing(tmp_path, DOCUMENT), Page())
    began = time.monotonic()
    first, _ = collect(collector, 100.0)
    took = time.monotonic() - began
    again, _ = collect(collector, 104.0)
    assert first.age_seconds == 0.0
    assert again.gpus == first.gpus
    assert 4.0 - took <= again.age_seconds <= 4.0
    assert (tmp_path / "runs").read_text() == "-q -x\n"
    (tmp_path / "printed").write_bytes(DOCUMENT.replace(b"40 C", b"55 C"))
    later, _ = collect(collector, 160.0)
    assert later.gpus[0]["temperature_celsius"] == 55
    assert later.age_seconds == 0.0
    assert (tmp_path / "runs").read_text() == "-q -x\n" * 2


def test_a_slow_program_is_waited_for_and_then_rests(tmp_path):
    printing(tmp_path, DOCUMENT)
    system = machine(tmp_path, f"echo run >> {tmp_path}/runs; sleep 0.3; cat {tmp_path}/printed")
    collector = NvidiaSmi(system, Page(), every=1.0)
    assert collect(collector, 10.0)[0].gpus[0]["temperature_celsius"] == 40
    collect(collector, 11.2)
    assert (tmp_path / "runs").read_text() == "run\n"
    collect(collector, 60.0)
    assert (tmp_path / "runs").read_text() == "run\n" * 2


def test_a_hanging_program_is_a_failure_and_old_values_are_dropped(tmp_path):
    collector = NvidiaSmi(printing(tmp_path, DOCUMENT), Page())
    assert collect(collector, 0.0)[0].gpus
    machine(tmp_path, "sleep 60")
    collector._deadline = 0.3
    began = time.monotonic()
    assert collect(collector, 10.0) == ((None, None, 0.0), ["nvidia-smi did not answer within 0.3 s"])
    assert time.monotonic() - began < 20
    answer, reports = collect(collector, 12.0)
    assert answer[:2] == (None, None)
    assert reports == ["nvidia-smi did not answer within 0.3 s"]
    printing(tmp_path, DOCUMENT)
    collector._deadline = 20.0
    assert collect(collector, 40.0)[0].gpus[0]["temperature_celsius"] == 40


def test_a_program_stuck_for_good_is_named(tmp_path):
    class Stuck(System):
        def run(self, command, _seconds, _page):
            raise StillStuck(errno.ETIMEDOUT, "an earlier one is still stuck and cannot be killed", command[0])

    machine(tmp_path, "")
    answer, reports = collect(NvidiaSmi(Stuck(str(tmp_path)), Page()), 0.0)
    assert answer[:2] == (None, None)
    assert reports == [
        "nvidia-smi is not asked: an earlier one is still stuck and cannot be killed; "
        "a reboot of the node may be needed"
    ]


def test_error_text_on_stdout_is_reported_for_as_long_as_it_holds(tmp_path):
    collector = NvidiaSmi(
        printing(tmp_path, b"Failed to initialize NVML: Driver/library version mismatch\n", 18), Page()
    )
    wanted = ["nvidia-smi: driver/library version mismatch: reload the NVIDIA kernel module or reboot the node"]
    for now in (0.0, 1.0, 2.0):
        answer, reports = collect(collector, now)
        assert answer[:2] == (None, None)
        assert reports == wanted


def test_a_warning_does_not_cost_the_document(tmp_path):
    warning = b"WARNING: infoROM is corrupted at gpu 0000:B3:00.0\n"
    answer, reports = collect(NvidiaSmi(printing(tmp_path, DOCUMENT + warning, 14), Page()), 0.0)
    assert answer.gpus[0]["temperature_celsius"] == 40
    assert reports == ["nvidia-smi: infoROM is corrupted at gpu 0000:B3:00.0"]


def test_an_exit_code_nobody_explains_is_reported(tmp_path):
    answer, reports = collect(NvidiaSmi(printing(tmp_path, DOCUMENT, 14), Page()), 0.0)
    assert len(answer.gpus) == 1
    assert reports == ["nvidia-smi ended with code 14 (infoROM is corrupted)"]


def test_a_program_that_cannot_be_run_is_a_failure(tmp_path):
    system = machine(tmp_path, "")
    (tmp_path / "usr/bin/nvidia-smi").write_bytes(b"\x7fELF of another machine")
    answer, reports = collect(NvidiaSmi(system, Page()), 0.0)
    assert answer[:2] == (None, None)
    assert reports == [f"{tmp_path}/usr/bin/nvidia-smi cannot be run: Exec format error"]


def test_values_are_as_old_as_the_question(tmp_path):
    """A program that takes long reads some of its values at its start."""
    printing(tmp_path, DOCUMENT)
    system = machine(tmp_path, f"sleep 0.5; cat {tmp_path}/printed")
    collector = NvidiaSmi(system, Page())
    collect(collector, 10.0)
    assert collect(collector, 12.0)[0].age_seconds == 2.0


def test_a_lost_card_keeps_its_facts(tmp_path):
    facts = b"<product_name>X</product_name><fb_memory_usage><total>80 MiB</total><used>7 MiB</used></fb_memory_usage>"
    collector = NvidiaSmi(printing(tmp_path, DOCUMENT.replace(b"<temperature>", facts + b"<temperature>")), Page())
    collect(collector, 0.0)
    lost = DOCUMENT.replace(b"GPU-1", b"GPU is lost").replace(b"40 C", b"GPU is lost")
    (tmp_path / "printed").write_bytes(lost)
    (card,) = collect(collector, 60.0)[0].gpus
    assert (card["fault"], card["uuid"], card["name"]) == ("GPU is lost", "GPU-1", "X")
    assert card["memory_total_bytes"] == 80 << 20
    assert not {"memory_used_bytes", "temperature_celsius"} & set(card)
