"""Somebody fills command lines: the node is still told of, in lines that a hub takes, whichever way they go."""

import json
import os
import signal
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulse.transport.bundle import make_agent
from gpulse_probe import shortening
from gpulse_probe.devices import encode
from gpulse_probe.shortening import MOST_BYTES, fitted
from tests.fake_nvml import h100_node
from tests.fake_nvml.nodes import Process
from tests.interpreters import interpreters
from tests.patience import PATIENCE_SECONDS
from tests.probe.hub_stand_in import StandInHub
from tests.probe.pushing import RunningAgent, until
from tests.probe.running import messages, once
from tests.probe.serving import SOURCES, Serving

MOST_LINE_BYTES = 900_000
MOST_RECORDS = 20_000
WIDE = "\U0001f525"
# Has so many children, each with the command line that it has itself.
CROWD = """
import os, signal, sys
children = []
for _ in range(int(sys.argv[1])):
    pid = os.fork()
    if not pid:
        signal.pause()
    children.append(pid)
print(*children, flush=True)
signal.pause()
"""


def record(pid, command, gpus=1, **more):
    uses = [
        {
            "uuid": f"MIG-GPU-a1b2c3d4-0000-4000-8000-0000000000{number:02x}/11/0",
            "kinds": ["compute", "graphics", "mps"],
            "memory_bytes": (1 << 48) - 1,
            "sm_ratio": 0.1234,
        }
        for number in range(gpus)
    ]
    return {
        "pid": pid,
        "parent_pid": 4194303,
        "start_time": 1763246412.17,
        "name": "python3",
        "uid": (1 << 32) - 1,
        "user": "somebody",
        "cgroup": "/user.slice/user-1000.slice/session-1.scope",
        "command": command,
        "nice": -20,
        "state": "S",
        "cpu_seconds_total": 123456789.123,
        "memory_bytes": (1 << 48) - 1,
        "vanished": True,
        "gpus": uses,
        **more,
    }


def fit(*records):
    said = []
    return fitted(list(records), said.append), said


def test_what_is_small_stays_as_it_is_and_costs_nothing(monkeypatch):
    monkeypatch.setattr(shortening, "_cost", None)
    crowd = [record(pid, "python train.py --config x.yaml" * 10) for pid in range(32)]
    kept, said = fit(*crowd)
    assert kept == [record(pid, "python train.py --config x.yaml" * 10) for pid in range(32)]
    assert said == []


def test_long_command_lines_are_cut_and_short_ones_are_not():
    kept, said = fit(*[record(pid, "x" * 4096) for pid in range(300)], record(900, "python train.py"))
    assert len(kept) == 301
    assert {len(one["command"]) for one in kept[:300]} == {1024}
    assert kept[0]["command"] == "x" * 1023 + "…"
    assert kept[300]["command"] == "python train.py"
    assert said == ["300 command lines are cut to 1024 characters: together they are more than a hub takes"]


def test_braces_do_not_make_a_hub_think_that_there_are_too_many_records():
    kept, said = fit(*[record(pid, "{" * 4096) for pid in range(16)])
    assert len(kept) == 16
    assert encode(kept).count("{") <= MOST_RECORDS
    assert len(said) == 1


def test_too_many_processes():
    kept, said = fit(*[record(pid, "python train.py", gpus=8) for pid in range(5000)])
    assert 200 < len(kept) < 5000
    assert [one["pid"] for one in kept] == list(range(len(kept)))
    assert said == [f"{5000 - len(kept)} processes are left out: all of them are more than a hub takes"]
    assert len(encode(kept)) <= MOST_BYTES


def test_one_that_is_too_large_by_itself_does_not_push_others_out():
    kept, _ = fit(record(1, "a", children=list(range(100_000))), record(2, "b"))
    assert [one["pid"] for one in kept] == [2]


def test_what_is_cut_does_not_change_with_what_moves():
    """Or else each tick would tell everything anew."""
    for long in (150, 290, 299, 310):
        found = set()
        for moved in range(5):
            kept, _ = fit(*[record(pid, "x" * 4096, memory_bytes=10 ** (moved * 4)) for pid in range(long)])
            found.add(encode([one["command"] for one in kept]))
        assert len(found) == 1


@settings(max_examples=20)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["x", '"', "\\", "{", "é", WIDE, "\ud800", "{" + WIDE]),
            st.integers(0, 4096),
            st.integers(0, 4096),
            st.integers(1, 16),
            st.integers(1, 400),
        ),
        max_size=6,
    )
)
def test_whatever_there_is_fits(kinds):
    crowd = [
        record(1000 * number + pid, (letter * size)[:4096], gpus, cgroup="/" + (letter * path)[:4095])
        for number, (letter, size, path, gpus, count) in enumerate(kinds)
        for pid in range(count)
    ]
    kept, said = fit(*crowd)
    assert len(encode(kept)) <= MOST_BYTES
    assert encode(kept).count("{") <= MOST_RECORDS
    assert bool(said) or len(kept) == len(crowd)


@pytest.fixture
def crowd():
    """120 real processes, whose command lines take 5 MB as JSON."""
    command = [sys.executable, "-c", CROWD, "120", *[WIDE * 500] * 8]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout
    yield [int(word) for word in process.stdout.readline().split()]
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()


@pytest.fixture
def environment(fake, crowd):
    fake.describe(h100_node(8, [Process(pid, gpu=number % 8) for number, pid in enumerate(crowd)]))
    return {**fake.environment(), "PYTHONPATH": str(SOURCES)}


def check(line):
    """A whole Snapshot in which all are told of."""
    assert len(line) <= MOST_LINE_BYTES
    snapshot = json.loads(line)
    assert len(snapshot["processes"]) == 120
    assert {len(process["command"]) for process in snapshot["processes"]} == {512}
    assert "120 command lines are cut to 512 characters: together they are more than a hub takes" in messages(snapshot)
    return snapshot


def test_every_way_out_takes_lines_that_fit(environment, tmp_path):
    check(json.dumps(once(environment), separators=(",", ":")))
    with StandInHub() as hub, RunningAgent(tmp_path / "a", hub.url, environment=environment):
        visit = hub.visit()
        check(visit.next()[1])
        update = visit.line()
        assert "update" in update, "it is not told anew each tick"
        assert "cut to 512 characters" in str(update["reports"])
    with Serving(tmp_path, environment) as serving:
        check(serving.ask("/snapshot").body)
    shared = tmp_path / "shared"
    shared.mkdir()
    command = [sys.executable, "-m", "gpulse_probe", "drop", str(shared), "--node", "n1"]
    dropping = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        check(until(lambda: (shared / "n1.json").exists() and (shared / "n1.json").read_bytes()))
    finally:
        dropping.terminate()
        dropping.wait(PATIENCE_SECONDS)


def test_the_oldest_python(environment, tmp_path):
    file = tmp_path / "agent.pyz"
    file.write_bytes(make_agent().data)
    alone = {**environment, "PYTHONPATH": ""}
    python, program = next(iter(interpreters().values())), ["-S", str(file)]
    with StandInHub() as hub, RunningAgent(tmp_path / "a", hub.url, python=python, program=program, environment=alone):
        check(hub.visit().next()[1])
