"""The old shape of a node's status: the documented keys, units and types, null where a figure is unknown."""

import datetime
import time

import pytest

from gpulse_probe.get_status import get_status
from tests.fleet.lines import GIB, gpu

NODE_KEYS = ["hostname", "last_update", "ips", "gpus", "status", "version"]
GPU_KEYS = ["index", "name", "use_mem", "tot_mem", "utilize", "temp", "users"]
USER_KEYS = ["pid", "username", "mem(MiB)", "command"]


def snapshot(*gpus, processes=(), **host):
    return {"node": "gpu07", "time": 1700000000.5, "host": host, "gpus": list(gpus), "processes": list(processes)}


def test_the_documented_shape():
    networks = [{"interface": "eno1", "addresses": ["192.0.2.3", "fd00::3"]}, {"interface": "eno2"}]
    process = {
        "pid": 123,
        "user": "alice",
        "command": "python train.py",
        "gpus": [{"uuid": "GPU-0", "memory_bytes": 1024 << 20}],
    }
    card = gpu(memory_used_bytes=3 * GIB + (1 << 19), utilization_ratio=0.555, temperature_celsius=61)
    status = get_status(snapshot(card, gpu(1), processes=[process], networks=networks))
    assert list(status) == NODE_KEYS
    assert status["hostname"] == "gpu07"
    assert status["ips"] == [["eno1", "192.0.2.3"], ["eno1", "fd00::3"]]
    assert status["status"] is True
    assert status["version"] == "NVIDIA H100 80GB HBM3"
    first, second = status["gpus"]
    assert list(first) == GPU_KEYS
    assert first == {
        "index": 0,
        "name": "NVIDIA H100 80GB HBM3",
        "use_mem": 3072,
        "tot_mem": 81920,
        "utilize": 56,
        "temp": 61,
        "users": [{"pid": 123, "username": "alice", "mem(MiB)": 1024, "command": "python train.py"}],
    }
    assert list(first["users"][0]) == USER_KEYS
    assert second["users"] == []


def test_last_update_is_what_readers_compare_with_their_own_clock():
    told = datetime.datetime.fromisoformat(get_status(snapshot())["last_update"])
    assert told.tzinfo is None
    assert time.mktime(told.timetuple()) == 1700000000
    assert told.microsecond == 500000


def test_unknown_is_null():
    process = {"pid": 5, "gpus": [{"uuid": "GPU-0"}]}
    status = get_status(snapshot({"uuid": "GPU-0", "index": 0, "fault": "GPU is lost"}, processes=[process]))
    assert status["gpus"] == [
        {
            "index": 0,
            "name": None,
            "use_mem": None,
            "tot_mem": None,
            "utilize": None,
            "temp": None,
            "users": [{"pid": 5, "username": None, "mem(MiB)": None, "command": None}],
        }
    ]
    assert status["version"] == ""


@pytest.mark.parametrize("record", [{"node": "x", "time": 1.0}, snapshot()])
def test_a_node_without_gpus(record):
    assert get_status(record)["gpus"] == []
    assert get_status(record)["version"] == ""


def test_what_runs_on_an_instance_runs_on_its_card():
    instances = [gpu(0, uuid=f"MIG-{place}", parent_uuid="GPU-0", mig_index=place) for place in (0, 1)]
    uses = [{"uuid": "MIG-0", "memory_bytes": GIB}, {"uuid": "MIG-1", "memory_bytes": GIB}]
    status = get_status(snapshot(gpu(0), *instances, processes=[{"pid": 7, "user": "bob", "name": "a", "gpus": uses}]))
    [card] = status["gpus"]
    assert card["users"] == [{"pid": 7, "username": "bob", "mem(MiB)": 2048, "command": "a"}]


def test_old_values_of_a_card_that_hangs_are_null():
    hung = gpu(utilization_ratio=0.5, failed_fields=["utilization_ratio", "memory_used_bytes", "processes"])
    (card,) = get_status(snapshot(hung))["gpus"]
    assert (card["utilize"], card["use_mem"], card["tot_mem"]) == (None, None, 81920)
