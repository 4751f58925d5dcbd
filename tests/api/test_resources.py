"""What each address tells."""

import msgspec
import pytest

from gpulse.api.turns import Turn
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.places import Place
from tests.api.asking import answer, get, refusal
from tests.api.fleets import GIB, HOSTILE, add, card, process, small, snapshot
from tests.api.people import open_access


def names(page: dict) -> list[str]:
    return [item["name"] for item in page["items"]]


def test_nodes_in_natural_order():
    page = answer(small(), "/api/v1/nodes")
    assert names(page) == ["gpu1", "gpu2", "gpu3", "gpu10"]
    assert (page["total"], page["next"]) == (4, None)
    gpu1, _, gpu3, _ = page["items"]
    assert (gpu1["state"], gpu1["reason"], gpu1["group"]) == ("up", "", "lab")
    assert gpu1["age_seconds"] < 5
    assert [gpu["state"] for gpu in gpu1["gpus"]] == ["busy", "free"]
    assert "host" not in gpu1
    assert (gpu3["state"], gpu3["reason"], gpu3["age_seconds"], gpu3["gpus"]) == (
        "down",
        "connection refused",
        None,
        [],
    )


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("q=free", ["gpu1", "gpu2", "gpu10"]),
        ("q=down", ["gpu3"]),
        ("q=-down", ["gpu1", "gpu2", "gpu10"]),
        ("q=node:gpu[1-2]", ["gpu1", "gpu2"]),
        ("q=train.py", ["gpu1", "gpu2", "gpu10"]),
        ("q=nobody", []),
        ("q=mine&me=alice+", []),
        ("q=mine&me=alice", ["gpu1", "gpu2", "gpu10"]),
        ("state=down", ["gpu3"]),
        ("group=shared", ["gpu10"]),
        ("sort=-name", ["gpu10", "gpu3", "gpu2", "gpu1"]),
        ("sort=gpus", ["gpu3", "gpu1", "gpu2", "gpu10"]),
        ("sort=-free&q=gpu1", ["gpu1", "gpu10"]),
    ],
)
def test_which_nodes(query: str, expected: list[str]):
    page = answer(small(), f"/api/v1/nodes?{query}")
    assert names(page) == expected
    assert page["total"] == len(expected)


def test_nodes_with_a_full_disk():
    fleet = small()
    full = {"mount": "/scratch", "total_bytes": 1000, "used_bytes": 940, "available_bytes": 10}
    roomy = full | {"used_bytes": 900, "available_bytes": 50}
    for name, disk in (("gpu1", full), ("gpu2", roomy), ("gpu10", {"mount": "/mnt"})):
        fleet.line(name, snapshot(name, [card(f"GPU-{name}", 0)], host={"hostname": name, "disks": [disk]}))
    fleet.tick()
    assert names(answer(fleet, "/api/v1/nodes?full=true")) == ["gpu1"]
    # Also where only an update tells of it.
    fleet.line("gpu2", b'{"update":1,"seq":2,"time":1001.0,"host":{"disks":[%s]}}' % msgspec.json.encode(full))
    fleet.tick()
    assert names(answer(fleet, "/api/v1/nodes?full=true&detail=true")) == ["gpu1", "gpu2"]
    assert names(answer(fleet, "/api/v1/nodes?full=true&q=-node:gpu1")) == ["gpu2"]


def test_pages_go_on_to_the_end():
    fleet = small()
    first = answer(fleet, "/api/v1/nodes?limit=3")
    assert (names(first), first["total"], first["next"]) == (["gpu1", "gpu2", "gpu3"], 4, 3)
    second = answer(fleet, f"/api/v1/nodes?limit=3&offset={first['next']}")
    assert (names(second), second["next"]) == (["gpu10"], None)
    assert names(answer(fleet, "/api/v1/nodes?offset=99")) == []
    filtered = answer(fleet, "/api/v1/nodes?q=free&limit=2")
    assert (names(filtered), filtered["total"], filtered["next"]) == (["gpu1", "gpu2"], 3, 2)


