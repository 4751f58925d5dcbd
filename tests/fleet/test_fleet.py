"""The fleet: one state per GPU by precedence, values from snapshots and updates, nothing lost to a bad line."""

import json

import msgspec
import pytest

from gpulse.config.thresholds import Thresholds
from gpulse.fleet.booked import Booked
from gpulse.fleet.fleet import BadLine, Fleet, FleetSettings
from gpulse.fleet.frames import Frames
from gpulse.fleet.places import Place
from tests.fleet.lines import GIB, gpu, process, snapshot, update


class Clock:
    def __init__(self):
        self.now = 5000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def fleet(clock):
    fleet = Fleet(FleetSettings(people={"bob": "Bob B."}), clock=clock, wall=lambda: 1000.0)
    fleet.place(Place(name="n1"))
    return fleet


def states(fleet):
    fleet.tick()
    return [view.state for view in fleet.gpus()]


def test_new_node_says_what_it_waits_for(fleet):
    fleet.tick()
    view = fleet.node("n1")
    assert (view.state, view.reason, view.age_seconds, view.gpus) == ("new", "waiting for its first snapshot", None, [])
    fleet.connecting("n1", "connecting to n1 port 22")
    assert fleet.node("n1").reason == "connecting to n1 port 22"


def test_node_states_follow_the_hubs_clock(fleet, clock):
    fleet.line("n1", snapshot(gpu()))
    clock.now += 2.9
    assert states(fleet) == ["free"]
    assert fleet.node("n1").age_seconds == 2.9
    clock.now += 0.2
    assert states(fleet) == ["stale"]
    assert (fleet.node("n1").state, fleet.node("n1").reason) == ("stale", "no snapshot for 3 s")
    fleet.down("n1", "connection refused")
    assert states(fleet) == ["down"]
    assert fleet.node("n1").reason == "connection refused"
    fleet.line("n1", snapshot(gpu(), seq=1))
    assert states(fleet) == ["free"]
    assert fleet.node("n1").reason == ""


def test_slower_probe_is_not_stale_in_between(fleet, clock):
    fleet.line("n1", snapshot(gpu(), probe={"interval_seconds": 5.0}))
    clock.now += 14
    assert states(fleet) == ["free"]
    clock.now += 2
    assert states(fleet) == ["stale"]


@pytest.mark.parametrize(
    ("fields", "held", "reserved", "expected"),
    [
        ({}, False, False, "free"),
        ({}, False, True, "reserved"),
        ({}, True, False, "idle"),
        ({"memory_used_bytes": 2 * GIB}, False, False, "idle"),
        ({"memory_used_bytes": 2 * GIB}, False, True, "idle"),
        ({"utilization_ratio": 0.5}, False, False, "busy"),
        ({"utilization_ratio": 0.5}, True, True, "busy"),
        ({"utilization_ratio": 0.04}, True, False, "idle"),
        ({"utilization_ratio": 0.5, "fault": "GPU is lost"}, True, True, "unhealthy"),
        ({"remapped_rows_failed": True}, False, False, "unhealthy"),
        ({"ecc_uncorrected_volatile_total": 3}, False, False, "unhealthy"),
        ({"xid_events": [{"time": 990.0, "xid": 79}]}, False, False, "unhealthy"),
        ({"xid_events": [{"time": 990.0, "xid": 31}]}, False, False, "free"),
        ({"xid_events": [{"time": -9000.0, "xid": 79}]}, False, False, "free"),
        ({"utilization_ratio": None, "memory_used_bytes": None}, False, False, "unknown"),
        ({"utilization_ratio": None}, True, False, "busy"),
        ({"utilization_ratio": None, "sm_active_ratio": 0.0}, True, False, "idle"),
    ],
)
def test_exactly_one_state_by_precedence(fleet, fields, held, reserved, expected):
    processes = [process(1, "GPU-0")] if held else []
    fleet.line("n1", snapshot(gpu(**fields), processes=processes))
    if reserved:
        fleet.book({("n1", "0"): Booked("a", "ann", 0.0, 2000.0)}, {})
    assert states(fleet) == [expected]
    summary = fleet.summary()
    assert summary.gpus == 1 == sum(summary.states.values())
    assert summary.states[expected] == 1


def idle_for(fleet):
    fleet.tick()
    return [view.idle_seconds for view in fleet.gpus()]


