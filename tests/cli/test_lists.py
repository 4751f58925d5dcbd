"""gpulse nodes, gpus and who, as people run them."""

import json
import os
import pty
import signal
import subprocess
import time

import pytest

from tests.cli.hub import GIB, GPULSE, env, gpu, gpulse, listing, node
from tests.patience import PATIENCE_SECONDS

BUSY = {
    "utilization_ratio": 0.97,
    "memory_used_bytes": 60 * GIB,
    "power_watts": 612.0,
    "power_limit_watts": 700.0,
    "temperature_celsius": 64,
    "people": [{"person": "ann", "memory_bytes": 60 * GIB, "processes": 1}],
}


@pytest.fixture
def cluster(hub):
    gpus = [gpu("gpu1", 0, "busy", **BUSY), gpu("gpu1", 1, utilization_ratio=0.0, power_watts=70.0)]
    hub.answers["/nodes"] = listing(
        node("gpu1", gpus=gpus, rates={"cpu_ratio": 0.11}),
        node("gpu2", "down", reason="the port does not answer; is the node on?", age_seconds=None),
    )
    hub.answers["/gpus"] = listing(*gpus)
    people = {"gpus": 2, "busy_gpus": 1, "memory_bytes": 60 * GIB, "processes": 3, "nodes": ["gpu1", "gpu3"]}
    hub.answers["/users"] = listing({"person": "ann", **people})
    return hub


def test_nodes(cluster):
    done = gpulse("nodes", hub=cluster.url)
    assert done.stdout.splitlines() == [
        "NODE  STATE   GPUS  FREE  MODEL        UTIL    MEMORY GiB  POWER W   CPU  AGE  PEOPLE",
        "gpu1  ✓ up    ■●     1/2  2× H100 80G  48 %  60.0 / 160.0      682  11 %  0 s  ann",
        "gpu2  ✕ down  –        –  –               –             –        –     –    –"
        "  the port does not answer; is the node on?",
        "",
        "2 nodes: 1 up, 1 down · 2 GPUs: 1 free, 1 busy · memory 60.0 GiB of 160.0 GiB · 682 W",
    ]
    assert (done.returncode, done.stderr) == (0, "")


def test_gpus(cluster):
    assert gpulse("gpus", hub=cluster.url).stdout.splitlines() == [
        "NODE  GPU  MODEL     STATE   UTIL   MEMORY GiB  °C    POWER W  PEOPLE",
        "gpu1    0  H100 80G  ■ busy  97 %  60.0 / 80.0  64  612 / 700  ann",
        "gpu1    1  H100 80G  ● free   0 %   0.0 / 80.0   –         70",
        "",
        "2 GPUs: 1 free, 1 busy · memory 60.0 GiB of 160.0 GiB · 682 W",
    ]


def test_flags_and_faults_are_shown(hub):
    hub.answers["/gpus"] = listing(gpu("gpu1", 0, "unhealthy", flags=["hot"], fault="GPU is lost"))
    told = gpulse("gpus", hub=hub.url).stdout
    assert "FLAGS" in told
    assert "▲ unhealthy" in told
    assert told.splitlines()[1].endswith("hot    GPU is lost")


def test_what_is_unknown_is_said_and_old_values_have_an_age(hub):
    why = "Unknown Error from nvmlDeviceGetUtilizationRates"
    unread = gpu("gpu1", 0, "unknown", people=None, failed_reason=why, age_seconds=5.2, memory_used_bytes=None)
    hub.answers["/gpus"] = listing(unread, gpu("gpu1", 1, None, counted=False, age_seconds=0.3))
    told = gpulse("gpus", hub=hub.url).stdout.splitlines()
    assert told[0].split()[-2:] == ["AGE", "PEOPLE"]
    assert "□ unknown" in told[1]
    assert told[1].endswith(f"5 s  {why}")
    assert "= double" in told[2]
    assert told[-1] == "1 GPU: 1 unknown · memory – of 80.0 GiB · power –"
    twice = {"devices_age_seconds": 5.2, "same_machine_as": "gpu2"}
    hub.answers["/nodes"] = listing(node("gpu1", gpus=[unread], **twice))
    told = gpulse("nodes", hub=hub.url).stdout.splitlines()
    assert told[1].endswith("5 s  same machine as gpu2, not counted")


