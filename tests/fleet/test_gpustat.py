"""gpustat's JSON: the same figures as our probe tells, secrets masked, and nonsense refused in words."""

import json
import os
import re
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from gpulse.fleet.finder import Wish, find
from gpulse.fleet.fleet import BadLine, Fleet
from gpulse.fleet.gpustat import to_line
from gpulse.fleet.places import Place
from tests.fake_nvml import Process, h100_node, rtx3090_node
from tests.patience import PATIENCE_SECONDS

ROOT = Path(__file__).resolve().parents[2]
GPUSTAT = ROOT / ".venv-peers" / "bin" / "gpustat"
MIB = 1 << 20
NOW = datetime(2024, 5, 17, 12, 0, tzinfo=UTC).timestamp()

# All a version of 2023 tells, of a card with somebody on it.
PRINTED: dict[str, Any] = {
    "hostname": "gpu07.cluster",
    "driver_version": "535.104.05",
    "query_time": "2024-05-17T14:00:01.250000",
    "gpus": [
        {
            "index": 0,
            "uuid": "GPU-10fb0fbd-2696-43f3-467f-d280d906a107",
            "name": "NVIDIA GeForce GTX TITAN X",
            "temperature.gpu": 80,
            "fan.speed": 33,
            "utilization.gpu": 76,
            "utilization.enc": 0,
            "utilization.dec": None,
            "power.draw": 199,
            "enforced.power.limit": 250,
            "memory.used": 8520,
            "memory.total": 12287,
            "processes": [
                {
                    "username": "user1",
                    "command": "python",
                    "full_command": [
                        "/opt/conda/bin/python",
                        "train.py",
                        "--api-key",
                        "hf_0123456789abcdefghij",
                        "a b",
                    ],
                    "gpu_memory_usage": 8520,
                    "cpu_percent": 99.8,
                    "cpu_memory_usage": 5368709120,
                    "pid": 4711,
                }
            ],
        }
    ],
}


def printed(**changes: Any) -> bytes:
    """The document with fields of its card, or with whole parts, changed."""
    gpu = PRINTED["gpus"][0] | {name: value for name, value in changes.items() if name not in PRINTED}
    return json.dumps(
        PRINTED | {"gpus": [gpu]} | {name: value for name, value in changes.items() if name in PRINTED}
    ).encode()


def told(data: bytes, **more: Any) -> dict[str, Any]:
    snapshot: dict[str, Any] = json.loads(to_line(data, "gpu07", **{"now": NOW, **more}))
    return snapshot


def taken(data: bytes) -> Fleet:
    fleet = Fleet(wall=lambda: NOW)
    fleet.place(Place(name="gpu07"))
    fleet.line("gpu07", to_line(data, "gpu07", now=NOW))
    fleet.tick()
    return fleet


def test_every_figure_in_our_names_and_units():
    assert told(printed()) == {
        "schema": 1,
        "node": "gpu07",
        "time": NOW + 1.25,
        "seq": (NOW + 1.25) * 1000,
        "probe": {"gpu_source": "gpustat"},
        "host": {"hostname": "gpu07.cluster"},
        "gpus": [
            {
                "index": 0,
                "uuid": "GPU-10fb0fbd-2696-43f3-467f-d280d906a107",
                "vendor": "nvidia",
                "name": "NVIDIA GeForce GTX TITAN X",
                "driver_version": "535.104.05",
                "temperature_celsius": 80,
                "fan_ratio": 0.33,
                "utilization_ratio": 0.76,
                "encoder_utilization_ratio": 0.0,
                "power_watts": 199.0,
                "power_limit_watts": 250.0,
                "memory_used_bytes": 8520 * MIB,
                "memory_total_bytes": 12287 * MIB,
            }
        ],
        "processes": [
            {
                "pid": 4711,
                "user": "user1",
                "name": "python",
                "command": "/opt/conda/bin/python train.py --api-key *** 'a b'",
                "memory_bytes": 5368709120,
                "gpus": [{"uuid": "GPU-10fb0fbd-2696-43f3-467f-d280d906a107", "memory_bytes": 8520 * MIB}],
            }
        ],
        "reports": [],
    }


def test_fleet_shows_it():
    fleet = taken(printed())
    node = fleet.node("gpu07", detail=True)
    assert (node.state, node.gpu_source, node.clock_difference_seconds) == ("up", "gpustat", 1.2)
    [gpu] = node.gpus
    assert (gpu.state, gpu.model, [use.person for use in gpu.people]) == ("busy", "GTX TITAN X", ["user1"])
    assert [process.cpu_ratio for process in node.processes] == [None]