def held(seq, utilization=0.0, **fields):
    return snapshot(gpu(utilization_ratio=utilization, **fields), processes=[process(7, "GPU-0")], seq=seq)


def test_how_long_a_held_card_has_done_nothing(fleet, clock):
    fleet.line("n1", held(0))
    assert idle_for(fleet) == [0.0], "nobody knows what was before the hub began to watch"
    clock.now += 100
    fleet.line("n1", held(1))
    assert idle_for(fleet) == [100.0]
    fleet.line("n1", held(2, utilization=0.9))
    assert (states(fleet), idle_for(fleet)) == (["busy"], [None])
    for seq in range(3, 63):
        clock.now += 1
        fleet.line("n1", held(seq))
        fleet.tick()
    assert idle_for(fleet) == [60.0], "since it worked last, not since it counts as idle"
    fleet.line("n1", snapshot(gpu(), seq=99))
    assert (states(fleet), idle_for(fleet)) == (["free"], [None])


def test_idle_is_remembered_over_silence_and_forgotten_when_the_node_was_down(fleet, clock):
    fleet.line("n1", held(0))
    fleet.tick()
    clock.now += 50
    assert (states(fleet), idle_for(fleet)) == (["stale"], [None])
    fleet.line("n1", held(1))
    assert idle_for(fleet) == [50.0]
    fleet.down("n1", "refused")
    assert (states(fleet), idle_for(fleet)) == (["down"], [None])
    clock.now += 50
    fleet.line("n1", held(2))
    clock.now += 1
    assert idle_for(fleet) == [1.0]


def test_an_unhealthy_card_is_not_called_idle(fleet, clock):
    fleet.line("n1", held(0))
    fleet.tick()
    clock.now += 9
    fleet.line("n1", held(1, ecc_uncorrected_volatile_total=1))
    assert (states(fleet), idle_for(fleet)) == (["unhealthy"], [None])


def test_a_pause_in_work_does_not_make_a_held_card_idle(fleet, clock):
    fleet.line("n1", snapshot(gpu(utilization_ratio=0.9), processes=[process(1, "GPU-0")]))
    assert states(fleet) == ["busy"]
    for second in range(1, 30):
        clock.now += 1
        fleet.line("n1", update(0, second, 1000.0 + second, gpus={"utilization_ratio": [0.0]}))
        assert states(fleet) == ["busy"]
    clock.now += 2
    fleet.line("n1", update(0, 31, 1031.0, gpus={"utilization_ratio": [0.0]}))
    assert states(fleet) == ["idle"]


def test_a_card_that_was_given_back_is_free_at_once(fleet, clock):
    fleet.line("n1", snapshot(gpu(utilization_ratio=0.9), processes=[process(1, "GPU-0")]))
    assert states(fleet) == ["busy"]
    clock.now += 1
    fleet.line("n1", snapshot(gpu(), seq=1))
    assert states(fleet) == ["free"]


def test_thresholds_can_be_set(clock):
    thresholds = Thresholds(busy_utilization_ratio=0.5, held_memory_bytes=8 * GIB, stale_intervals=10)
    fleet = Fleet(FleetSettings(thresholds=thresholds), clock=clock)
    fleet.place(Place(name="n1"))
    fleet.line("n1", snapshot(gpu(utilization_ratio=0.4, memory_used_bytes=4 * GIB)))
    clock.now += 9
    assert states(fleet) == ["free"]


def test_split_card_is_not_counted_its_instances_are(fleet):
    card = gpu(mig_enabled=True, utilization_ratio=None)
    instances = [
        gpu(uuid=f"MIG-{place}", parent_uuid="GPU-0", mig_index=place, utilization_ratio=None) for place in range(2)
    ]
    fleet.line("n1", snapshot(card, *instances, processes=[process(1, "MIG-1")]))
    fleet.tick()
    assert [(view.id, view.counted, view.state) for view in fleet.gpus()][1:] == [
        ("MIG-0", True, "free"),
        ("MIG-1", True, "busy"),
    ]
    assert fleet.gpus()[0].counted is False
    assert fleet.summary().gpus == 2