def test_one_node_has_its_details():
    node = answer(small(), "/api/v1/nodes/gpu1")
    assert node["host"]["cpu_threads"] == 64
    assert [(one["pid"], one["user"], one["command"]) for one in node["processes"]] == [
        (11, "alice", "python train.py")
    ]
    assert node["processes"][0]["gpus"][0]["memory_bytes"] == 40 * GIB


def test_an_unknown_node_is_named_with_its_neighbours():
    error = refusal(small(), "/api/v1/nodes/gpu11", 404)
    assert error["code"] == "unknown_node"
    assert '"gpu11"' in error["message"]
    assert "did you mean gpu1" in error["detail"]
    assert refusal(small(), "/api/v1/nodes/GPU1", 404)["detail"].startswith("did you mean gpu1")
    assert refusal(small(), "/api/v1/nodes/gpu11/log", 404)["code"] == "unknown_node"


def test_a_nodes_log_has_the_newest_first():
    fleet = small()
    fleet.log("gpu3", "tried again")
    log = answer(fleet, "/api/v1/nodes/gpu3/log")
    assert [entry["message"] for entry in log["items"]] == ["tried again", "connection refused"]
    assert log["total"] == 2
    assert answer(fleet, "/api/v1/nodes/gpu3/log?limit=1")["next"] == 1


def test_gpus():
    fleet = small()
    page = answer(fleet, "/api/v1/gpus")
    assert [gpu["id"] for gpu in page["items"]] == [
        f"GPU-{node}-{index}" for node in ("gpu1", "gpu2", "gpu10") for index in (0, 1)
    ]
    assert page["items"][0]["people"] == [{"person": "alice", "memory_bytes": 40 * GIB, "processes": 1}]
    assert page["items"][0]["model"] == "H100 80G"
    assert answer(fleet, "/api/v1/gpus?q=free")["total"] == 3
    assert answer(fleet, "/api/v1/gpus?state=busy&group=shared")["items"][0]["id"] == "GPU-gpu10-0"
    assert answer(fleet, "/api/v1/gpus?q=temp>60+util>50+user:alice")["total"] == 3
    by_heat = answer(fleet, "/api/v1/gpus?sort=-temperature")["items"]
    assert [gpu["temperature_celsius"] for gpu in by_heat] == [70, 70, 70, 35, 35, 35]


def test_what_a_gpu_has_not_told_sorts_last():
    fleet = Fleet()
    fleet.place(Place(name="a"))
    fleet.line("a", snapshot("a", [card("x", 0, power_watts=None), card("y", 1), card("z", 2, power_watts=300.0)]))
    fleet.tick()
    assert [gpu["id"] for gpu in answer(fleet, "/api/v1/gpus?sort=power")["items"]] == ["y", "z", "x"]
    assert [gpu["id"] for gpu in answer(fleet, "/api/v1/gpus?sort=-power")["items"]] == ["z", "y", "x"]


def test_one_gpu_by_its_id_even_where_it_has_a_slash():
    fleet = small()
    assert answer(fleet, "/api/v1/gpus/GPU-gpu2-1")["node"] == "gpu2"
    assert refusal(fleet, "/api/v1/gpus/GPU-none", 404)["code"] == "unknown_gpu"
    fleet.line("gpu3", snapshot("gpu3", [card(None, 0)]))
    fleet.tick()
    assert answer(fleet, "/api/v1/gpus/gpu3/0")["node"] == "gpu3"
    assert answer(fleet, "/api/v1/gpus/gpu3%2F0")["id"] == "gpu3/0"


def test_people():
    page = answer(small(), "/api/v1/users")
    assert page == {
        "items": [
            {
                "person": "alice",
                "gpus": 3,
                "busy_gpus": 3,
                "memory_bytes": 120 * GIB,
                "processes": 3,
                "nodes": ["gpu1", "gpu2", "gpu10"],
            }
        ],
        "total": 1,
        "next": None,
    }
    assert answer(small(), "/api/v1/users?q=bob")["items"] == []


def test_the_summary_adds_up():
    summary = answer(small(), "/api/v1/summary")
    assert (summary["nodes"], summary["nodes_up"], summary["gpus"]) == (4, 3, 6)
    assert summary["states"]["free"] == 3
    assert sum(summary["states"].values()) == summary["gpus"]