def test_who_says_of_how_many_gpus_nobody_knows(hub):
    hub.answers["/users"] = listing() | {"unknown_gpus": 3}
    assert gpulse("who", hub=hub.url).stdout == "unknown who is on 3 more GPUs\n"


def test_who(cluster):
    assert gpulse("who", hub=cluster.url).stdout.splitlines() == [
        "PERSON  GPUS  BUSY  MEMORY GiB  PROCESSES  NODES",
        "ann        2     1        60.0          3  gpu1, gpu3",
        "",
        "1 person · 60.0 GiB · 3 processes",
    ]


def test_who_tells_how_many_have_no_name(hub):
    words = "on GPUs, whose names you do not see"
    hub.answers["/users"] = listing() | {"others": 3}
    assert gpulse("who", hub=hub.url).stdout == f"3 other people {words}\n"
    ann = {"person": "ann", "gpus": 1, "busy_gpus": 1, "memory_bytes": 0, "processes": 1, "nodes": ["gpu1"]}

    def page(query):
        return {"items": [ann], "total": 2, "next": None if "offset" in query else 1, "others": 1}

    hub.answers["/users"] = page
    assert gpulse("who", hub=hub.url).stdout.splitlines()[-2:] == [
        "2 people · 0.0 GiB · 2 processes",
        f"1 other person {words}",
    ]
    assert json.loads(gpulse("who", "--json", hub=hub.url).stdout)["others"] == 1


@pytest.mark.parametrize("command", ["nodes", "gpus"])
def test_json_is_the_apis_own(cluster, command):
    body = b'{"items": [],\n "total":0,"next":null, "more":[1.50]}'
    cluster.answers[f"/{command}"] = body
    assert gpulse(command, "--json", hub=cluster.url).stdout.encode() == body + b"\n"


def test_all_pages_are_read(hub):
    rows = [gpu("gpu1", index) for index in range(5)]

    def page(query):
        start = int(query.get("offset", 0))
        return {"items": rows[start : start + 2], "total": 5, "next": start + 2 if start + 2 < 5 else None}

    hub.answers["/gpus"] = page
    assert "5 GPUs: 5 free" in gpulse("gpus", hub=hub.url).stdout
    assert json.loads(gpulse("gpus", "--json", hub=hub.url).stdout) == {"items": rows, "total": 5, "next": None}


def test_the_filter_is_passed_on(cluster):
    gpulse("gpus", "-q", "-down", "free", "model:H100", "--hub", cluster.url)
    gpulse("gpus", "--", "-user:ann", "mem>4G", hub=cluster.url)
    gpulse("who", "ann", hub=cluster.url)
    gpulse("nodes", hub=cluster.url)
    assert [(path, query.get("q")) for path, query in cluster.asked] == [
        ("/gpus", "-down free model:H100"),
        ("/gpus", "-user:ann mem>4G"),
        ("/users", "ann"),
        ("/nodes", None),
    ]


def test_mine_says_whose(cluster):
    gpulse("gpus", "mine", hub=cluster.url, LOGNAME="ann")
    gpulse("gpus", "busy", hub=cluster.url, LOGNAME="ann")
    assert [query.get("me") for _, query in cluster.asked] == ["ann", None]


def test_nothing_found_is_said(hub):
    for path in ("/nodes", "/gpus", "/users"):
        hub.answers[path] = listing()
    assert gpulse("gpus", "free", hub=hub.url).stdout == "no GPU matches the filter\n"
    assert gpulse("nodes", hub=hub.url).stdout == "the hub has no nodes yet; add some with `gpulse up HOSTS`\n"
    assert gpulse("who", hub=hub.url).stdout == "nobody is on any GPU\n"


