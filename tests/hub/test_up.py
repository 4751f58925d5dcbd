"""gpulse up and gpulse demo, started as people start them."""

import getpass
import os
import select
import signal
import socket
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from tests.fake_nvml import Process, h100_node
from tests.fleet.lines import gpu, snapshot
from tests.hub.page_client import PageClient
from tests.hub.running import GPULSE, RunningHub
from tests.patience import PATIENCE_SECONDS
from tests.system.stalls import Stalls

HERE = socket.gethostname()


def refused(*arguments, directory=None):
    ran = subprocess.run(
        [GPULSE, *arguments], capture_output=True, text=True, timeout=PATIENCE_SECONDS, cwd=directory, check=False
    )
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert ran.stderr.startswith("gpulse: ")
    return ran.stderr.removeprefix("gpulse: ").strip()


def gone(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_this_machine_is_shown(fake, pids, tmp_path):
    fake.describe(h100_node(2, [Process(pids[0], gpu=1, memory="5GiB", sm=40)]))
    with RunningHub("up", environment=fake.environment(), directory=tmp_path) as hub:
        node = hub.until(lambda: (one := hub.node(HERE))["state"] == "up" and one)
        assert [gpu["model"] for gpu in node["gpus"]] == ["H100 80G"] * 2
        assert node["gpus"][1]["people"][0]["memory_bytes"] == 5 << 30
        assert node["address"] == "this machine"
        hub.until(lambda: hub.get("api/v1/summary")["states"]["busy"] == 1)
        assert hub.get("api/v1/summary")["gpus"] == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ends_cleanly_and_takes_its_probe_with_it(fake, tmp_path, number):
    fake.describe(h100_node(1))
    with RunningHub("up", environment=fake.environment(), directory=tmp_path) as hub:
        hub.until(lambda: hub.node(HERE)["state"] == "up")
        pid = hub.process.pid
        probes = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]
        assert probes
        assert hub.end(number) == 0
        assert hub.said() == ""
        end = time.monotonic() + PATIENCE_SECONDS
        while not all(map(gone, probes)):
            assert time.monotonic() < end, "the probe outlives the hub"
            time.sleep(0.05)


def test_no_gpu_and_no_nodes_is_told(tmp_path):
    environment = {**os.environ, "LD_LIBRARY_PATH": "", "PATH": "/usr/bin:/bin"}
    with RunningHub("up", environment=environment, directory=tmp_path) as hub:
        hub.until(lambda: "There is no GPU on this machine" in hub.said())
        assert "gpulse demo" in hub.said()
        assert "gpulse up 'gpu[01-16]'" in hub.said()
        assert "There is no GPU on this machine" in str(hub.get("api/v1/hub"))
        assert (hub.node(HERE)["state"], hub.node(HERE)["gpus"]) == ("up", [])


def test_host_that_does_not_resolve_is_one_sentence(tmp_path):
    with RunningHub("up", "nowhere.invalid", "--no-local", directory=tmp_path) as hub:
        hub.until(lambda: "node nowhere.invalid is down: " in hub.said())
        (line,) = hub.said().splitlines()
        assert "does not resolve" in line
        assert hub.node("nowhere.invalid")["state"] == "down"


