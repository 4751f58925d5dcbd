"""The simulated transport: the same calls as for real nodes, into a real fleet."""

import asyncio
import copy
import json
import time
from collections import Counter

import pytest

from gpulse.fleet.fleet import Fleet
from gpulse.simulate.cluster import Cluster
from gpulse.simulate.crowd import Crowd
from gpulse.simulate.transport import MOST_LIVED, SimulatedTransport, scene
from tests import undisturbed
from tests.conform import conforms
from tests.simulate.test_cluster import apply

START = 1_760_000_000.0


class Clock:
    def __init__(self):
        self.seconds = 0.0

    def monotonic(self):
        return 500.0 + self.seconds

    def wall(self):
        return START + self.seconds


def drive(cluster, fleet, clock, seconds):
    """Run the slices by hand, as run() does by the clock; yields after each second."""
    transport = SimulatedTransport(cluster, fleet, wall=clock.wall, clock=clock.monotonic)
    for second in range(seconds):
        for number in range(25):
            clock.seconds = second + number / 25
            transport.step(number)
        fleet.tick()
        yield second


@pytest.fixture
def clock():
    return Clock()


def placed(cluster, clock):
    fleet = Fleet(clock=clock.monotonic, wall=clock.wall)
    for place in cluster.places():
        fleet.place(place)
    return fleet


def test_a_fleet_sees_a_cluster_at_work(clock):
    cluster = Cluster(40, start=START)
    fleet = placed(cluster, clock)
    states = Counter()
    for second in drive(cluster, fleet, clock, 340):
        if second == 60:
            summary = fleet.summary()
            assert (summary.nodes, summary.nodes_up) == (40, 40)
            assert summary.gpus == sum(node.slots for node in cluster.nodes.values())
            assert sum(summary.states.values()) == summary.gpus
            assert 0.55 <= summary.states["busy"] / summary.gpus <= 0.8
            assert summary.states["idle"] > 3
            assert summary.states["free"] > 10
            assert summary.states["unhealthy"] >= 1
            assert len(fleet.people()) >= 10
        if second >= 100 and second % 10 == 0:
            states.update(view.state for view in fleet.nodes())
    assert states["stale"] >= 2
    assert states["down"] >= 6
    (failed,) = {name for name in fleet.names() if any("no answer" in entry.message for entry in fleet.log_of(name))}
    assert fleet.node(failed).name == failed


class Listener:
    """Passes everything on to the fleet, and remembers each node's last full line and its last line."""

    def __init__(self, fleet):
        self.fleet = fleet
        self.full, self.last = {}, {}

    def connecting(self, name, detail):
        self.fleet.connecting(name, detail)

    def line(self, name, data):
        self.fleet.line(name, data)
        self.last[name] = json.loads(data)
        if "update" not in self.last[name]:
            self.full[name] = self.last[name]

    def tick(self):
        self.fleet.tick()

    def said(self, name):
        snapshot = copy.deepcopy(self.full[name])
        if "update" in self.last[name]:
            apply(snapshot, self.last[name])
        return snapshot


def test_what_the_fleet_tells_is_what_the_node_said(clock):
    cluster = Cluster(6, start=START, faults=False)
    fleet = placed(cluster, clock)
    listener = Listener(fleet)
    for _ in drive(cluster, listener, clock, 20):
        pass
    for name in fleet.names():
        said = listener.said(name)
        view = fleet.node(name, detail=True)
        assert [gpu.power_watts for gpu in view.gpus] == [gpu.get("power_watts") for gpu in said["gpus"]]
        assert [(process.pid, process.cpu_seconds_total) for process in view.processes] == [
            (process["pid"], process.get("cpu_seconds_total")) for process in said["processes"]
        ]
        assert view.host.cpu_idle_seconds_total == said["host"]["cpu_idle_seconds_total"]


def test_run_sends_a_line_a_second_from_every_node():
    class Sink:
        def __init__(self):
            self.lines = Counter()
            self.connected = []

        def connecting(self, name, detail):
            self.connected.append((name, detail))

        def line(self, name, _data):
            self.lines[name] += 1

        def down(self, name, _reason):
            raise AssertionError(name)

        def log(self, _name, message):
            raise AssertionError(message)

    sink = Sink()

    async def for_a_while():
        cluster, clock = Cluster(8, start=time.time(), faults=False), asyncio.get_running_loop().time
        transport = SimulatedTransport(cluster, sink, interval_seconds=0.2, clock=clock)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(transport.run(), 1.1)

    undisturbed.run(for_a_while())
    assert sorted(sink.connected) == [(f"gpu{number:02d}", "simulated") for number in range(1, 9)]
    assert set(sink.lines) == {f"gpu{number:02d}" for number in range(1, 9)}
    assert all(3 <= count <= 7 for count in sink.lines.values())


def test_a_crowd_is_many_different_nodes():
    crowd = Crowd(70, start=START, templates=5, seconds=30, every=5)
    lines = {place.name: json.loads(crowd.line(place.name)) for place in crowd.places()}
    assert len(lines) == 70
    uuids = [gpu["uuid"] for line in lines.values() for gpu in line["gpus"]]
    assert len(set(uuids)) == len(uuids)
    for name, line in lines.items():
        assert conforms("Snapshot", line) == []
        assert (line["node"], line["host"]["hostname"]) == (name, name)
        assert {use["uuid"] for process in line["processes"] for use in process["gpus"]} <= set(uuids)


def test_a_fleet_follows_a_crowd_over_the_end_of_its_recordings(clock):
    crowd = Crowd(30, start=START, templates=4, seconds=20, every=5)
    fleet = placed(crowd, clock)
    powers = set()
    for _ in drive(crowd, fleet, clock, 50):
        powers.add(fleet.node("gpu07").gpus[0].power_watts)
        assert fleet.summary().nodes_up == 30
    assert 15 <= len(powers) <= 20


def test_many_nodes_are_a_crowd():
    assert isinstance(scene(2), Cluster)
    crowd = scene(MOST_LIVED + 1)
    assert isinstance(crowd, Crowd)
    assert len(crowd.places()) == MOST_LIVED + 1
