"""The commands against the real API: what they ask for is there, and what it tells they understand."""

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn

from gpulse.api.application import create_app
from gpulse.fleet.fleet import Fleet
from gpulse.simulate.transport import SimulatedTransport, scene
from tests.api.people import open_access
from tests.cli.hub import gpulse
from tests.patience import PATIENCE_SECONDS

NODES = 10


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    simulated = scene(NODES)
    fleet = Fleet()
    for place in simulated.places():
        fleet.place(place)
    transport = SimulatedTransport(simulated, fleet)
    for number in range(25):
        transport.step(number)
    fleet.tick()
    server = uvicorn.Server(
        uvicorn.Config(create_app(fleet, access=open_access()), port=0, log_level="error", ws="none")
    )
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not server.started:
        assert time.monotonic() < deadline, "the server did not start"
        time.sleep(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


@pytest.mark.parametrize("command", ["nodes", "gpus", "who"])
def test_lists(url, command):
    done = gpulse(command, hub=url)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) > 5


def test_nodes_are_all_there(url):
    lines = gpulse("nodes", hub=url).stdout.splitlines()
    assert len(lines) == NODES + 3
    assert lines[-1].startswith(f"{NODES} nodes: ")


def test_filters_and_mine(url):
    told = gpulse("gpus", "busy", hub=url).stdout.splitlines()
    assert len(told) > 3
    assert all("■ busy" in line for line in told[1:-2])
    assert gpulse("gpus", "mine", hub=url, LOGNAME="nobody-there").stdout == "no GPU matches the filter\n"
    assert gpulse("nodes", "mine", hub=url, LOGNAME="nobody-there").stdout == "no node matches the filter\n"
    done = gpulse("gpus", "colour:red", hub=url)
    assert done.returncode == 2
    assert done.stderr.startswith('gpulse: "colour:red": there is no key "colour"; allowed are user:')


def test_free(url):
    assert gpulse("free", "-n", "1", "--memory", "1GB", hub=url).returncode == 0
    assert gpulse("free", "--export", hub=url).stdout.startswith("export CUDA_VISIBLE_DEVICES=")
    done = gpulse("free", "-n", "9999", "--same-node", "--model", "H100", "-q", "-down", hub=url)
    assert done.returncode == 1
    assert "H100" in done.stderr


def test_logs(url):
    name = gpulse("nodes", hub=url).stdout.splitlines()[1].split()[0]
    assert len(gpulse("logs", name, hub=url).stdout.splitlines()) >= 1
    done = gpulse("logs", name + "x", hub=url)
    assert done.returncode == 2
    assert f"did you mean {name}" in done.stderr