def test_busy_port(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        message = refused("up", "--port", str(port), directory=tmp_path)
    assert message == f"port {port} on 127.0.0.1 is in use, perhaps by another gpulse; --port 0 takes any free one"


def test_address_that_is_not_ours(tmp_path):
    assert "does not resolve" in refused("up", "--host", "nowhere.invalid", directory=tmp_path)
    message = refused("up", "--host", "192.0.2.254", "--port", "0", directory=tmp_path)
    assert message.startswith("cannot listen on 192.0.2.254 port 0: ")


def link_of(hub: RunningHub) -> str:
    """The second line: what signs in who started it."""
    assert hub.process.stdout
    assert select.select([hub.process.stdout], [], [], PATIENCE_SECONDS)[0]
    words, _, link = hub.process.stdout.readline().decode().strip().partition(": ")
    assert words == "Sign in as admin"
    return link


def sign_in(browser: PageClient, code: str) -> httpx.Response:
    return browser.post("api/v1/session/link", json={"code": code})


def test_a_link_signs_in_who_started_it_once(tmp_path):
    with RunningHub("demo", "--nodes", "2", directory=tmp_path) as hub, PageClient(hub.url) as browser:
        page, _, code = link_of(hub).partition("#/sign-in/")
        assert page == hub.url
        signed_in = sign_in(browser, code)
        assert signed_in.json()["role"] == "admin"
        assert signed_in.json()["name"] == getpass.getuser()
        assert sign_in(browser, code).status_code == 401
        assert code not in hub.said()


def test_without_a_link_where_a_log_would_keep_it(tmp_path):
    with RunningHub("demo", "--nodes", "2", "--no-link", directory=tmp_path) as hub:
        hub.until(lambda: hub.get("api/v1/summary")["nodes"] == 2)
        assert hub.end() == 0
        assert hub.process.stdout.read() == b""


@pytest.mark.parametrize(("word", "status"), [("read", 200), ("none", 401)])
def test_what_nobody_may_is_a_setting(tmp_path, word, status):
    (tmp_path / "gpulse.toml").write_text(f'hub.local = false\naccess.anonymous = "{word}"\n')
    with RunningHub("up", directory=tmp_path) as hub:
        # It listens before it answers.
        assert httpx.get(hub.url + "api/v1/nodes", timeout=PATIENCE_SECONDS).status_code == status


def kept(data: Path) -> list[Path]:
    """Where the sockets are, one for each hub that runs on the folder."""
    return sorted(data.glob("local-*"))


def test_commands_of_who_started_it_need_no_password(tmp_path):
    (tmp_path / "gpulse.toml").write_text('hub.local = false\naccess.anonymous = "none"\n')
    data = tmp_path / "home/.local/share/gpulse"
    with RunningHub("up", "--data", str(data), directory=tmp_path) as hub:
        hub.until(lambda: kept(data))
        assert kept(data)[0].stat().st_mode & 0o777 == 0o600

        def nodes(**variables):
            environment = {**os.environ, "HOME": str(tmp_path / "home"), "GPULSE_HUB": hub.url, **variables}
            environment.pop("XDG_CONFIG_HOME", None)
            return subprocess.run(
                [GPULSE, "nodes"],
                capture_output=True,
                text=True,
                env=environment,
                check=False,
                timeout=PATIENCE_SECONDS,
            )

        assert nodes().returncode == 0
        somebody = nodes(HOME=str(tmp_path / "another"))
        assert somebody.returncode == 2
        assert "sign in first; sign in with: gpulse login --hub " in somebody.stderr
        assert hub.end() == 0
    assert kept(data) == []


def test_another_process_signs_out_within_a_second(tmp_path):
    (tmp_path / "gpulse.toml").write_text('hub.local = false\naccess.anonymous = "none"\n')
    data = str(tmp_path / "data")
    with RunningHub("up", "--data", data, directory=tmp_path) as hub, PageClient(hub.url) as browser:
        sign_in(browser, link_of(hub).partition("#/sign-in/")[2]).raise_for_status()
        assert browser.get("api/v1/nodes").status_code == 200
        add = [GPULSE, "user", "add", "other", "--role", "admin", "--no-password", "--data", data]
        subprocess.run(add, check=True, capture_output=True, timeout=PATIENCE_SECONDS)
        disable = [GPULSE, "user", "disable", getpass.getuser(), "--data", data]
        subprocess.run(disable, check=True, capture_output=True, timeout=PATIENCE_SECONDS)
        disabled = time.monotonic()
        with Stalls() as stalls:
            hub.until(lambda: browser.get("api/v1/nodes").status_code == 401)
            assert time.monotonic() - disabled - stalls.since(disabled) < 5


def test_unreadable_config(tmp_path):
    assert "cannot be read: No such file" in refused("up", "--config", str(tmp_path / "none.toml"))
    (tmp_path / "gpulse.toml").write_text('[hub]\nport = "many"\ncolour = 1\n')
    message = refused("up", directory=tmp_path)
    assert "gpulse.toml:2: hub.port: " in message
    assert "gpulse.toml:3: hub.colour: " in message


def test_hosts_that_name_nothing(tmp_path):
    assert "gpu[01-16" in refused("up", "gpu[01-16", directory=tmp_path)


def test_config_file_is_used_and_followed(tmp_path):
    config = tmp_path / "gpulse.toml"
    config.write_text('[hub]\nlocal = false\n[[nodes]]\nhosts = "a.invalid"\ngroup = "g"\n')
    with RunningHub("up", directory=tmp_path) as hub:
        assert hub.until(lambda: hub.get("api/v1/nodes")["items"])[0]["group"] == "g"
        config.write_text('[hub]\nlocal = false\n[[nodes]]\nhosts = "[b-c].invalid,b.invalid"\n')
        config.write_text('[hub]\nlocal = false\n[[nodes]]\nhosts = "b[1-2].invalid"\n')
        names = ["b1.invalid", "b2.invalid"]
        hub.until(lambda: [node["name"] for node in hub.get("api/v1/nodes")["items"]] == names)


def test_demo_looks_like_a_cluster(tmp_path):
    with RunningHub("demo", "--nodes", "40", directory=tmp_path) as hub:
        summary = hub.until(lambda: (one := hub.get("api/v1/summary"))["nodes_up"] >= 35 and one)
        assert summary["nodes"] == 40
        assert summary["gpus"] == sum(summary["states"].values()) > 200
        assert summary["states"]["busy"] > 50
        assert summary["states"]["free"] > 5
        assert len(hub.get("api/v1/users")["items"]) >= 5
        assert len({gpu["model"] for gpu in hub.get("api/v1/gpus", limit=1000)["items"]}) >= 4
        assert hub.end() == 0


def test_sub_path(tmp_path):
    (tmp_path / "gpulse.toml").write_text('[hub]\nlocal = false\n[web]\nbase_path = "/gpus/live"\n')
    with RunningHub("up", directory=tmp_path) as hub:
        assert hub.url.endswith("/gpus/live/")
        assert hub.get("api/v1/nodes")["total"] == 0


def test_a_logo_that_is_not_there_is_told_before_anything_starts(tmp_path):
    (tmp_path / "gpulse.toml").write_text('[web]\nlogo = "logo.svg"\n')
    assert refused("up", "--port", "0", directory=tmp_path).startswith(f"web.logo: {tmp_path}/logo.svg cannot be read")


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ('[access.proxy]\nheader = "X"\naddresses = ["10.0.0.7"]\nsecret_file = "s"', "access.proxy.secret_file: "),
        (
            '[access.oidc]\nissuer = "https://x"\nclient_id = "y"\nclient_secret_file = "s"',
            "access.oidc.client_secret_",
        ),
    ],
)
def test_a_secret_that_is_not_there_is_told_before_anything_starts(tmp_path, table, told):
    (tmp_path / "gpulse.toml").write_text(table)
    assert refused("up", "--port", "0", directory=tmp_path).startswith(told)