def test_free_as_json():
    fleet = small()
    found = answer(fleet, "/api/v1/free?memory=40GB&model=H100")
    assert (found["found"], found["node"], found["export"]) == (True, "gpu1", "CUDA_VISIBLE_DEVICES=1")
    assert found["gpus"][0]["id"] == "GPU-gpu1-1"
    assert answer(fleet, "/api/v1/free?q=node:gpu10")["node"] == "gpu10"
    missing = answer(fleet, "/api/v1/free?n=2&same_node=true")
    assert (missing["found"], missing["gpus"]) == (False, [])
    assert missing["explanation"] == "no node has 2 free: gpu1 has 1, 3 are free on all nodes"


def test_free_as_text_for_curl():
    fleet = small()
    response = get(fleet, "/free?n=2", accept="*/*")
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert response.text == (
        "export CUDA_VISIBLE_DEVICES=1  # on gpu1: ssh gpu1\n"
        "export CUDA_VISIBLE_DEVICES=1  # on gpu2: ssh gpu2\n"
        "gpu1:1  H100 80G  80.0 GiB free\n"
        "gpu2:1  H100 80G  80.0 GiB free\n"
    )
    missing = get(fleet, "/free?n=9&memory=40GB")
    assert missing.status_code == 404
    assert missing.text == "3 of 9 free with 40 GB: gpu1:1, gpu2:1, gpu10:1\n"
    assert get(fleet, "/free?memory=lots").status_code == 400
    assert '"memory" cannot be "lots"' in get(fleet, "/free?memory=lots").text


def test_what_nodes_tell_does_not_drive_a_terminal():
    fleet = Fleet()
    fleet.place(Place(name="a"))
    fleet.line("a", snapshot("a", [card("x", 0, name=HOSTILE)]))
    fleet.tick()
    text = get(fleet, "/free").text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert text.count("\n") == 2


def test_hostile_words_travel_as_they_are():
    fleet = Fleet()
    fleet.place(Place(name="a", display_name=HOSTILE, group=HOSTILE))
    fleet.line("a", snapshot("a", [card("x", 0, name=HOSTILE)], [process(1, HOSTILE, "x", HOSTILE)]))
    fleet.tick()
    node = answer(fleet, "/api/v1/nodes/a")
    assert node["display_name"] == HOSTILE
    assert node["processes"][0]["command"] == HOSTILE
    assert answer(fleet, "/api/v1/users")["items"][0]["person"] == HOSTILE


def test_alive_and_ready():
    fleet = Fleet()
    assert answer(fleet, "/healthz") == {"status": "ok"}
    assert refusal(fleet, "/readyz", 503)["code"] == "not_ready"
    add(fleet, "gpu1")
    fleet.tick()
    assert answer(fleet, "/readyz") == {"status": "ok", "generation": 1}


def test_a_fleet_that_ticks_no_more_is_not_ready():
    from gpulse.api.hub import Hub

    now = [100.0]
    fleet = small()
    hub = Hub(fleet, "gpulse", list, open_access(), clock=lambda: now[0])
    now[0] += 4
    assert hub.stalled_seconds() == 4
    fleet.tick()
    assert hub.stalled_seconds() == 0
    now[0] += 6
    assert hub.stalled_seconds() == 6


def test_an_empty_fleet_has_empty_answers():
    fleet = Fleet()
    for path in ("nodes", "gpus", "users"):
        assert answer(fleet, f"/api/v1/{path}") == {"items": [], "total": 0, "next": None}
    assert answer(fleet, "/api/v1/summary")["gpus"] == 0
    assert answer(fleet, "/api/v1/free")["explanation"] == "the fleet has no GPU yet"


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 100])
def test_pages_of_gpus_add_up(limit):
    """Without a filter only the nodes of a page are looked at; the pages are the same all the same."""
    fleet = small()
    found, offset = [], 0
    while offset is not None:
        page = answer(fleet, f"/api/v1/gpus?limit={limit}&offset={offset}")
        assert page["total"] == len(fleet.gpus())
        assert len(page["items"]) <= limit
        found += [gpu["id"] for gpu in page["items"]]
        offset = page["next"]
    assert found == [gpu.id for gpu in fleet.gpus()]
    assert answer(fleet, "/api/v1/gpus?offset=900")["items"] == []