def test_width_cuts(cluster):
    lines = gpulse("nodes", "--width", "50", hub=cluster.url).stdout.splitlines()
    assert lines[0].split() == ["NODE", "STATE", "GPUS", "FREE", "PEOPLE"]
    assert max(map(len, lines)) == 50
    assert lines[2].endswith("…")


def test_a_node_cannot_command_the_terminal(hub):
    hub.answers["/nodes"] = listing(node("gpu1", "down", reason="\x1b]0;owned\x07\nx"))
    assert r"\x1b]0;owned\x07 x" in gpulse("nodes", hub=hub.url).stdout


def test_an_old_encoding_does_not_stop_it(cluster):
    done = gpulse("nodes", hub=cluster.url, encoding="latin-1")
    assert done.returncode == 0
    assert "? up" in done.stdout


def on_terminal(*arguments: str, hub: str, until: str, **environment: str) -> str:
    """What gpulse writes to a terminal of 24 lines until `until` appears; then Ctrl-C ends one that watches."""
    ours, its = pty.openpty()
    size = {"COLUMNS": "100", "LINES": "24", "TERM": "xterm"}
    process = subprocess.Popen(
        [*GPULSE, *arguments], stdout=its, stderr=its, env=env(hub, **size, **environment), start_new_session=True
    )
    os.close(its)
    told, deadline = b"", time.monotonic() + PATIENCE_SECONDS
    try:
        while until.encode() not in told and time.monotonic() < deadline:
            told += os.read(ours, 65536)
        if "--watch" in arguments:
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_SECONDS) == 130
        else:
            # It ends by itself; a signal on its way out would end the interpreter instead.
            assert process.wait(PATIENCE_SECONDS) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    return told.decode()


def test_colours_are_for_terminals(cluster):
    assert "\x1b[32m● free\x1b[0m" in on_terminal("gpus", hub=cluster.url, until="682 W")
    assert "\x1b" not in on_terminal("gpus", hub=cluster.url, until="682 W", NO_COLOR="1")
    assert "\x1b" not in gpulse("gpus", hub=cluster.url).stdout


def test_watch_draws_over_and_survives_the_hub(cluster):
    asked = 0

    def answer(_query):
        nonlocal asked
        asked += 1
        # A proxy in front of a hub that is starting again.
        return (502, b"bad gateway") if asked == 3 else listing(gpu(f"gpu{asked}", 0))

    cluster.answers["/gpus"] = answer
    told = on_terminal("gpus", "--watch", "0.1", hub=cluster.url, until="gpu4")
    screens = told.split("\x1b[H")[1:]
    assert "gpu1" in screens[0]
    assert "gpu2" in screens[2]
    assert "HTTP 502" in screens[2]
    assert "HTTP 502" not in screens[3]


def test_watch_without_seconds_keeps_the_word_after_it(cluster):
    told = on_terminal("gpus", "--watch", "free", hub=cluster.url, until="682 W")
    assert "H100" in told
    assert cluster.asked[0][1]["q"] == "free"


def test_watched_json_is_a_document_a_time(cluster):
    with subprocess.Popen(
        [*GPULSE, "who", "--json", "--watch", "0.1"], stdout=subprocess.PIPE, env=env(cluster.url)
    ) as process:
        lines = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_SECONDS) == 130
    assert [line["total"] for line in lines] == [1, 1]


def test_a_reader_that_leaves_is_no_error(hub):
    hub.answers["/gpus"] = listing(*(gpu(f"gpu{number}", 0) for number in range(3000)))
    with subprocess.Popen(
        [*GPULSE, "gpus"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env(hub.url)
    ) as process:
        process.stdout.readline()
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()