def test_updates_change_what_they_name_and_nothing_else(fleet, clock):
    before = snapshot(gpu(0), gpu(1, power_watts=200.0), processes=[process(7, "GPU-1", cpu_seconds_total=10.0)])
    fleet.line("n1", before)
    clock.now += 1
    fleet.line(
        "n1",
        update(
            0,
            1,
            1002.0,
            gpus={"utilization_ratio": [0.5, None], "power_watts": [150.0, 250.5]},
            processes={"cpu_seconds_total": [13.0]},
            uses={"memory_bytes": [5 * GIB]},
            host={"load_1m": 3.5},
        ),
    )
    fleet.tick()
    node = fleet.node("n1", detail=True)
    first, second = node.gpus
    assert (first.utilization_ratio, first.power_watts, first.temperature_celsius) == (0.5, 150.0, 40)
    assert (second.utilization_ratio, second.power_watts) == (None, 250.5)
    assert second.people[0].memory_bytes == 5 * GIB
    assert node.processes[0].cpu_ratio == 1.5
    assert (node.host.load_1m, node.host.cpu_threads) == (3.5, 8)
    assert node.processes[0].gpus[0].kinds == ["compute"]


def test_rates_come_from_counters(fleet):
    host = {"cpu_threads": 2, "networks": [{"interface": "eth0", "received_bytes_total": 1000, "sent_bytes_total": 0}]}
    times = ("user", "nice", "system", "irq", "steal", "idle", "iowait")
    host |= {f"cpu_{name}_seconds_total": 100.0 for name in times}
    fleet.line("n1", snapshot(gpu(nvlink_sent_bytes_total=10_000), host=host))
    later = {"cpu_user_seconds_total": 101.0, "cpu_idle_seconds_total": 103.0}
    later["networks"] = [{"interface": "eth0", "received_bytes_total": 5000, "sent_bytes_total": 200}]
    fleet.line("n1", update(0, 1, 1002.0, host=later, gpus={"nvlink_sent_bytes_total": [50_000]}))
    node = fleet.node("n1")
    assert node.rates.cpu_ratio == 0.25
    assert node.rates.network_received_bytes_per_second == 2000.0
    assert node.rates.network_sent_bytes_per_second == 100.0
    assert node.gpus[0].nvlink_sent_rate_bytes_per_second == 20_000.0
    fleet.line("n1", update(0, 2, 1003.0, gpus={"nvlink_sent_bytes_total": [10]}))
    assert fleet.node("n1").gpus[0].nvlink_sent_rate_bytes_per_second is None, "the counter began anew"
    fleet.line("n1", update(0, 3, 1004.0, gpus={"nvlink_sent_bytes_total": [10]}))
    assert fleet.node("n1").gpus[0].nvlink_sent_rate_bytes_per_second == 0.0, "nothing was sent"


def test_full_snapshots_give_rates_too(fleet):
    fleet.line("n1", snapshot(gpu(pcie_sent_bytes_total=1000), time=1000.0))
    fleet.line("n1", snapshot(gpu(pcie_sent_bytes_total=3000), time=1001.0, seq=1))
    assert fleet.node("n1").gpus[0].pcie_sent_rate_bytes_per_second == 2000.0


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"garbage",
        b"{",
        b"[]",
        b'{"schema":1}',
        b'{"schema":1,"seq":1,"time":"noon"}',
        b'{"update":0,"seq":1}',
        b'{"update":0,"seq":1,"time":2,"gpus":{"power_watts":["x"]}}',
        b'{"update":0,"seq":1,"time":2,"gpus":{"power_watts":[1,2,3]}}',
        b'{"update":9,"seq":1,"time":2}',
        b'{"update":0,"seq":1,"time":2,"gpus":{"power_watts":[[1]]}}',
        b'{"update":0,"seq":1,"time":2,"gpus":{"power_watts":1}}',
        b"\xff\xfe",
        b'{"schema":99,"seq":1,"time":2}',
        b"[" * 100_000,
    ],
)
def test_bad_lines_change_nothing(fleet, line):
    fleet.line("n1", snapshot(gpu(utilization_ratio=0.7), processes=[process(1, "GPU-0")]))
    fleet.tick()
    before = fleet.node("n1", detail=True)
    with pytest.raises(BadLine):
        fleet.line("n1", line)
    fleet.tick()
    assert fleet.node("n1", detail=True) == before


