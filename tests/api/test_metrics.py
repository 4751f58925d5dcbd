"""The fleet as metrics: read by Prometheus' own tools, true of the fleet, and made in turns."""

import asyncio
import gc
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from gpulse.api import metric_families as families
from gpulse.api.application import create_app
from gpulse.api.exposition import OPENMETRICS, TEXT, Sheet, labels
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.places import Place
from gpulse.simulate.transport import scene
from tests.api.asking import ask, get
from tests.api.fleets import GIB, HOSTILE, add, card, process, small, snapshot
from tests.api.people import open_access
from tests.patience import PATIENCE_SECONDS

DOCS = Path(__file__).parents[2] / "docs" / "metrics.md"
Told = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(text: str, read: Any = read_text) -> Told:
    found: Told = {}
    for family in read(text):
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found, f"told twice: {key}"
            found[key] = sample.value
    return found


def told(fleet: Fleet, query: str = "") -> Told:
    response = get(fleet, "/metrics" + query)
    assert response.status_code == 200, response.text
    return samples(response.text)


def one(found: Told, metric: str, /, **own: str) -> float | None:
    return found.get((metric, frozenset(own.items())))


def lived() -> Fleet:
    """Simulated nodes that have told some lines: everything that real ones tell."""
    fleet = Fleet()
    nodes = scene(12, start=time.time() - 4)
    for place in nodes.places():
        fleet.place(place)
    for second in range(4):
        nodes.advance(time.time() - 3 + second)
        for place in nodes.places():
            state, reason = nodes.condition(place.name)
            if state == "up":
                if second == 0:
                    nodes.new_stream(place.name)
                fleet.line(place.name, nodes.line(place.name))
            else:
                fleet.down(place.name, reason)
        fleet.tick()
    return fleet


def hostile() -> Fleet:
    """A node that says whatever breaks readers."""
    fleet = small()
    fleet.place(Place(name='odd"\\', group=HOSTILE, rack="r\\n"))
    cards = [
        card("GPU-a", 0, name=HOSTILE, temperature_celsius=10**400, power_watts=-1e308),
        card("GPU-b", 0, name="x" * 100_000, driver_version="\u2028\x00"),
        card(None, 0),
        card("MIG-a", 0, parent_uuid="GPU-a", mig_index=1),
        card("MIG-b", 0, parent_uuid="GPU-a", mig_index=1),
        {},
    ]
    host = {
        "os": HOSTILE,
        "disks": [{"mount": "/a\nb", "total_bytes": 1}] * 2 + [{"total_bytes": 10**500}],
        "networks": [{"interface": 'e"0', "received_bytes_total": 5}] * 2,
        "infiniband": [{"device": "mlx5_0", "port": 1, "errors_total": 2}],
    }
    processes = [process(4242, "mallory", "GPU-a", "steal --everything")]
    fleet.line('odd"\\', snapshot('odd"\\', cards, processes, host=host))
    fleet.tick()
    return fleet


@pytest.mark.parametrize("make", [Fleet, small, lived, hostile])
def test_promtool_has_nothing_to_say(make):
    if shutil.which("promtool") is None:
        pytest.skip("promtool is missing")
    text = get(make(), "/metrics").content
    ran = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


@pytest.mark.parametrize("make", [Fleet, small, lived, hostile])
def test_both_formats_tell_the_same(make):
    fleet = make()
    text = get(fleet, "/metrics", accept="text/plain")
    assert text.headers["content-type"] == TEXT
    other = get(fleet, "/metrics", accept="application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1")
    assert other.headers["content-type"] == OPENMETRICS
    assert other.text.endswith("\n# EOF\n")
    assert "# EOF" not in text.text
    moving = re.compile("process_|gpulse_node_last_line_age|gpulse_node_devices_age|gpulse_gpu_age")
    first, second = samples(text.text), samples(other.text, read_openmetrics)
    assert first.keys() == second.keys()
    for key, value in first.items():
        assert second[key] == value or moving.match(key[0]), key