def test_this_machine_may_be_listed_too(tmp_path):
    (tmp_path / "gpulse.toml").write_text(
        f'[names]\n"{HERE}" = "My big box"\n[[nodes]]\nhosts = "{HERE}"\ngroup = "lab"\n'
    )
    with RunningHub("up", directory=tmp_path) as hub:
        node = hub.until(lambda: hub.node(HERE))
        assert (node["display_name"], node["group"], node["address"]) == ("My big box", "lab", "this machine")


def test_a_file_with_a_strange_name_ends_nobody(tmp_path):
    """Names in a drop folder are anybody's: a hub reads on, also when it is started anew."""
    dropped = tmp_path / "drop"
    dropped.mkdir()
    for name in ("²", "①", "a b", "9" * 250, "gpu1"):
        (dropped / f"{name}.json").write_bytes(snapshot(gpu(), node=name, time=time.time()))
    (tmp_path / "gpulse.toml").write_text(f'hub.local = false\n[[drop_folders]]\npath = "{dropped}"\n')
    for _ in range(2):
        with RunningHub("up", directory=tmp_path) as hub:
            hub.until(lambda hub=hub: len(hub.get("api/v1/nodes")["items"]) == 4)
            hub.until(lambda hub=hub: "'a b' is no name of a node" in hub.said())
            assert hub.process.poll() is None
            assert hub.end() == 0