def test_interval_is_told_where_it_is_known():
    assert told(printed(), interval_seconds=5.0)["probe"] == {"gpu_source": "gpustat", "interval_seconds": 5.0}


@pytest.mark.parametrize("kind", ["h100", "rtx3090"])
@pytest.mark.parametrize("options", [[], ["--show-all"]], ids=["plain", "show-all"])
def test_real_gpustat_shows_what_our_probe_shows(fake, pids, kind, options):
    if not GPUSTAT.exists():
        pytest.skip("make test installs the peers")
    first, second, third = pids
    fake.describe(
        h100_node(2, [Process(first, 0, "3GiB", 40), Process(first, 1, "1GiB", 40), Process(second, 0, "5GiB", 7)])
        if kind == "h100"
        else rtx3090_node(2, [Process(first, 0, "2GiB", 33), Process(second, 1, None, 12), Process(third, 1, "120MiB")])
    )

    def run(*command: str | Path) -> bytes:
        return subprocess.run(
            command, env=fake.environment(), capture_output=True, timeout=PATIENCE_SECONDS, check=True
        ).stdout

    ours = run(sys.executable, "-m", "gpulse_probe", "--once", "--node", "gpu07")
    line = to_line(run(GPUSTAT, "--json", *options), "gpu07")
    seen = []
    for data in (ours, line):
        fleet = Fleet()
        fleet.place(Place(name="gpu07"))
        fleet.line("gpu07", data)
        fleet.tick()
        node = fleet.node("gpu07", detail=True)
        assert abs(node.clock_difference_seconds) < 60
        seen.append(
            (
                node.host.hostname,
                [_shown(gpu) for gpu in node.gpus],
                sorted(
                    (
                        process.pid,
                        process.user,
                        process.person,
                        process.name,
                        process.command,
                        [(use.uuid, use.memory_bytes) for use in process.gpus],
                    )
                    for process in node.processes
                ),
            )
        )
        assert all(process.memory_bytes for process in node.processes)
    assert seen[0] == seen[1]


def _shown(gpu: Any) -> tuple[Any, ...]:
    return (
        gpu.id,
        gpu.index,
        gpu.name,
        gpu.model,
        gpu.driver_version,
        gpu.state,
        gpu.people,
        gpu.memory_used_bytes // MIB,
        gpu.memory_total_bytes // MIB,
        gpu.utilization_ratio,
        gpu.encoder_utilization_ratio,
        gpu.decoder_utilization_ratio,
        gpu.temperature_celsius,
        gpu.fan_ratio,
        # gpustat tells whole watts.
        int(gpu.power_watts),
        gpu.power_limit_watts,
    )


def test_what_is_not_told_is_absent():
    snapshot = told(json.dumps({"gpus": [{"index": 3}]}).encode())
    assert snapshot["gpus"] == [{"index": 3, "uuid": "gpu07/3", "vendor": "nvidia", "processes_listed": False}]
    assert (snapshot["host"], snapshot["time"]) == ({}, NOW)
    assert "processes" not in snapshot
    assert snapshot["reports"] == [
        {"collector": "gpustat", "message": "GPU 3: its driver does not tell gpustat who is on it"}
    ]


@pytest.mark.parametrize("nothing", [None, "Not Supported", "[N/A]", "?", "", "nan", "-inf"])
def test_no_value_is_no_zero(nothing):
    fields = ["temperature.gpu", "fan.speed", "utilization.gpu", "power.draw", "enforced.power.limit", "memory.used"]
    snapshot = told(printed(**dict.fromkeys(fields, nothing), processes=nothing))
    # Null is any error of the driver, so it failed now, and so did what no text explains.
    never = nothing in ("Not Supported", "[N/A]", "")
    why = {"processes_listed"} if never else {"failed_fields", "failed_reason"}
    assert set(snapshot["gpus"][0]) == why | {
        *("index", "uuid", "vendor", "name", "driver_version", "encoder_utilization_ratio", "memory_total_bytes")
    }
    assert "processes" not in snapshot


def test_numbers_as_text_are_numbers():
    gpu = told(printed(**{"index": "2", "temperature.gpu": "45", "memory.used": "10"}))["gpus"][0]
    assert (gpu["index"], gpu["temperature_celsius"], gpu["memory_used_bytes"]) == (2, 45, 10 * MIB)


def test_a_figure_no_card_has_is_told_as_such():
    snapshot = told(printed(**{"memory.used": 2**64 - 1, "power.draw": -1, "fan.speed": 105}))
    gpu = snapshot["gpus"][0]
    assert "memory_used_bytes" not in gpu
    assert "power_watts" not in gpu
    assert gpu["fan_ratio"] == 1.05
    assert [report["message"] for report in snapshot["reports"]] == [
        "GPU 0: memory_used_bytes cannot be what gpustat says, 1.84467e+19",
        "GPU 0: power_watts cannot be what gpustat says, -1",
    ]


