"""Unmodified gpustat, nvitop and nvitop-exporter run on the fake NVML and show the same numbers as our probe."""

import json
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fake_nvml import FakeNvml, Process, a100_mig_node, h100_node, rtx3090_node
from tests.patience import PATIENCE_SECONDS
from tests.ports import free_port

PEERS = Path(__file__).resolve().parent.parent.parent / ".venv-peers" / "bin"
MIB = 1 << 20

# What nvitop knows of each device, as a program that uses it as a library would ask.
NVITOP = """
import json, nvitop
devices = [d for card in nvitop.Device.all() for d in (card, *card.mig_devices())]
number = lambda value: None if value == nvitop.NA else value
print(json.dumps([{
    "uuid": d.uuid(), "name": d.name(), "memory_used_bytes": d.memory_used(), "memory_total_bytes": d.memory_total(),
    "utilization": number(d.gpu_utilization()), "temperature_celsius": number(d.temperature()),
    "power": number(d.power_usage()), "power_limit": number(d.power_limit()),
    "fan": number(d.fan_speed()), "performance_state": number(d.performance_state()),
    "processes": {p.pid: [number(p.gpu_memory()), number(p.gpu_sm_utilization())] for p in d.processes().values()},
} for d in devices]))
"""


# What a driver of 2021 (470) did not have yet.
NEWER = [
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetGraphicsRunningProcesses_v3",
    "nvmlDeviceGetMPSComputeRunningProcesses_v3",
    "nvmlDeviceGetRunningProcessDetailList",
    "nvmlDeviceGetProcessesUtilizationInfo",
    "nvmlDeviceGetMemoryInfo_v2",
    "nvmlDeviceGetTemperatureV",
    "nvmlDeviceGetMarginTemperature",
    "nvmlDeviceGetCurrentClocksEventReasons",
    "nvmlGpmQueryDeviceSupport",
    "nvmlGpmSampleAlloc",
    "nvmlGpmSampleGet",
    "nvmlGpmMetricsGet",
]


@pytest.fixture(autouse=True)
def peers() -> None:
    if not (PEERS / "gpustat").exists():
        pytest.skip("make test installs the peers")


def describe(kind: str, pids: list[int]) -> str:
    first, second, third = pids
    if kind == "h100":
        return h100_node(2, [Process(first, 0, "3GiB", 40), Process(second, 0, "5GiB", 7), Process(third, 1, "1GiB")])
    if kind == "rtx3090":
        shown = Process(third, 1, "120MiB", 5, kind="graphics")
        return rtx3090_node(2, [Process(first, 0, "2GiB", 33), Process(second, 1, None, 12), shown])
    return a100_mig_node(
        [
            Process(first, 0, "1GiB", instance=(1, 0)),
            Process(second, 0, "2GiB", instance=(9, 0)),
            Process(third, 1, "3GiB", 55),
        ]
    )