@pytest.mark.parametrize(
    "parts",
    [
        {"gpus": {"energy_joules_total": ["much"]}},
        {"gpus": {"energy_joules_total": [1, 2, 3]}},
        {"gpus": {"pcie_sent_bytes_total": ["x"]}},
        {"gpus": {"throttle_reasons": [[1, 2]]}},
        {"gpus": {"fault": [{"a": 1}]}},
        {"processes": {"memory_bytes": [1, 2]}},
        {"processes": {"cpu_seconds_total": ["x"]}},
        {"uses": {"memory_bytes": [None, "x"]}},
        {"host": {"memory_used_bytes": "all", "networks": 7}},
        {"host": {"cpu_idle_seconds_total": "x"}},
    ],
)
def test_lies_of_a_node_reach_nobody(fleet, parts):
    fleet.line("n1", snapshot(gpu(), processes=[process(1, "GPU-0", cpu_seconds_total=1.0, memory_bytes=5)]))
    before = fleet.node("n1", detail=True)
    for seq in (1, 2):
        fleet.line("n1", update(0, seq, 1000.0 + seq, **parts))
        fleet.tick()
        view = fleet.node("n1", detail=True)
        assert msgspec.convert(msgspec.to_builtins(view), type(view)) == view, "it is what the API promises"
    assert view.processes[0].memory_bytes == before.processes[0].memory_bytes
    assert any("nonsense" in entry.message for entry in fleet.log_of("n1")) or "fault" in str(parts)


def test_an_update_stands_for_itself(fleet):
    """What an update does not name is as in the Snapshot, whatever lines before it said."""
    fleet.line("n1", snapshot(gpu(utilization_ratio=0.9, power_watts=300.0)))
    fleet.line("n1", update(0, 1, 1001.0, gpus={"utilization_ratio": [0.0], "fault": ["GPU is lost"]}))
    assert states(fleet) == ["unhealthy"]
    fleet.line("n1", update(0, 7, 1007.0, gpus={"power_watts": [100.0]}))
    assert states(fleet) == ["busy"]
    (view,) = fleet.gpus()
    assert (view.utilization_ratio, view.power_watts, view.fault) == (0.9, 100.0, None)
    assert fleet.summary().power_watts == 100.0


def test_a_million_gpus_are_not_believed(fleet):
    with pytest.raises(BadLine, match="not believed"):
        fleet.line("n1", json.dumps({"schema": 1, "seq": 0, "time": 1.0, "gpus": [{"index": 0}] * 100_000}).encode())


def test_newer_schema_is_a_clear_error(fleet):
    with pytest.raises(BadLine, match="upgrade the hub"):
        fleet.line("n1", snapshot(gpu(), schema=99))


def test_unknown_fields_are_ignored(fleet):
    fleet.line("n1", snapshot(gpu(new_field=[1, {"x": 2}]), also_new=True))
    fleet.line("n1", update(0, 1, 1001.0, gpus={"brand_new": [1]}, other={"a": 1}))
    assert states(fleet) == ["free"]


def test_gpus_and_nodes_come_and_go(fleet):
    fleet.line("n1", snapshot(gpu(0), gpu(1)))
    fleet.place(Place(name="n10", group="b"))
    fleet.place(Place(name="n2"))
    fleet.line("n2", snapshot(gpu(0, utilization_ratio=0.9)))
    assert fleet.names() == ["n1", "n2", "n10"]
    assert states(fleet) == ["free", "free", "busy"]
    layout = fleet.layout
    fleet.line("n1", snapshot(gpu(0), seq=1))
    assert fleet.layout > layout
    assert states(fleet) == ["free", "busy"]
    fleet.remove("n2")
    assert states(fleet) == ["free"]
    assert fleet.node("n2") is None
    fleet.line("n2", snapshot(gpu(0)))
    assert fleet.names() == ["n1", "n10"]


def test_slots_are_used_again(fleet):
    for _ in range(200):
        fleet.place(Place(name="other"))
        fleet.line("other", snapshot(gpu(0), gpu(1)))
        fleet.tick()
        fleet.remove("other")
    assert fleet.gpu_columns.used <= 4
    assert fleet.node_columns.used <= 2


def test_people_hold_gpus(fleet):
    fleet.line(
        "n1",
        snapshot(
            gpu(0, utilization_ratio=0.9),
            gpu(1),
            processes=[
                process(1, "GPU-0", "alice", 3 * GIB),
                process(2, "GPU-0", "bob", 5 * GIB),
                process(3, "GPU-1", "bob", GIB),
                process(4, "GPU-1", vanished=True, user=None),
            ],
        ),
    )
    fleet.tick()
    first, second = fleet.gpus()
    assert [(use.person, use.memory_bytes) for use in first.people] == [("Bob B.", 5 * GIB), ("alice", 3 * GIB)]
    assert "vanished" in second.flags
    people = {view.person: view for view in fleet.people()}
    assert (people["Bob B."].gpus, people["Bob B."].busy_gpus, people["Bob B."].memory_bytes) == (2, 1, 6 * GIB)
    assert people["alice"].nodes == ["n1"]