def test_lost_card_is_unhealthy():
    lost = {"index": 1, "name": "((GPU is lost))", "processes": None}
    fleet = taken(json.dumps(PRINTED | {"gpus": [PRINTED["gpus"][0], lost]}).encode())
    gpu = fleet.gpus()[1]
    assert (gpu.state, gpu.fault, gpu.name, gpu.id) == ("unhealthy", "GPU is lost", None, "gpu07/1")
    assert fleet.node("gpu07", detail=True).reports == []


def test_cards_without_uuid_keep_their_people_apart():
    known = {"memory.total": 100, "memory.used": 1, "utilization.gpu": 0}
    cards = [
        {"index": index, "name": name, **known, "processes": [{"pid": 7 + index, "username": user}]}
        for index, (name, user) in enumerate([("A", "alice"), ("B", "bob")])
    ]
    idle = {"index": 2, "name": "C", **known, "processes": []}
    fleet = taken(json.dumps({"gpus": [*cards, idle]}).encode())
    gpus = fleet.gpus()
    assert [(gpu.id, [use.person for use in gpu.people]) for gpu in gpus] == [
        ("gpu07/0", ["alice"]),
        ("gpu07/1", ["bob"]),
        ("gpu07/2", []),
    ]
    # Nobody can tell CUDA which card it is where models differ.
    answer = find(gpus, Wish(n=1))
    assert (answer.found, answer.export) == (True, None)


def test_one_process_on_two_cards_is_one():
    cards = [{"index": index, "uuid": f"GPU-{index}", "processes": [{"pid": 5}]} for index in range(2)]
    assert told(json.dumps({"gpus": cards}).encode())["processes"] == [
        {"pid": 5, "gpus": [{"uuid": "GPU-0"}, {"uuid": "GPU-1"}]}
    ]


def test_unknown_of_a_process_is_absent():
    process = {"pid": 5, "username": "?", "command": "?", "full_command": ["?"], "cpu_memory_usage": 0.0}
    snapshot = told(printed(processes=[process | {"gpu_memory_usage": None}, {}]))
    uuid = PRINTED["gpus"][0]["uuid"]
    assert snapshot["processes"] == [{"pid": 5, "gpus": [{"uuid": uuid}]}, {"gpus": [{"uuid": uuid}]}]


def test_no_card_is_an_answer():
    snapshot = told(b'{"gpus": []}')
    assert (snapshot["gpus"], snapshot["processes"], snapshot["reports"]) == ([], [], [])


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("python train.py --password hunter22", "python train.py --password ***"),
        (["sh", "-c", "WANDB_API_KEY=0123456789abcdef python x.py"], "sh -c 'WANDB_API_KEY=*** python x.py'"),
        (["x" * 9000], "x" * 4095 + "…"),
        (["a", "é\n\x1b", ""], "a $'é\\n\\x1b' ''"),
        ([], None),
        ("", None),
    ],
)
def test_command_lines_are_masked(command, expected):
    snapshot = told(printed(processes=[{"pid": 1, "command": "token=abcdef12345", "full_command": command}]))
    [process] = snapshot["processes"]
    assert (process["name"], process.get("command")) == ("token=***", expected)


def test_half_a_pair_of_a_stray_byte_is_no_mistake():
    command = ["run", "caf\udce9", "🚀", "\\ud800"]
    [process] = told(printed(processes=[{"pid": 1, "full_command": command}]))["processes"]
    assert process["command"] == "run 'caf�' '🚀' '\\ud800'"


@pytest.mark.parametrize(
    ("written", "behind"),
    [
        ("2024-05-17T12:00:00+00:00", 0),
        ("2024-05-17T12:00:00Z", 0),
        ("2024-05-17 14:00:00.5+02:00", 0.5),
        # A clock that is hours off is seen, where its zone is told.
        ("2024-05-17T09:00:00Z", -3 * 3600),
        # Without a zone it is taken for one that makes the clock right.
        ("2024-05-17T12:00:03", 3),
        ("2024-05-17T17:45:02", 2),
        ("2024-05-17T04:59:00", -60),
        # As far as zones go.
        ("2024-05-19T12:00:00", 34 * 3600),
    ],
)
def test_time_is_the_nodes(written, behind):
    snapshot = told(printed(query_time=written))
    assert snapshot["time"] == NOW + behind
    assert snapshot["reports"] == []