def test_the_longest_idle_first():
    now = [100.0]
    fleet = Fleet(clock=lambda: now[0])
    for name in ("gpu1", "gpu2", "gpu3"):
        fleet.place(Place(name=name))
        cards = [card(f"GPU-{name}", 0, memory_used_bytes=9 * GIB if name != "gpu1" else 0)]
        fleet.line(name, snapshot(name, cards))
        fleet.tick()
        now[0] += 1.5
    page = answer(fleet, "/api/v1/gpus?sort=-idle")
    assert [(gpu["node"], gpu.get("idle_seconds")) for gpu in page["items"]] == [
        ("gpu2", 3.0),
        ("gpu3", 1.5),
        ("gpu1", None),
    ]
    (one,) = answer(fleet, "/api/v1/gpus?q=idle&sort=idle&limit=1")["items"]
    assert one["node"] == "gpu3"


def test_a_filter_and_its_page_agree_with_the_whole():
    """Whatever is sorted and cut, the GPUs are those of the whole list that match."""
    fleet = small()
    for name in ("gpu20", "gpu21"):
        add(fleet, name, gpus=3, group="lab")
    fleet.tick()
    now = fleet.clock()
    fleet.clock = lambda: now
    whole = {gpu["id"]: gpu for gpu in answer(fleet, "/api/v1/gpus?limit=1000")["items"]}
    for sort in ("node", "-node", "utilization", "-temperature", "power", "-free_memory"):
        told, offset = [], 0
        while offset is not None:
            page = answer(fleet, f"/api/v1/gpus?q=user:alice&group=lab&state=busy&sort={sort}&limit=2&offset={offset}")
            told += page["items"]
            offset = page["next"]
        assert page["total"] == len(told) == 4
        assert all(whole[gpu["id"]] == gpu for gpu in told)
        assert {gpu["node"] for gpu in told} == {"gpu1", "gpu2", "gpu20", "gpu21"}
    assert names(answer(fleet, "/api/v1/nodes?q=free&sort=-free")) == ["gpu20", "gpu21", "gpu1", "gpu2", "gpu10"]


def test_a_node_that_goes_while_a_list_is_made_is_left_out(monkeypatch):
    fleet = small()

    async def give(_turn):
        fleet.remove("gpu2")
        if fleet.has("gpu10") and fleet.gpu_count("gpu10") == 2:
            fleet.line("gpu10", snapshot("gpu10", [card("GPU-new", 0)]))

    monkeypatch.setattr(Turn, "give", give)
    for path in ("gpus?q=train.py", "gpus?q=h100", "nodes?q=alice&detail=true", "users", "history?nodes=gpu[1-10]"):
        told = answer(fleet, f"/api/v1/{path}")
        assert "gpu2" not in str(told), path


@pytest.mark.parametrize("query", ["", "&q=alice", "&sort=-free", "&state=up"])
def test_nodes_in_full(query: str):
    fleet = small()
    now = fleet.clock()
    fleet.clock = lambda: now
    for node in answer(fleet, "/api/v1/nodes?detail=true" + query)["items"]:
        assert node == answer(fleet, f"/api/v1/nodes/{node['name']}")
    assert all("host" not in node for node in answer(fleet, "/api/v1/nodes?limit=9" + query)["items"])


def test_a_gpu_is_that_of_the_node_that_had_it_first():
    fleet = Fleet()
    for name in ("liar", "honest"):
        fleet.place(Place(name=name))
    fleet.line("honest", snapshot("honest", [card("GPU-1", 0, utilization_ratio=1.0)]))
    fleet.line("liar", snapshot("liar", [card("GPU-1", 0)], boot_id="another"))
    rightful = answer(fleet, "/api/v1/gpus/GPU-1")
    assert (rightful["node"], rightful["state"]) == ("honest", "busy")
    assert answer(fleet, "/api/v1/gpus/liar/0")["node"] == "liar"
    assert [gpu["id"] for gpu in answer(fleet, "/api/v1/gpus?q=free")["items"]] == ["liar/0"]
    log = answer(fleet, "/api/v1/nodes/honest/log")["items"]
    assert any("stays with honest" in entry["message"] for entry in log)