def test_log_is_kept_and_bounded(fleet):
    for number in range(1000):
        fleet.log("n1", f"line {number} " + "x" * 5000)
    log = fleet.log_of("n1")
    assert len(log) == 200
    assert log[-1].message.startswith("line 999 ")
    assert len(log[-1].message) == 1000


def test_a_display_on_a_card_does_not_hold_it(fleet):
    shown = {"pid": 9, "user": "root", "gpus": [{"uuid": "GPU-0", "kinds": ["graphics"], "memory_bytes": 100 << 20}]}
    fleet.line("n1", snapshot(gpu(memory_used_bytes=150 << 20), processes=[shown]))
    assert states(fleet) == ["free"]
    fleet.line("n1", snapshot(gpu(memory_used_bytes=2 * GIB), processes=[shown], seq=1))
    assert states(fleet) == ["idle"]


def test_views_keep_every_field_of_a_gpu(fleet):
    fleet.line("n1", snapshot(gpu(serial="S1", pcie_sent_bytes_per_second=5.0, throttle_reasons=["sync_boost"])))
    fleet.tick()
    (view,) = fleet.gpus()
    known = fleet.known("n1").current_gpus()[0]
    assert all(getattr(view, name) == getattr(known, name) for name in known.__struct_fields__ if name != "age_seconds")
    assert view.pcie_sent_rate_bytes_per_second == 5.0


def test_a_node_without_gpus_is_up(fleet):
    """Also while no node has had a GPU yet."""
    fleet.line("n1", snapshot())
    fleet.line("n1", update(0, 1, 1001.0, host={"load_1m": 1.0}))
    fleet.tick()
    assert (fleet.node("n1").state, fleet.node("n1").age_seconds) == ("up", 0.0)
    assert fleet.summary().gpus == 0


@pytest.mark.parametrize("number", [1e300, 1e39, 10**400, -(10**400)])
def test_numbers_no_card_can_have_break_nothing(fleet, number):
    fleet.place(Place(name="honest"))
    fleet.line("honest", snapshot(gpu(uuid="H", power_watts=100.0)))
    lies = ("memory_used_bytes", "memory_total_bytes", "pcie_sent_bytes_total")
    whole = int(number)
    fleet.line("n1", snapshot(gpu(**dict.fromkeys(lies, whole))))
    for seq in (1, 2):
        for field in ("memory_used_bytes", "power_watts", "pcie_sent_bytes_total"):
            try:
                fleet.line(
                    "n1", update(0, seq, 1000.0 + seq, gpus={field: [number if field == "power_watts" else whole]})
                )
            except BadLine:
                continue
        fleet.tick()
        frames = Frames(fleet)
        frames.step(1000.0)
        assert frames.full()
        assert fleet.summary().power_watts <= 1e6
        assert fleet.summary().memory_total_bytes <= 1e15
        assert len(fleet.nodes()) == 2


def test_states_do_not_wait_for_a_tick(fleet):
    fleet.line("n1", snapshot(gpu(utilization_ratio=0.9)))
    assert fleet.gpus()[0].state == "busy"
    fleet.down("n1", "gone")
    assert fleet.gpus()[0].state == "down"


def test_who_is_on_a_node_that_is_down_is_not_known(fleet):
    fleet.line("n1", snapshot(gpu(power_watts=500.0), processes=[process(1, "GPU-0")]))
    assert [view.person for view in fleet.people()] == ["alice"]
    fleet.down("n1", "gone")
    assert fleet.people() == []
    assert fleet.summary().power_watts is None


def test_an_error_of_the_hardware_is_forgiven_in_time(fleet):
    fleet.line("n1", snapshot(gpu(xid_events=[{"time": 999.0, "xid": 79}])))
    assert states(fleet) == ["unhealthy"]
    fleet.line("n1", update(0, 1, 999.0 + 3601))
    for _ in range(61):
        fleet.tick()
    assert fleet.gpus()[0].state == "free"