def test_a_browser_and_curl_get_text():
    for accept in ("text/html,application/xhtml+xml,*/*;q=0.8", "*/*", ""):
        assert get(small(), "/metrics", accept=accept).headers["content-type"] == TEXT
    response = get(small(), "/metrics", accept="image/png")
    assert response.status_code == 406
    assert response.headers["content-type"] == "text/plain; charset=utf-8"


def test_nodes_are_told_as_they_are():
    found = told(small())
    assert one(found, "gpulse_node_up", node="gpu1") == 1
    assert one(found, "gpulse_node_up", node="gpu3") == 0
    assert one(found, "gpulse_node_memory_total_bytes", node="gpu1") == 512 * GIB
    assert one(found, "gpulse_node_memory_used_bytes", node="gpu1") == 9 * GIB
    assert one(found, "gpulse_node_load1", node="gpu1") is None, "unknown is absent"
    assert one(found, "gpulse_node_info", node="gpu1", group="lab", rack="r1", probe_version="0.1.0") == 1
    assert one(found, "gpulse_hub_nodes", state="up") == 3
    assert one(found, "gpulse_hub_nodes", state="down") == 1
    assert one(found, "gpulse_hub_ticks_total") == 1


def test_gpus_are_told_as_they_are():
    found = told(small())
    own = {"node": "gpu1", "gpu": "0"}
    assert one(found, "gpulse_gpu_utilization_ratio", **own) == 0.9
    assert one(found, "gpulse_gpu_memory_used_bytes", **own) == 40 * GIB
    assert one(found, "gpulse_gpu_memory_total_bytes", **own) == 80 * GIB
    assert one(found, "gpulse_gpu_temperature_celsius", **own) == 70
    assert one(found, "gpulse_gpu_power_watts", **own) == 70.5
    assert one(found, "gpulse_gpu_energy_joules_total", **own) is None
    assert one(found, "gpulse_gpu_state", **own, state="busy") == 1
    assert one(found, "gpulse_gpu_state", **own, state="free") is None
    assert one(found, "gpulse_gpus", model="H100 80G", state="free") == 3
    assert one(found, "gpulse_gpus", model="H100 80G", state="reserved") == 0
    info = {"uuid": "GPU-gpu1-0", "model": "H100 80G", "name": "NVIDIA H100 80GB HBM3", "vendor": "nvidia"}
    assert one(found, "gpulse_gpu_info", **own, **info) == 1


def test_what_an_update_says_counts():
    fleet = small()
    fleet.line(
        "gpu1", b'{"update":1,"seq":2,"time":1001.0,"gpus":{"power_watts":[300.25,null]},"host":{"load_1m":2.5}}'
    )
    found = told(fleet)
    assert one(found, "gpulse_gpu_power_watts", node="gpu1", gpu="0") == 300.25
    assert one(found, "gpulse_gpu_power_watts", node="gpu1", gpu="1") is None
    assert one(found, "gpulse_node_load1", node="gpu1") == 2.5


def test_an_instance_is_told_beside_its_card():
    fleet = Fleet()
    fleet.place(Place(name="n"))
    cards = [
        card("GPU-a", 3, mig_enabled=True),
        card("MIG-1", 3, parent_uuid="GPU-a", mig_index=1, mig_profile="1g.10gb"),
    ]
    fleet.line("n", snapshot("n", cards))
    fleet.tick()
    found = told(fleet)
    assert one(found, "gpulse_gpu_power_watts", node="n", gpu="3") == 70.5
    assert one(found, "gpulse_gpu_memory_total_bytes", node="n", gpu="3.1") == 80 * GIB
    states = [key for key in found if key[0] == "gpulse_gpu_state"]
    assert len(states) == 1, "only what is counted has a state"
    assert ("gpu", "3.1") in states[0][1]


