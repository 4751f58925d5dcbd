"""GPUs whose use is unknown, over every way the hub tells of them; and machines under two names."""

import json
from typing import Any

import pytest

from gpulse.api.application import create_app
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.places import Place
from tests.api.asking import answer, ask, get
from tests.api.fleets import card, snapshot
from tests.api.people import open_access


@pytest.fixture
def fleet() -> Fleet:
    """A node with a GPU that is free and one that cannot be read, and its driver is slow."""
    made = Fleet()
    made.place(Place(name="n1"))
    failing = {"failed_fields": ["utilization_ratio", "processes"], "utilization_ratio": None}
    cards = [card("GPU-0", 0), card("GPU-1", 1, **failing, power_watts=211.0)]
    made.line("n1", snapshot("n1", cards, devices_age_seconds=5.0))
    made.tick()
    return made


def metrics(fleet: Fleet, start: str) -> list[str]:
    return [line for line in get(fleet, "/metrics").text.splitlines() if line.startswith(start)]


def test_it_is_handed_out_by_nobody(fleet: Fleet):
    assert "CUDA_VISIBLE_DEVICES=0 " in get(fleet, "/free").text
    refused = get(fleet, "/free?n=2")
    assert refused.status_code == 404
    assert "1 is unknown" in refused.text
    found = answer(fleet, "/api/v1/free?n=2")
    assert (found["found"], found["export"]) == (False, None)
    assert "1 is unknown" in found["explanation"]


def test_lists_and_filters_know_it(fleet: Fleet):
    for query in ("state=unknown", "q=unknown", "q=state:unknown", "q=-free"):
        assert [gpu["id"] for gpu in answer(fleet, f"/api/v1/gpus?{query}")["items"]] == ["GPU-1"], query
    assert [node["name"] for node in answer(fleet, "/api/v1/nodes?q=unknown")["items"]] == ["n1"]


def test_people_and_processes_are_absent_where_unknown(fleet: Fleet):
    first, second = answer(fleet, "/api/v1/gpus")["items"]
    assert first["people"] == []
    assert "people" not in second
    assert answer(fleet, "/api/v1/users")["unknown_gpus"] == 1
    line = json.loads(snapshot("n1", [card("GPU-0", 0)], seq=2))
    del line["processes"]
    fleet.line("n1", json.dumps(line).encode())
    assert "processes" not in answer(fleet, "/api/v1/nodes/n1")
    fleet.line("n1", snapshot("n1", [card("GPU-0", 0)], seq=3))
    assert answer(fleet, "/api/v1/nodes/n1")["processes"] == []


def test_metrics_count_it_and_tell_its_age(fleet: Fleet):
    assert metrics(fleet, 'gpulse_gpus{model="H100 80G",state="unknown"}') == [
        'gpulse_gpus{model="H100 80G",state="unknown"} 1.0'
    ]
    assert metrics(fleet, 'gpulse_gpu_state{node="n1",gpu="1"') == [
        'gpulse_gpu_state{node="n1",gpu="1",state="unknown"} 1.0'
    ]
    for start in ('gpulse_gpu_age_seconds{node="n1",gpu="0"}', 'gpulse_node_devices_age_seconds{node="n1"}'):
        (line,) = metrics(fleet, start)
        assert float(line.split()[-1]) >= 5.0
    assert metrics(fleet, "gpulse_power_known_gpus ") == ["gpulse_power_known_gpus 2.0"]


def test_metrics_have_no_sum_of_nothing():
    fleet = Fleet()
    assert metrics(fleet, "gpulse_power_watts") == []
    assert metrics(fleet, "gpulse_memory_free_bytes") == []
    assert metrics(fleet, "gpulse_power_known_gpus ") == ["gpulse_power_known_gpus 0.0"]


def test_old_values_are_not_told_as_if_they_were_so_now(fleet: Fleet):
    assert len(metrics(fleet, "gpulse_gpu_power_watts{")) == 2
    fleet.line("n1", snapshot("n1", [card("GPU-0", 0)], seq=2, devices_age_seconds=100.0))
    fleet.tick()
    assert metrics(fleet, "gpulse_gpu_power_watts{") == []
    assert len(metrics(fleet, "gpulse_gpu_age_seconds{")) == 1


def test_older_monitors_see_it_too(fleet: Fleet):
    headers = {"Content-Type": "application/json"}
    told = ask(create_app(fleet, access=open_access()), "/get-status", "POST", headers, b"{}").json()
    first, second = told["Nodes"][0]["gpus"]
    assert (first["state"], first["users"]) == ("free", [])
    assert (second["state"], second["users"], second["utilize"]) == ("unknown", None, None)


def test_older_monitors_see_no_values_from_before_a_card_hung(fleet: Fleet):
    hung = card("GPU-0", 0, failed_fields=["memory_used_bytes", "utilization_ratio", "processes"], age_seconds=9.0)
    fleet.line("n1", snapshot("n1", [hung], seq=2))
    fleet.tick()
    headers = {"Content-Type": "application/json"}
    told = ask(create_app(fleet, access=open_access()), "/get-status", "POST", headers, b"{}").json()
    (only,) = told["Nodes"][0]["gpus"]
    assert (only["state"], only["use_mem"], only["utilize"], only["users"]) == ("unknown", None, None, None)


def test_a_machine_under_two_names_is_counted_once(fleet: Fleet):
    fleet.place(Place(name="n2"))
    fleet.line("n2", snapshot("n1", [card("GPU-0", 0)]))
    fleet.tick()
    assert answer(fleet, "/api/v1/nodes/n2")["same_machine_as"] == "n1"
    summary: dict[str, Any] = answer(fleet, "/api/v1/summary")
    assert (summary["gpus"], summary["same_machine_nodes"]) == (2, 1)
    assert metrics(fleet, "gpulse_same_machine_nodes ") == ["gpulse_same_machine_nodes 1.0"]
    assert metrics(fleet, "gpulse_node_same_machine_info{") == [
        'gpulse_node_same_machine_info{node="n2",same_as="n1"} 1.0'
    ]
    assert [line for line in metrics(fleet, "gpulse_gpu_power_watts{") if "n2" in line] == []
    assert answer(fleet, "/api/v1/free?n=2")["found"] is False
