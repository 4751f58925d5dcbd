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
    assert set(first) == {"id", "utilization", "memory", "temperature", "power"}
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


def test_a_node_that_has_told_nothing_has_no_past():
    assert answer(lived(11), "/api/v1/history?node=gpu3")["gpus"] == []


@pytest.mark.parametrize(
    ("query", "status", "code", "words"),
    [
        ("", 400, "missing_parameter", "neither node nor gpu"),
        ("?node=gpu1&gpu=GPU-gpu1-0", 400, "bad_parameter", "both"),
        ("?node=", 400, "bad_parameter", "node"),
        ("?node=gpu11", 404, "unknown_node", "gpu11"),
        ("?gpu=GPU-x", 404, "unknown_gpu", "GPU-x"),
    ],
)
def test_what_cannot_be_told(query: str, status: int, code: str, words: str):
    error = refusal(lived(1), "/api/v1/history" + query, status)
    assert error["code"] == code
    assert words in error["message"]
