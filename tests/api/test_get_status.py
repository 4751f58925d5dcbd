"""POST /get-status: the whole fleet in the shape that older monitors read."""

import asyncio
import json
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from gpulse.api import get_status
from gpulse.api.application import create_app
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.places import Place
from tests.api.asking import ask
from tests.api.fleets import GIB, HOSTILE, add, card, process, small, snapshot
from tests.api.people import open_access


def status(fleet: Fleet, body: bytes = b'{"passwd": "8888"}') -> dict[str, Any]:
    response = ask(
        create_app(fleet, access=open_access()), "/get-status", "POST", {"Content-Type": "application/json"}, body
    )
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    assert set(response.json()) == {"Nodes"}
    return {node["hostname"]: node for node in response.json()["Nodes"]}


def test_the_shape_is_the_documented_one(monkeypatch: pytest.MonkeyPatch):
    # Held, and without a zone: clocks that go back meanwhile would be an hour apart.
    now = 1_700_000_000.0
    monkeypatch.setattr(get_status, "time", SimpleNamespace(time=lambda: now))
    nodes = status(small())
    assert list(nodes) == ["gpu1", "gpu2", "gpu3", "gpu10"]
    node = nodes["gpu1"]
    updated = datetime.fromisoformat(node.pop("last_update"))
    assert abs(datetime.fromtimestamp(now) - updated) < timedelta(seconds=10)
    user = {"pid": 11, "username": "alice", "mem(MiB)": 40 * 1024, "command": "python train.py"}
    gpu = {"name": "NVIDIA H100 80GB HBM3", "tot_mem": 80 * 1024}
    assert node == {
        "hostname": "gpu1",
        "ips": [],
        "gpus": [
            {"index": 0, **gpu, "use_mem": 40 * 1024, "utilize": 90, "temp": 70, "users": [user], "state": "busy"},
            {"index": 1, **gpu, "use_mem": 0, "utilize": 0, "temp": 35, "users": [], "state": "free"},
        ],
        "status": True,
        "version": "NVIDIA H100 80GB HBM3",
        "reason": "",
    }


def test_a_node_that_is_down_says_why():
    nodes = status(small())
    assert nodes["gpu3"] == {
        "hostname": "gpu3",
        "last_update": None,
        "ips": [],
        "gpus": [],
        "status": False,
        "version": "",
        "reason": "connection refused",
    }


@pytest.mark.parametrize("state", ["stale", "down"])
def test_a_silent_node_is_not_up_for_ever(state: str):
    now = 1000.0
    fleet = Fleet(clock=lambda: now)
    add(fleet, "gpu1", 1)
    fleet.tick()
    now += 100
    if state == "down":
        fleet.down("gpu1", "no route to host")
    fleet.tick()
    node = status(fleet)["gpu1"]
    assert node["status"] is False
    assert node["reason"] == ("no route to host" if state == "down" else "no snapshot for 100 s")
    assert node["gpus"] == [
        {
            "index": 0,
            "name": "NVIDIA H100 80GB HBM3",
            "use_mem": None,
            "tot_mem": 80 * 1024,
            "utilize": None,
            "temp": None,
            "users": [],
            "state": state,
        }
    ]


def test_addresses_unknown_figures_and_instances():
    fleet = Fleet()
    fleet.place(Place(name="n"))
    cards = [
        card("GPU-a", 0, mig_enabled=True, utilization_ratio=None, memory_used_bytes=None, temperature_celsius=None),
        card("MIG-1", 0, parent_uuid="GPU-a", mig_index=0),
        card("MIG-2", 0, parent_uuid="GPU-a", mig_index=1),
    ]
    both = process(5, "bob", "MIG-1", "python x", 2)
    both["gpus"].append({"uuid": "MIG-2", "memory_bytes": 3 * GIB})
    host = {"networks": [{"interface": "eno1", "addresses": ["192.0.2.3", "2001:db8::1"]}, {"interface": "eno2"}]}
    fleet.line("n", snapshot("n", cards, [both, process(6, "eve", "GPU-elsewhere", "x")], host=host))
    fleet.tick()
    node = status(fleet)["n"]
    assert node["ips"] == [["eno1", "192.0.2.3"], ["eno1", "2001:db8::1"]]
    (gpu,) = node["gpus"]
    assert (gpu["utilize"], gpu["use_mem"], gpu["temp"], gpu["tot_mem"]) == (None, None, None, 80 * 1024)
    assert gpu["users"] == [{"pid": 5, "username": "bob", "mem(MiB)": 5 * 1024, "command": "python x"}]


def test_whatever_a_node_sends_can_be_read():
    fleet = Fleet()
    fleet.place(Place(name="odd"))
    cards = [card("GPU-a", 0, name=HOSTILE, memory_used_bytes=10**400, temperature_celsius=10**300), {}]
    fleet.line("odd", snapshot("odd", cards, [process(1, HOSTILE, "GPU-a", HOSTILE)]))
    fleet.tick()
    (first, second) = status(fleet)["odd"]["gpus"]
    assert first["name"] == first["users"][0]["username"] == HOSTILE
    assert second["name"] is None


@pytest.mark.parametrize("body", [b"{}", b'{"passwd": ""}', b'{"passwd": "x", "more": 1}'])
def test_whoever_reaches_the_hub_may_read(body: bytes):
    assert set(status(small(), body)) == {"gpu1", "gpu2", "gpu3", "gpu10"}


@pytest.mark.parametrize(
    ("method", "body", "expected"),
    [("POST", b"", 400), ("POST", b"[]", 400), ("POST", b'{"passwd": 8888}', 400), ("GET", None, 405)],
)
def test_other_requests_are_refused(method: str, body: bytes | None, expected: int):
    response = ask(create_app(small(), access=open_access()), "/get-status", method, content=body)
    assert response.status_code == expected
    assert set(json.loads(response.content)["error"]) == {"code", "message", "detail"}


def test_one_answer_a_tick_for_all(monkeypatch: pytest.MonkeyPatch):
    made = []
    each_node = get_status.each_node

    def counting(*arguments: Any) -> Any:
        made.append(1)
        return each_node(*arguments)

    monkeypatch.setattr(get_status, "each_node", counting)
    fleet = small()
    app = create_app(fleet, access=open_access())

    async def asked(body: bytes) -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://hub") as client:
            return await client.post("/get-status", content=body)

    async def scene() -> None:
        answers = await asyncio.gather(*(asked(b'{"passwd": "%d"}' % number) for number in range(40)))
        assert {answer.status_code for answer in answers} == {200}
        assert len({answer.content for answer in answers}) == 1
        assert "etag" not in answers[0].headers
        assert len(made) == 1
        # What is no question gets no answer, though there is one.
        assert (await asked(b"[]")).status_code == 400
        assert (await asked(b"{}")).content == answers[0].content
        fleet.tick()
        assert (await asked(b"{}")).status_code == 200
        assert len(made) == 2

    asyncio.run(scene())
