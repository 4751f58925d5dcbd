"""The simulated cluster: lines as the probe writes them, the same at every run, and a day that looks like one."""

import copy
import json
from collections import Counter
from random import Random

from gpulse.fleet.fleet import Fleet
from gpulse.simulate.cluster import Cluster
from gpulse.simulate.jobs import KINDS, Job
from gpulse.simulate.people import PEOPLE
from gpulse_probe.schema import RECORDS
from tests.conform import conforms

START = 1_760_000_000.0


def names(cluster):
    return [place.name for place in cluster.places()]


def snapshots(cluster):
    return {name: json.loads(cluster.full_line(name)) for name in names(cluster)}


def apply(snapshot, update):
    """The reference: a Snapshot with an Update put over it."""
    assert update["update"] <= update["seq"]
    snapshot["time"], snapshot["seq"] = update["time"], update["seq"]
    snapshot["host"].update(update.get("host", {}))
    uses = [use for process in snapshot["processes"] for use in process["gpus"]]
    for records, part in ((snapshot["gpus"], "gpus"), (snapshot["processes"], "processes"), (uses, "uses")):
        for field, column in update.get(part, {}).items():
            for record, value in zip(records, column, strict=True):
                record.pop(field, None)
                if value is not None:
                    record[field] = value
    snapshot["reports"] = update.get("reports", [])


def test_lines_are_what_the_schema_says():
    cluster = Cluster(40, start=START)
    for name, snapshot in snapshots(cluster).items():
        assert conforms("Snapshot", snapshot) == []
        assert snapshot["node"] == name
        uuids = [gpu["uuid"] for gpu in snapshot["gpus"]]
        assert len(set(uuids)) == len(uuids)
        assert all(use["uuid"] in uuids for process in snapshot["processes"] for use in process["gpus"])


def test_updates_put_over_the_full_line_are_the_full_line():
    cluster, twin = Cluster(12, start=START), Cluster(12, start=START)
    known = snapshots(cluster)
    snapshots(twin)
    compared = Counter()
    for second in range(1, 400):
        cluster.advance(START + second)
        twin.advance(START + second)
        for name, whole in known.items():
            line = cluster.update_line(name)
            expected = json.loads(twin.full_line(name))
            if line is None:
                known[name] = json.loads(cluster.full_line(name))
                compared["full"] += 1
                continue
            if second % 20 == 0:
                snapshot = copy.deepcopy(whole)
                apply(snapshot, json.loads(line))
                assert snapshot == expected
                compared["update"] += 1
    assert compared["full"] >= 12
    assert compared["update"] > 150


def test_updates_tell_no_facts():
    cluster = Cluster(12, start=START)
    snapshots(cluster)
    cluster.advance(START + 1)
    for name in names(cluster):
        update = json.loads(cluster.update_line(name))
        assert list(update)[:3] == ["update", "seq", "time"]
        for part, record in (("gpus", "Gpu"), ("processes", "Process"), ("uses", "GpuUse"), ("host", "Host")):
            kinds = {field.name: field.kind for field in RECORDS[record]}
            told = {kinds[field] for field in update.get(part, {})}
            assert told <= ({"value", "counter", "part"} if part == "host" else {"value", "counter"})


def test_the_same_seed_is_the_same_cluster():
    def lines(seed):
        cluster = Cluster(10, seed=seed, start=START)
        told = []
        for second in range(0, 300, 7):
            cluster.advance(START + second)
            told += [cluster.line(name) for name in names(cluster)]
        return told

    assert lines(3) == lines(3)
    assert lines(3) != lines(4)


def test_counters_only_grow():
    cluster = Cluster(10, start=START, faults=False)
    before = snapshots(cluster)
    for second in range(1, 30):
        cluster.advance(START + second)
        now = snapshots(cluster)
        for name in now:
            assert now[name]["seq"] == before[name]["seq"] + 1
            for old, new in zip(before[name]["gpus"], now[name]["gpus"], strict=True):
                for field in RECORDS["Gpu"]:
                    if field.kind == "counter" and field.name in old:
                        assert new[field.name] >= old[field.name], field.name
            host, host_before = now[name]["host"], before[name]["host"]
            spent = sum(
                host[field] - host_before[field] for field in host if field.startswith("cpu_") and "total" in field
            )
            assert abs(spent - host["cpu_threads"]) < 0.05 * host["cpu_threads"]
        before = now


def test_hours_look_like_hours():
    """Shares of cards that work, are held by idle notebooks and are free; jobs come and go; many people."""
    cluster = Cluster(40, seed=2, start=START)
    started = set()
    people = set()
    for quarter in range(24):
        cluster.advance(START + 900 * quarter + 60)
        working = held = slots = 0
        for node in cluster.nodes.values():
            slots += node.slots
            for tenant in node.tenants:
                started.add(tenant.job.number)
                people.add(tenant.job.person.user)
                working += len(tenant.devices) if tenant.job.works else 0
                held += 0 if tenant.job.works else len(tenant.devices)
        assert 0.52 <= working / slots <= 0.76
        assert 0.03 <= held / slots <= 0.1
    assert len(started) > 180
    assert len(people) >= 10