@pytest.mark.parametrize(
    "written", ["yesterday", "1999-01-01T00:00:00", "9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+14:00", "\0"]
)
def test_time_that_cannot_be_is_the_hubs(written):
    snapshot = told(printed(query_time=written))
    assert snapshot["time"] == NOW
    assert snapshot["reports"][0]["message"].endswith("is no time to be believed: the hub's clock is taken")


def test_time_is_now_where_nobody_says():
    before = time.time()
    assert before - 1 < json.loads(to_line(b'{"gpus": []}', "x"))["time"] < before + 60


def test_snapshots_of_one_second_are_told_apart():
    start = datetime(2024, 5, 17, 12, tzinfo=UTC)
    times = [(start + timedelta(milliseconds=number)).isoformat() for number in range(3)]
    assert len({told(printed(query_time=written))["seq"] for written in times}) == 3


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "truncated"),
        (b"gpu07  Fri May 17 12:00:00 2024", "malformed"),
        (b"[]", "Expected `object`, got `array`"),
        (b"{}", "missing required field `gpus`"),
        (b'{"gpus": null}', "at `$.gpus`"),
        (b'{"gpus": [1]}', "at `$.gpus[0]`"),
        (printed(name=7), "at `$.gpus[0].name`"),
        (printed(processes={}), "at `$.gpus[0].processes`"),
        (printed(processes=[{"pid": "x"}]), "at `$.gpus[0].processes[0].pid`"),
        (printed(**{"power.draw": True}), "at `$.gpus[0].power.draw`"),
        (b'{"gpus": [{"power.draw": 1e999}]}', "out of range"),
        (b'{"gpus": [{"power.draw": NaN}]}', "malformed"),
        (b'{"gpus": [{"name": "\xff"}]}', "decode"),
        (b'{"gpus": ' + b"[" * 100_000, "Expected `object`"),
        (b'{"gpus": [], "x": ' + b"[" * 100_000, "nested too deeply"),
        (b'{"gpus": [' + b"{}," * 600 + b"{}]}", "601 GPUs and 0 processes on one node are not believed"),
        (b'{"gpus": [' + b"{}," * 300_000 + b"{}]}", "300,002 records in one line are not believed"),
        (printed(processes=[{}] * 9000), "1 GPUs and 9000 processes on one node are not believed"),
    ],
)
def test_anything_else_is_refused_in_words(data, words):
    with pytest.raises(BadLine) as refused:
        to_line(data, "gpu07")
    assert words in str(refused.value)


def test_endless_commands_take_no_endless_time():
    # The worst for masking: names of secrets without end.
    processes = [{"pid": number, "full_command": "key=" * 2000} for number in range(120)]
    data = printed(processes=processes)
    assert len(data) > 900_000
    started = time.process_time()
    snapshot = told(data)
    assert time.process_time() - started < 1.5
    assert "command" in snapshot["processes"][0]
    assert "command" not in snapshot["processes"][-1]
    assert snapshot["reports"][-1]["message"] == (
        "104 names and command lines are left out: they are too long together"
    )


def test_line_of_shell_in_the_docs(tmp_path):
    """As it is written: the token in a header, and in no command line."""
    asked: list[tuple[str, str, bytes]] = []
    arrived = threading.Event()

    class Hub(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            asked.append((self.path, self.headers["Authorization"], body))
            self.send_response(200)
            self.end_headers()
            arrived.set()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
            """Nothing is printed."""

    server = HTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    scripts = re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "push.md").read_text("utf-8"), re.DOTALL)
    (script,) = [one for one in scripts if "gpustat" in one]
    for name, value in (
        ("TOKEN", "gpn_1_2"),
        ("HUB:7070", f"127.0.0.1:{server.server_port}"),
        ("sleep 5", "sleep 0.1"),
    ):
        assert name in script
        script = script.replace(name, value)
    (tmp_path / "printed").write_bytes(printed())
    (tmp_path / "gpustat").write_text(f'#!/bin/sh\ntest "$1" = --json && cat {tmp_path}/printed\n')
    (tmp_path / "gpustat").chmod(0o755)
    environment = {"HOME": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    loop = subprocess.Popen(["sh", "-c", script], env=environment, start_new_session=True, stderr=subprocess.PIPE)
    try:
        assert arrived.wait(PATIENCE_SECONDS)
    finally:
        os.killpg(loop.pid, 9)
        loop.communicate()
        server.shutdown()
        server.server_close()
    assert asked[0] == ("/api/v1/ingest/gpustat", "Bearer gpn_1_2", printed())
    assert (tmp_path / ".gpulse-curl").stat().st_mode & 0o077 == 0
    assert "gpn_1_2" not in script.splitlines()[1]
