"""The last ten minutes over the API."""

import pytest

from gpulse.fleet.fleet import Fleet
from gpulse.fleet.places import Place
from tests.api.asking import answer, refusal
from tests.api.fleets import add, card, snapshot


def lived(seconds: int) -> Fleet:
    now = [100.0]
    fleet = Fleet(clock=lambda: now[0], wall=lambda: 1e9 + now[0])
    fleet.place(Place(name="gpu3"))
    for _ in range(seconds):
        add(fleet, "gpu1")
        fleet.tick()
        now[0] += 1
    return fleet


def test_all_gpus_of_a_node():
    told = answer(lived(21), "/api/v1/history?node=gpu1")
    assert (told["node"], told["step_seconds"], told["end"]) == ("gpu1", 10, 1e9 + 120)
    first, second = told["gpus"]
    assert set(first) == {"id", "node", "utilization", "memory", "temperature", "power"}
    assert (first["id"], second["id"]) == ("GPU-gpu1-0", "GPU-gpu1-1")
    assert first["utilization"] == [255] * 58 + [180, 180]
    assert first["memory"] == [255] * 58 + [100, 100]
    assert first["temperature"] == [255] * 58 + [70, 70]
    assert second["power"] == [65535] * 58 + [70, 70]


def test_one_gpu_by_its_id():
    told = answer(lived(11), "/api/v1/history?gpu=GPU-gpu1-1")
    assert told["node"] == "gpu1"
    assert [gpu["id"] for gpu in told["gpus"]] == ["GPU-gpu1-1"]
    fleet = Fleet()
    fleet.place(Place(name="gpu7"))
    fleet.line("gpu7", snapshot("gpu7", [card(None, 0), card(None, 1)]))
    fleet.tick()
    assert [gpu["id"] for gpu in answer(fleet, "/api/v1/history?gpu=gpu7/1")["gpus"]] == ["gpu7/1"]


def test_several_nodes_in_one_answer():
    fleet = lived(21)
    add(fleet, "gpu10", gpus=1)
    fleet.tick()
    told = answer(fleet, "/api/v1/history?nodes=gpu[1-10],nowhere")
    assert (told["node"], told["step_seconds"]) == (None, 10)
    ids = [(gpu["node"], gpu["id"]) for gpu in told["gpus"]]
    assert ids == [("gpu1", "GPU-gpu1-0"), ("gpu1", "GPU-gpu1-1"), ("gpu10", "GPU-gpu10-0")]
    assert told["gpus"][:2] == answer(fleet, "/api/v1/history?node=gpu1")["gpus"]
    assert answer(fleet, "/api/v1/history?nodes=nowhere")["gpus"] == []


def test_only_one_figure():
    whole = answer(lived(21), "/api/v1/history?nodes=gpu1")["gpus"]
    for figure in ("utilization", "memory", "temperature", "power"):
        told = answer(lived(21), f"/api/v1/history?nodes=gpu1&only={figure}")["gpus"]
        empty = {"utilization": [], "memory": [], "temperature": [], "power": []}
        assert told == [{**gpu, **empty, figure: gpu[figure]} for gpu in whole]


def test_a_node_that_has_told_nothing_has_no_past():
    assert answer(lived(11), "/api/v1/history?node=gpu3")["gpus"] == []


@pytest.mark.parametrize(
    ("query", "status", "code", "words"),
    [
        ("", 400, "missing_parameter", "none of node, nodes and gpu"),
        ("?node=gpu1&gpu=GPU-gpu1-0", 400, "bad_parameter", "both"),
        ("?node=gpu1&nodes=gpu1", 400, "bad_parameter", "node and nodes"),
        ("?nodes=gpu[1-", 400, "bad_parameter", "nodes=gpu[01-16,20]"),
        ("?nodes=gpu[1-101]", 400, "bad_parameter", "101 nodes are more than 100"),
        ("?nodes=gpu[1-999999]", 400, "bad_parameter", "more than 100,000"),
        ("?node=gpu1&only=fans", 400, "bad_parameter", "only"),
        ("?node=", 400, "bad_parameter", "node"),
        ("?node=gpu11", 404, "unknown_node", "gpu11"),
        ("?gpu=GPU-x", 404, "unknown_gpu", "GPU-x"),
    ],
)
def test_what_cannot_be_told(query: str, status: int, code: str, words: str):
    error = refusal(lived(1), "/api/v1/history" + query, status)
    assert error["code"] == code
    assert words in error["message"]