def test_no_two_jobs_share_a_card_and_none_is_lost():
    cluster = Cluster(40, seed=5, start=START)
    for step in range(200):
        cluster.advance(START + 100 * step)
        for node in cluster.nodes.values():
            taken = [device for tenant in node.tenants for device in tenant.devices]
            lingering = [process.devices[0] for process in node.lingering if "vanished" in process.facts]
            everywhere = sorted(taken + lingering + node.free_cards + node.free_instances)
            assert len(set(everywhere)) == len(everywhere) == node.slots
            assert all(tenant.job.end > cluster.now for tenant in node.tenants)


def test_what_breaks_is_there():
    cluster = Cluster(40, start=START)
    cluster.advance(START + 30)
    gpus = [gpu for snapshot in snapshots(cluster).values() for gpu in snapshot["gpus"]]
    processes = [process for snapshot in snapshots(cluster).values() for process in snapshot["processes"]]
    assert {gpu["name"] for gpu in gpus} >= {"NVIDIA H100 80GB HBM3", "NVIDIA GeForce RTX 4090", "NVIDIA L40S"}
    assert any(gpu.get("ecc_uncorrected_volatile_total") for gpu in gpus)
    assert [event["xid"] for gpu in gpus for event in gpu.get("xid_events", [])] == [48, 63]
    assert sum("parent_uuid" in gpu for gpu in gpus) == 8
    assert sum(gpu.get("mig_enabled", False) for gpu in gpus) == 2
    assert len([process for process in processes if process.get("vanished")]) == 1
    assert any(process.get("nice") == 10 for process in processes)
    assert any(len(process["gpus"]) > 1 for process in processes)
    assert sum(bool(snapshot["reports"]) for snapshot in snapshots(cluster).values()) == 1


def test_a_card_without_air_slows_down():
    cluster = Cluster(40, start=START)
    slowed = False
    for minute in range(0, 180, 2):
        cluster.advance(START + 60 * minute)
        for snapshot in snapshots(cluster).values():
            for gpu in snapshot["gpus"]:
                if "hw_thermal_slowdown" in gpu.get("throttle_reasons", ()):
                    slowed = True
                    assert gpu["temperature_celsius"] >= gpu["temperature_slowdown_celsius"] - 7
                    assert gpu["clock_sm_hertz"] < 0.6 * gpu["clock_sm_max_hertz"]
    assert slowed


def test_a_node_fails_and_comes_back():
    cluster = Cluster(40, start=START)
    seen = []
    boots = {}
    failing = None
    for second in range(0, 900, 5):
        cluster.advance(START + second)
        states = {name: cluster.condition(name) for name in names(cluster)}
        bad = [name for name, condition in states.items() if condition.state != "up"]
        assert len(bad) <= 1
        if bad and failing is None:
            failing = bad[0]
            boots["before"] = json.loads(cluster.full_line(failing))["boot_id"]
        if failing and (not seen or seen[-1] != states[failing].state):
            seen.append(states[failing].state)
            if states[failing].state == "down":
                assert failing in states[failing].reason
                assert cluster.nodes[failing].tenants == []
    assert seen[:3] == ["silent", "down", "up"]
    after = json.loads(cluster.full_line(failing))
    assert after["boot_id"] != boots["before"]
    assert after["host"]["uptime_seconds"] < 900


def test_one_node_is_a_cluster_too():
    cluster = Cluster(1, start=START)
    cluster.advance(START + 5000)
    assert conforms("Snapshot", json.loads(cluster.full_line("gpu01"))) == []
    assert [(place.name, place.group, place.rack) for place in cluster.places()] == [("gpu01", "a100", "r01")]


def test_training_has_phases():
    job = Job(1, "training", PEOPLE[0], START, Random(4))
    loads = [job.load(START + second, 0) for second in range(3600)]
    assert loads[0].utilization < 0.1 < loads[0].memory + 0.1
    assert loads[0].memory < loads[15].memory < 0.7
    working = [load.utilization for load in loads[100:]]
    low, high = KINDS["training"].utilization
    assert low <= max(working) <= high
    assert 0 < sum(utilization < 0.1 for utilization in working) < 0.1 * len(working)
    assert sum(utilization > 0.9 * max(working) for utilization in working) > 0.7 * len(working)


def test_a_few_gpus_cannot_be_read():
    fleet = Fleet()
    cluster = Cluster(40, start=START)
    for place in cluster.places():
        fleet.place(place)
        fleet.line(place.name, cluster.full_line(place.name))
    fleet.tick()
    assert 1 <= fleet.summary().states["unknown"] <= 3
