"""A whole Snapshot with an update in it is what the reference of the updates says."""

import json
import sys

from gpulse_probe.merging import merged
from tests.conform import conforms
from tests.fake_nvml import Process, h100_node
from tests.probe.running import RunningProbe
from tests.probe.test_updates import apply

COMMAND = [sys.executable, "-m", "gpulse_probe", "--stream", "--updates", "--interval", "0.1"]


def test_real_lines(fake, pids):
    fake.describe(h100_node(2, [Process(pids[0], gpu=0, sm=40), Process(pids[1], gpu=1, memory=None)], moving=True))
    whole = None
    updates = 0
    with RunningProbe(fake.environment(), command=COMMAND) as probe:
        while updates < 15:
            line = probe.line()
            told = json.loads(line)
            if "update" not in told:
                whole = line
                assert merged(whole) == told
                continue
            updates += 1
            snapshot = merged(whole, line)
            assert snapshot == apply(json.loads(whole), told)
            assert conforms("Snapshot", snapshot) == []


def test_unknown_is_absent():
    whole = {
        "seq": 3,
        "time": 10.0,
        "devices_age_seconds": 4.0,
        "host": {"load_1m": 1.0, "os": "x"},
        "gpus": [{"index": 0, "power_watts": 1.0}, {"index": 1}],
        "processes": [{"pid": 1, "gpus": [{"uuid": "a", "sm_ratio": 0.1}, {"uuid": "b"}]}],
        "reports": [{"collector": "x", "message": "y"}],
    }
    update = {
        "update": 3,
        "seq": 4,
        "time": 11.0,
        "host": {"load_1m": None},
        "gpus": {"power_watts": [None, 2.0]},
        "uses": {"sm_ratio": [None, 0.5]},
    }
    assert merged(json.dumps(whole).encode(), json.dumps(update).encode()) == {
        "seq": 4,
        "time": 11.0,
        "host": {"os": "x"},
        "gpus": [{"index": 0}, {"index": 1, "power_watts": 2.0}],
        "processes": [{"pid": 1, "gpus": [{"uuid": "a"}, {"uuid": "b", "sm_ratio": 0.5}]}],
        "reports": [],
    }


def test_gpus_that_are_unknown():
    whole = b'{"seq":0,"time":1.0,"host":{},"reports":[]}'
    assert merged(whole, b'{"update":0,"seq":1,"time":2.0}')["seq"] == 1
