"""The whole product: `gpulse up` with nodes behind real SSH servers, seen through its API and its commands."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from tests.fake_nvml import Process, h100_node
from tests.hub.running import GPULSE, RunningHub
from tests.patience import PATIENCE_SECONDS
from tests.system.booking import operator
from tests.system.stalls import Stalls


def start(client, *servers, options=()):
    """The hub as the person `client`; node names are those of ssh_config."""
    for number, server in enumerate(servers, 1):
        with client.config.open("a") as file:
            file.write(f"Host gpu{number}\n  HostName 127.0.0.1\n  Port {server.port}\n")
    environment = {**os.environ, "HOME": str(client.home)}
    hosts = f"gpu[1-{len(servers)}]" if len(servers) > 1 else "gpu1"
    return RunningHub("up", hosts, "--no-local", *options, environment=environment, directory=client.home)


def states(hub):
    return {node["name"]: node["state"] for node in hub.get("api/v1/nodes")["items"]}


def until_all_up(hub, seconds=PATIENCE_SECONDS):
    """How long it took."""
    began = time.monotonic()
    hub.until(lambda: set(states(hub).values()) == {"up"}, seconds)
    return time.monotonic() - began


def ask(hub, *arguments):
    command = [GPULSE, *arguments, "--hub", hub.url]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)


def test_one_live_truth_over_ssh(serve, client, pids):
    servers = [serve(gpus=2) for _ in range(3)]
    servers[1].describe(h100_node(2, [Process(pids[0], gpu=0, memory="9GiB", sm=55)]))
    data = client.home / "data"
    with start(client, *servers, options=["--data", str(data)]) as hub:
        hub.until(lambda: set(states(hub).values()) == {"up"})
        hub.until(lambda: hub.get("api/v1/summary")["gpus"] == 6)
        (gpu,) = [one for one in hub.get("api/v1/gpus", q="node:gpu2")["items"] if one.get("people")]
        assert (gpu["node"], gpu["index"], gpu["people"][0]["memory_bytes"]) == ("gpu2", 0, 9 << 30)
        assert gpu["state"] == "busy"
        node = hub.node("gpu2")
        assert node["processes"][0]["command"] == "sleep", "to who has not signed in"
        with operator(hub.url, data) as own:
            whole = own.get("api/v1/nodes/gpu2").json()
        assert whole["processes"][0]["command"] == "sleep 300", "to who runs the hub"
        assert hub.until(lambda: hub.node("gpu2").get("rates"))["cpu_ratio"] is not None
        assert abs(node["clock_difference_seconds"]) < 5
        listed = json.loads(ask(hub, "nodes", "--json").stdout)
        assert [one["name"] for one in listed["items"]] == ["gpu1", "gpu2", "gpu3"]
        assert "logged in" in ask(hub, "logs", "gpu1").stdout
        assert hub.end() == 0
        end = time.monotonic() + PATIENCE_SECONDS
        while any(server.login_processes() for server in servers):
            assert time.monotonic() < end, "a probe outlives the hub"
            time.sleep(0.1)


def test_find_free_gpus(serve, client, pids):
    servers = [serve(gpus=2) for _ in range(2)]
    idle = "\n".join(line for line in h100_node(2).splitlines() if not line.strip().startswith("utilisation"))
    idle = idle.replace("memory_used 30000MiB", "memory_used 0").replace("memory_used 31000MiB", "memory_used 0")
    servers[1].describe(idle + "\n")
    del pids
    with start(client, *servers) as hub:
        hub.until(lambda: hub.get("api/v1/summary")["states"]["free"] == 2)
        text = httpx.get(hub.url + "free", params={"n": 2, "memory": "40GB"}, timeout=PATIENCE_SECONDS).text
        assert "gpu2:0" in text
        assert "gpu2:1" in text
        found = ask(hub, "free", "-n", "2", "--memory", "40GB", "--model", "H100", "--same-node")
        assert found.returncode == 0
        assert "gpu2" in found.stdout
        assert ask(hub, "free", "-n", "3").returncode == 1
        exported = ask(hub, "free", "-n", "2", "--export")
        assert exported.stdout.strip() == "export CUDA_VISIBLE_DEVICES=0,1"


@pytest.mark.parametrize("how", ["frozen", "killed"])
def test_one_bad_node_never_delays_another(serve, client, how):
    servers = [serve(gpus=1) for _ in range(3)]
    with start(client, *servers) as hub, Stalls() as stalls:
        until_all_up(hub)
        servers[1].signal(signal.SIGSTOP if how == "frozen" else signal.SIGKILL)
        began = time.monotonic()
        oldest = 0.0
        seen = set()
        while time.monotonic() - began < 8:
            asked = time.monotonic()
            nodes = {node["name"]: node for node in hub.get("api/v1/nodes")["items"]}
            seen.add(nodes["gpu2"]["state"])
            for name in ("gpu1", "gpu3"):
                age = stalls.age(nodes[name], asked)
                # Who is stale as all of the machine stood still waited for no other node.
                assert nodes[name]["state"] == "up" or age < nodes[name]["age_seconds"]
                oldest = max(oldest, age)
            time.sleep(0.2)
        # On a busy machine a line may be late; three seconds would be stale.
        assert oldest < 2.9
        assert "stale" in seen if how == "frozen" else "down" in seen
        if how == "frozen":
            servers[1].signal(signal.SIGCONT)
        else:
            servers[1].start()
        hub.until(lambda: states(hub)["gpu2"] == "up", 60)


def test_killed_hub_leaves_no_probe_and_comes_back_in_ten_seconds(serve, client):
    servers = [serve(gpus=1) for _ in range(4)]
    with start(client, *servers) as hub:
        first = until_all_up(hub)
        hub.process.kill()
        hub.process.wait()
    killed = time.monotonic()
    with Stalls() as stalls:
        while any(server.login_processes() for server in servers):
            assert time.monotonic() - killed - stalls.since(killed) < 10, "a probe outlives its hub by 10 s"
            time.sleep(0.1)
    client.config.write_text("")
    with start(client, *servers) as hub:
        # On a busy machine four logins take longer, also when no hub was killed before.
        assert until_all_up(hub) < max(10, 2 * first)


def test_host_files_are_followed(serve, client):
    first, second = serve(gpus=1), serve(gpus=1)
    hosts = Path(client.home) / "node-list.txt"
    hosts.write_text(f"# our nodes\n127.0.0.1:{first.port}\n")
    (Path(client.home) / "gpulse.toml").write_text(
        f'[hub]\nlocal = false\n[[host_files]]\npath = "{hosts}"\ngroup = "lab"\n'
    )
    environment = {**os.environ, "HOME": str(client.home)}
    with RunningHub("up", environment=environment, directory=client.home) as hub:
        hub.until(lambda: list(states(hub).values()) == ["up"])
        hosts.write_text(f"127.0.0.1:{first.port}\n127.0.0.1:{second.port}\n")
        hub.until(lambda: list(states(hub).values()) == ["up", "up"])
        assert {node["group"] for node in hub.get("api/v1/nodes")["items"]} == {"lab"}
        hosts.write_text(f"127.0.0.1:{second.port}\n")
        hub.until(lambda: len(states(hub)) == 1)