@pytest.mark.parametrize("state", ["stale", "down"])
def test_figures_of_a_node_that_is_gone_are_not_frozen(state: str):
    now = 1000.0
    fleet = Fleet(clock=lambda: now)
    add(fleet, "gpu1", 2)
    fleet.tick()
    assert one(told(fleet), "gpulse_gpu_power_watts", node="gpu1", gpu="1") == 70.5
    now += 60
    if state == "down":
        fleet.down("gpu1", "no route to host")
    fleet.tick()
    found = told(fleet)
    assert one(found, "gpulse_node_up", node="gpu1") == 0
    assert one(found, "gpulse_node_last_line_age_seconds", node="gpu1") == 60
    assert one(found, "gpulse_gpu_state", node="gpu1", gpu="1", state=state) == 1
    assert one(found, "gpulse_gpus", model="H100 80G", state=state) == 2
    left = {name for name, own in found if ("node", "gpu1") in own}
    assert left == {
        "gpulse_node_up",
        "gpulse_node_info",
        "gpulse_node_last_line_age_seconds",
        "gpulse_node_devices_age_seconds",
        "gpulse_gpu_info",
        "gpulse_gpu_state",
    }


def test_no_label_tells_of_people_or_their_work():
    names = {label for family in families.ALL for label in family.labels}
    assert not names & {"user", "person", "username", "uid", "job", "pid", "process", "command", "container"}
    text = get(hostile(), "/metrics").text + get(small(), "/metrics").text
    # Without the figures themselves: the hub's own memory may have these digits in it.
    labels = "\n".join(line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#"))
    assert 'node="gpu1"' in labels
    for word in ("mallory", "alice", "steal", "train.py", "4242"):
        assert word not in labels


def test_labels_are_as_declared():
    declared = {family.name: set(family.labels) for family in families.ALL}
    for fleet in (lived(), hostile()):
        for name, own in told(fleet):
            assert {label for label, _ in own} <= declared[name], name


def test_hostile_words_stay_within_their_label():
    found = told(hostile())
    (info,) = [dict(own) for name, own in found if name == "gpulse_node_info" and ("node", 'odd"\\') in own]
    assert info["os"] == info["group"] == HOSTILE
    assert info["rack"] == "r\\n"
    gpus = [dict(own)["gpu"] for name, own in found if name == "gpulse_gpu_info" and ("node", 'odd"\\') in own]
    # A number that is taken is nobody else's: the GPU is known by its place in the list.
    assert gpus == ["0", "unknown", "unknown#2", "0.1", "unknown.1", "unknown#5"]
    assert len(set(gpus)) == len(gpus)
    assert max(len(value) for _, own in found for _, value in own) <= 200
    assert labels(a='x"\\\n', b=None, c="") == '{a="x\\"\\\\\\n"}'


def test_numbers_no_reader_can_hold_are_left_out():
    sheet = Sheet()
    for value in (None, 10**400, -(10**400)):
        sheet.add(families.TICKS, "", value)
    assert asyncio.run(sheet.packed(TEXT))
    assert sheet.samples(families.TICKS).values.tolist() == []


def test_only_some_parts():
    fleet = small()
    names = {part: {name for name, _ in told(fleet, f"?only={part}")} for part in ("hub", "summary", "nodes", "gpus")}
    assert "process_open_fds" in names["hub"]
    assert names["summary"] == {"gpulse_gpus", *(family.name for family, _ in families.SUMMARY)}
    assert all(name.startswith("gpulse_node_") for name in names["nodes"])
    assert all(name.startswith("gpulse_gpu_") for name in names["gpus"])
    assert {name for name, _ in told(fleet)} == set().union(*names.values())
    assert {name for name, _ in told(fleet, "?only=summary,hub")} == names["summary"] | names["hub"]
    for wrong in ("people", "", "hub,", "hub,people"):
        assert get(fleet, f"/metrics?only={wrong}").status_code == 400


def test_the_hub_tells_of_itself():
    fleet = small()
    fleet.counters.refuse("name_taken")
    found = told(fleet)
    assert one(found, "gpulse_hub_lines_total") == 3
    assert one(found, "gpulse_hub_line_bytes_total") > 1000
    assert one(found, "gpulse_hub_refused_total", code="name_taken") == 1
    assert one(found, "gpulse_hub_live_listeners") == 0
    assert 0 < one(found, "process_open_fds") < one(found, "process_max_fds")
    assert one(found, "process_resident_memory_bytes") > 10_000_000
    assert time.time() - 86400 < one(found, "process_start_time_seconds") < time.time()


def test_packed_or_not_it_is_the_same():
    fleet = lived()
    app = create_app(fleet, access=open_access())
    plain = ask(app, "/metrics?only=gpus", headers={"Accept-Encoding": "identity"})
    packed = ask(app, "/metrics?only=gpus", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert plain.content == packed.content
    assert len(plain.content) > 3 * int(packed.headers["content-length"])
    head = ask(app, "/metrics?only=gpus", "HEAD", headers={"Accept-Encoding": "gzip"})
    assert (head.content, head.headers["content-length"]) == (b"", packed.headers["content-length"])
    again = ask(app, "/metrics?only=gpus", headers={"If-None-Match": packed.headers["etag"]})
    assert again.status_code == 304


def test_made_once_for_all_who_ask_at_once():
    made = []

    class Counting(Fleet):
        def names(self):
            made.append(1)
            return super().names()

    fleet = Counting()
    for number in range(100):
        add(fleet, f"gpu{number}", 8)
    fleet.tick()
    app = create_app(fleet, access=open_access())

    async def all_at_once() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://hub") as client:
            return await asyncio.gather(*[client.get("/metrics?only=gpus") for _ in range(5)])

    answers = asyncio.run(all_at_once())
    assert len({answer.content for answer in answers}) == 1
    assert len(made) == 1


def test_the_loop_is_not_kept():
    fleet = Fleet()
    for number in range(600):
        add(fleet, f"gpu{number}", 8)
    fleet.tick()
    fleet.names()
    app = create_app(fleet, access=open_access())
    longest = 0.0

    async def watched() -> None:
        async def watch() -> None:
            nonlocal longest
            while True:
                # CPU time: others on this machine do not count.
                began = time.process_time()
                await asyncio.sleep(0)
                longest = max(longest, time.process_time() - began)

        watching = asyncio.create_task(watch())
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://hub") as client:
            assert (await client.get("/metrics", headers={"Accept-Encoding": "gzip"})).status_code == 200
        watching.cancel()

    # What other tests left in memory is not looked through meanwhile.
    gc.collect()
    gc.freeze()
    try:
        began = time.process_time()
        asyncio.run(watched())
        whole = time.process_time() - began
    finally:
        gc.unfreeze()
    assert longest < whole / 3
    assert longest < 0.05


def test_the_documentation_has_every_metric_and_no_other():
    rows = [line for line in DOCS.read_text().splitlines() if re.match(r"\| `(gpulse|process)_[a-z0-9_]+` \|", line)]
    expected = []
    for family in families.ALL:
        own = ", ".join(f"`{label}`" for label in family.labels)
        expected.append(f"| `{family.name}` | {family.kind} | {own + ' ' if own else ''}| {family.help} |")
    assert rows == expected


def test_every_metric_has_a_conventional_name():
    for family in families.ALL:
        assert re.fullmatch(r"(gpulse|process)(_[a-z0-9]+)+", family.name)
        assert family.name.endswith("_total") == (family.kind == "counter")
        assert family.name.endswith("_info") == (family.kind == "info")
        assert family.help.endswith(".")
    assert len({family.name for family in families.ALL}) == len(families.ALL)