def run(fake: FakeNvml, *command: str | Path) -> str:
    ran = subprocess.run(
        command, env=fake.environment(), capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def probe(fake: FakeNvml) -> tuple[list[dict], dict[str, dict[int, dict]]]:
    """Our GPUs, and on each device what each process holds of it."""
    snapshot = json.loads(run(fake, sys.executable, "-m", "gpulse_probe", "--once"))
    assert snapshot["reports"] == []
    uses: dict[str, dict[int, dict]] = {gpu["uuid"]: {} for gpu in snapshot["gpus"]}
    for process in snapshot["processes"]:
        for use in process["gpus"]:
            uses[use["uuid"]][process["pid"]] = use
    return snapshot["gpus"], uses


def percent(ratio: float | None) -> int | None:
    return None if ratio is None else round(ratio * 100)


def mebibytes(size: int | None) -> int | None:
    return None if size is None else size // MIB


@pytest.mark.parametrize("without", [[], NEWER], ids=["driver", "old-driver"])
@pytest.mark.parametrize("kind", ["h100", "rtx3090"])
def test_gpustat_shows_the_same(make_fake, pids, kind, without):
    fake = make_fake(without)
    fake.describe(describe(kind, pids))
    gpus, uses = probe(fake)
    theirs = json.loads(run(fake, PEERS / "gpustat", "--json"))
    assert theirs["driver_version"] == gpus[0]["driver_version"]
    assert [
        {
            "index": gpu["index"],
            "uuid": gpu["uuid"],
            "name": gpu["name"],
            "temperature.gpu": gpu["temperature_celsius"],
            "fan.speed": percent(gpu.get("fan_ratio")),
            "utilization.gpu": percent(gpu["utilization_ratio"]),
            "utilization.enc": percent(gpu["encoder_utilization_ratio"]),
            "utilization.dec": percent(gpu["decoder_utilization_ratio"]),
            "memory.used": mebibytes(gpu["memory_used_bytes"]),
            "memory.total": mebibytes(gpu["memory_total_bytes"]),
            "enforced.power.limit": gpu["power_limit_watts"],
            "processes": {pid: mebibytes(use.get("memory_bytes")) for pid, use in uses[gpu["uuid"]].items()},
        }
        for gpu in gpus
    ] == [
        {key: value for key, value in gpu.items() if key not in ("power.draw", "processes")}
        | {"processes": {process["pid"]: process["gpu_memory_usage"] for process in gpu["processes"]}}
        for gpu in theirs["gpus"]
    ]
    # gpustat shows whole watts.
    for ours, other in zip(gpus, theirs["gpus"], strict=True):
        assert other["power.draw"] == pytest.approx(ours["power_watts"], abs=1)
    assert sorted(pid for gpu in gpus for pid in uses[gpu["uuid"]]) == sorted(pids)


@pytest.mark.parametrize("kind", ["h100", "rtx3090", "mig"])
def test_nvitop_shows_the_same(fake, pids, kind):
    fake.describe(describe(kind, pids))
    gpus, uses = probe(fake)
    theirs = json.loads(run(fake, PEERS / "python", "-c", NVITOP))
    for ours, other in zip(gpus, theirs, strict=True):
        # Of a card that is cut up, we tell its processes by instance; nvitop tells them again for the card.
        cut = bool(ours.get("mig_enabled"))
        processes = other.pop("processes")
        assert other == {
            "uuid": ours["uuid"],
            "name": " MIG ".join(ours[field] for field in ("name", "mig_profile") if field in ours),
            "memory_used_bytes": ours["memory_used_bytes"],
            "memory_total_bytes": ours["memory_total_bytes"],
            "utilization": percent(ours.get("utilization_ratio")),
            "temperature_celsius": ours.get("temperature_celsius"),
            "power": ours["power_watts"] * 1000 if "power_watts" in ours else None,
            "power_limit": ours["power_limit_watts"] * 1000 if "power_limit_watts" in ours else None,
            "fan": percent(ours.get("fan_ratio")),
            "performance_state": ours.get("performance_state"),
        }
        if not cut:
            assert {int(pid): memory for pid, (memory, _) in processes.items()} == {
                pid: use.get("memory_bytes") for pid, use in uses[ours["uuid"]].items()
            }
        for pid, use in uses[ours["uuid"]].items():
            if "sm_ratio" in use:
                assert processes[str(pid)][1] == percent(use["sm_ratio"])
    assert sorted(pid for held in uses.values() for pid in held) == sorted(pids)


def test_nvitop_draws_its_table(fake, pids):
    fake.describe(describe("h100", pids))
    drawn = run(fake, PEERS / "nvitop", "-1")
    for shown in ("550.54.15", "H100 80GB HBM3", "29.30GiB / 79.65GiB", "50C", "80%", *(str(pid) for pid in pids)):
        assert shown in drawn


def scrape(fake: FakeNvml, pids: list[int]) -> dict[tuple[str, str, str], float]:
    """What nvitop-exporter serves, once it knows all processes: metric, uuid and pid to value."""
    wanted = {str(pid) for pid in pids}
    port = free_port()
    command = [PEERS / "nvitop-exporter", "--bind-address", "127.0.0.1", "--port", str(port), "--interval", "0.25"]
    exporter = subprocess.Popen(
        command, env=fake.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            assert exporter.poll() is None, exporter.stderr.read()
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_SECONDS) as answer:
                    text = answer.read().decode()
            except OSError:
                text = ""
            served = dict(read_metrics(text))
            # The last figure it sets for a process: with it, the others are there.
            if {pid for name, _, pid in served if name == "process_gpu_decoder_utilization"} == wanted:
                return served
            time.sleep(0.1)
        raise AssertionError("nvitop-exporter did not tell of all processes within 30 s")
    finally:
        exporter.kill()
        exporter.communicate()


def read_metrics(text: str) -> Iterator[tuple[tuple[str, str, str], float]]:
    for name, labels, value in re.findall(r"^(\w+)\{(.*)\} (\S+)$", text, re.MULTILINE):
        label = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        yield (
            (re.sub("_(MiB|Percentage|MHz|W|C)$", "", name), label.get("uuid", ""), label.get("pid", "")),
            float(value),
        )


def test_nvitop_exporter_serves_the_same(fake, pids):
    fake.describe(describe("h100", pids))
    gpus, uses = probe(fake)
    served = scrape(fake, pids)
    for gpu in gpus:
        for metric, ours in (
            ("gpu_utilization", percent(gpu["utilization_ratio"])),
            ("gpu_memory_utilization", percent(gpu["memory_utilization_ratio"])),
            ("gpu_memory_used", gpu["memory_used_bytes"] / MIB),
            ("gpu_memory_total", gpu["memory_total_bytes"] / MIB),
            ("gpu_temperature", gpu["temperature_celsius"]),
            ("gpu_power_usage", gpu["power_watts"]),
            ("gpu_power_limit", gpu["power_limit_watts"]),
            ("gpu_clock_sm", gpu["clock_sm_hertz"] / 1e6),
            ("gpu_clock_memory", gpu["clock_memory_hertz"] / 1e6),
        ):
            assert served[metric, gpu["uuid"], ""] == ours, metric
        for pid, use in uses[gpu["uuid"]].items():
            assert served["process_gpu_memory", gpu["uuid"], str(pid)] == use["memory_bytes"] / MIB
            if "sm_ratio" in use:
                assert served["process_gpu_sm_utilization", gpu["uuid"], str(pid)] == percent(use["sm_ratio"])
    assert sorted(pid for held in uses.values() for pid in held) == sorted(pids)
