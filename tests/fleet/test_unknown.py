"""Unknown is not free: what cannot be read is said to be unknown, counted as such and handed out to nobody."""

import json

import pytest

from gpulse.fleet.finder import Wish, find
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.gpustat import to_line
from gpulse.fleet.places import Place
from gpulse.fleet.state import DEVICES_PATIENCE_SECONDS
from tests.fleet.lines import GIB, gpu, process, snapshot, update

UTIL, MEMORY, ACTIVITY = "utilization_ratio", "memory_used_bytes", "sm_active_ratio"


class Clock:
    now = 5000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def fleet(clock: Clock) -> Fleet:
    made = Fleet(clock=clock, wall=clock)
    made.place(Place(name="n1"))
    return made


def state(fleet: Fleet) -> str | None:
    fleet.tick()
    return fleet.gpus()[0].state


def without(*fields: str, **more: object) -> dict[str, object]:
    return {name: value for name, value in gpu(**more).items() if name not in fields}


@pytest.mark.parametrize(
    ("fields", "failed"),
    [
        ((UTIL,), [UTIL]),
        ((MEMORY,), [MEMORY]),
        ((), ["processes"]),
        ((UTIL, MEMORY), [UTIL, MEMORY, "processes"]),
        # Hopper has both; one of them suffices, none does not.
        ((UTIL,), [UTIL, ACTIVITY]),
    ],
)
def test_a_failed_reading_makes_a_gpu_unknown(fleet: Fleet, fields: tuple[str, ...], failed: list[str]):
    fleet.line("n1", snapshot(without(*fields, failed_fields=failed, power_watts=211.0)))
    assert state(fleet) == "unknown"
    summary = fleet.summary()
    assert (summary.states["unknown"], sum(summary.states.values())) == (1, summary.gpus)
    answer = find(fleet.gpus(), Wish(n=1))
    assert not answer.found
    assert "1 is unknown" in answer.explanation


def test_activity_stands_for_utilization(fleet: Fleet):
    fleet.line("n1", snapshot(without(UTIL, failed_fields=[UTIL], sm_active_ratio=0.0)))
    assert state(fleet) == "free"


def test_other_failures_make_nothing_unknown(fleet: Fleet):
    fleet.line("n1", snapshot(gpu(failed_fields=["fan_ratio", "power_watts"])))
    assert state(fleet) == "free"


@pytest.mark.parametrize(
    ("fields", "listed", "expected"),
    [
        # WSL and containers; MIG; unified memory; an old GeForce with nothing but memory.
        ((), False, "free"),
        ((UTIL,), True, "free"),
        ((MEMORY,), True, "free"),
        ((UTIL,), False, "unknown"),
        ((MEMORY,), False, "unknown"),
        ((UTIL, MEMORY), True, "unknown"),
    ],
)
def test_what_is_never_given_is_judged_by_two_others(
    fleet: Fleet, fields: tuple[str, ...], listed: bool, expected: str
):
    fleet.line("n1", snapshot(without(*fields, **({} if listed else {"processes_listed": False}))))
    assert state(fleet) == expected


def test_absent_processes_are_unknown_and_not_nobody(fleet: Fleet):
    line = json.loads(snapshot(without(UTIL)))
    del line["processes"]
    fleet.line("n1", json.dumps(line).encode())
    assert state(fleet) == "unknown"
    node = fleet.node("n1", detail=True)
    assert node is not None
    assert (node.processes, node.gpus[0].people) == (None, None)
    assert fleet.unlisted_gpus() == 1
    fleet.line("n1", snapshot(without(UTIL), seq=1))
    assert state(fleet) == "free"
    node = fleet.node("n1", detail=True)
    assert node is not None
    assert (node.processes, node.gpus[0].people) == ([], [])
    assert fleet.unlisted_gpus() == 0


def test_a_gpu_whose_list_failed_does_not_hide_the_others(fleet: Fleet):
    cards = [gpu(0), gpu(1, failed_fields=["processes"])]
    fleet.line("n1", snapshot(*cards, processes=[process(1, "GPU-0")]))
    fleet.tick()
    first, second = fleet.gpus()
    assert [use.person for use in first.people or ()] == ["alice"]
    assert (first.state, second.state, second.people) == ("idle", "unknown", None)


def test_unhealthy_comes_before_unknown_and_unknown_before_busy(fleet: Fleet):
    busy = {"utilization_ratio": 0.9, "failed_fields": ["processes"]}
    fleet.line("n1", snapshot(gpu(**busy)))
    assert state(fleet) == "unknown"
    fleet.line("n1", snapshot(gpu(**busy, fault="GPU is lost"), seq=1))
    assert state(fleet) == "unhealthy"


def test_updates_tell_of_failures_and_of_their_end(fleet: Fleet):
    fleet.line("n1", snapshot(gpu()))
    assert state(fleet) == "free"
    failing = {UTIL: [None], "failed_fields": [[UTIL]], "failed_reason": ["Unknown Error"]}
    for seq in (1, 2):
        fleet.line("n1", update(0, seq, 1000.0 + seq, gpus=failing))
        assert state(fleet) == "unknown"
        assert fleet.gpus()[0].failed_reason == "Unknown Error"
    fleet.line("n1", update(0, 3, 1003.0, gpus={MEMORY: [None], "failed_fields": [[MEMORY]]}))
    assert state(fleet) == "unknown"
    fleet.line("n1", update(0, 4, 1004.0))
    assert state(fleet) == "free"


def test_a_failure_that_lasts_is_read_once(fleet: Fleet, monkeypatch: pytest.MonkeyPatch):
    """A hub whose nodes all have driver trouble must not read every line in full."""
    fleet.line("n1", snapshot(gpu()))
    failing = {"failed_fields": [["processes"]]}
    fleet.line("n1", update(0, 1, 1001.0, gpus=failing))
    read: list[int] = []
    node = fleet.known("n1")
    whole = node.current_gpus
    monkeypatch.setattr(node, "current_gpus", lambda *given: read.append(1) or whole(*given))
    for seq in range(2, 6):
        fleet.line("n1", update(0, seq, 1000.0 + seq, gpus=failing))
    assert read == []
    fleet.line("n1", update(0, 6, 1006.0))
    assert read == [1]


def test_time_that_was_unknown_is_neither_idle_nor_work(fleet: Fleet, clock: Clock):
    held = {"memory_used_bytes": 2 * GIB}
    fleet.line("n1", snapshot(gpu(**held)))
    fleet.tick()
    clock.now += 2
    assert state(fleet) == "idle"
    assert fleet.gpus()[0].idle_seconds == 2.0
    fleet.line("n1", update(0, 1, 1001.0, gpus={UTIL: [None], "failed_fields": [[UTIL]]}))
    assert state(fleet) == "unknown"
    assert fleet.gpus()[0].idle_seconds is None
    fleet.line("n1", update(0, 2, 1002.0))
    assert state(fleet) == "idle"
    assert fleet.gpus()[0].idle_seconds == 0.0


def test_a_process_on_a_card_that_cannot_be_read_is_no_work(fleet: Fleet):
    fleet.line("n1", snapshot(without(UTIL, failed_fields=[UTIL]), processes=[process(1, "GPU-0")]))
    assert state(fleet) == "unknown"
    fleet.line("n1", snapshot(gpu(), processes=[process(1, "GPU-0")], seq=1))
    # Not busy for another 30 s, as if it had been seen at work.
    assert state(fleet) == "idle"


def test_nulls_of_gpustat_are_failures():
    fleet = Fleet()
    fleet.place(Place(name="n1"))
    card = {"uuid": "GPU-0", "name": "A100", "memory.total": 100, "power.draw": 211}
    whole = {"index": 0, **card, "utilization.gpu": 0, "memory.used": 1, "processes": []}
    for field in ("utilization.gpu", "memory.used", "processes"):
        line = to_line(json.dumps({"gpus": [{**whole, field: None}]}).encode(), "n1")
        fleet.line("n1", line)
        assert state(fleet) == "unknown", field
    fleet.line("n1", to_line(json.dumps({"gpus": [whole]}).encode(), "n1"))
    assert state(fleet) == "free"
    for text in ("Unknown Error", "[GPU requires reset]", "ERR!", "?", "nan"):
        for field in ("utilization.gpu", "memory.used", "processes"):
            fleet.line("n1", to_line(json.dumps({"gpus": [{**whole, field: text}]}).encode(), "n1"))
            assert state(fleet) == "unknown", (field, text)
    never = {**whole, "utilization.gpu": "Not Supported"}
    fleet.line("n1", to_line(json.dumps({"gpus": [never]}).encode(), "n1"))
    assert state(fleet) == "free"


def test_the_age_of_device_data_is_told(fleet: Fleet, clock: Clock):
    fleet.line("n1", snapshot(gpu(0), gpu(1, age_seconds=9.0), devices_age_seconds=4.2))
    clock.now += 0.5
    fleet.tick()
    node = fleet.node("n1")
    assert node is not None
    assert (node.age_seconds, node.devices_age_seconds) == (0.5, 4.7)
    assert [one.age_seconds for one in node.gpus] == [4.7, 9.5]
    fleet.line("n1", update(0, 1, 1001.0, devices_age_seconds=6.0, gpus={"age_seconds": [None, 11.0]}))
    assert [one.age_seconds for one in fleet.gpus()] == [6.0, 11.0]
    fleet.line("n1", update(0, 2, 1002.0, gpus={"age_seconds": [None, None]}))
    assert [one.age_seconds for one in fleet.gpus()] == [0.0, 0.0]


def test_old_values_are_stale_though_the_node_reports(fleet: Fleet):
    fleet.line("n1", snapshot(gpu(), devices_age_seconds=6.0))
    # nvidia-smi takes as long all the time.
    assert state(fleet) == "free"
    old = DEVICES_PATIENCE_SECONDS + 0.1
    fleet.line("n1", update(0, 1, 1001.0, devices_age_seconds=old))
    assert state(fleet) == "stale"
    node = fleet.node("n1")
    assert node is not None
    assert node.state == "up"
    assert not find(fleet.gpus(), Wish(n=1)).found
    fleet.line("n1", update(0, 2, 1002.0))
    assert state(fleet) == "free"


def test_only_the_card_that_hangs_is_old_and_unknown(fleet: Fleet):
    hangs = {"age_seconds": 60.0, "failed_fields": [MEMORY, UTIL, "processes"]}
    fleet.line("n1", snapshot(gpu(0), gpu(1, age_seconds=60.0), gpu(2, **hangs)))
    fleet.tick()
    assert [one.state for one in fleet.gpus()] == ["free", "stale", "unknown"]


@pytest.mark.parametrize("age", [-5.0, 1e300, 1e18])
def test_ages_no_clock_can_have_break_nothing(fleet: Fleet, age: float):
    fleet.line("n1", snapshot(gpu(age_seconds=age), devices_age_seconds=age))
    assert state(fleet) in ("free", "stale")
    assert fleet.gpus()[0].age_seconds is not None


def test_free_memory_is_without_what_the_driver_keeps(fleet: Fleet):
    fleet.line("n1", snapshot(gpu(memory_total_bytes=80 * GIB, memory_used_bytes=GIB, memory_reserved_bytes=GIB)))
    fleet.tick()
    assert (fleet.summary().memory_free_bytes, fleet.summary().memory_free_known_gpus) == (78 * GIB, 1)


def test_sums_over_nothing_known_are_null(fleet: Fleet):
    fleet.line("n1", snapshot(without(MEMORY, "memory_total_bytes", "power_watts")))
    fleet.tick()
    summary = fleet.summary()
    assert (summary.memory_total_bytes, summary.memory_free_bytes, summary.power_watts) == (None, None, None)
    known = (summary.memory_total_known_gpus, summary.memory_free_known_gpus, summary.power_known_gpus)
    assert known == (0, 0, 0)


def test_a_person_whose_memory_is_not_told_has_none_known(fleet: Fleet):
    fleet.line("n1", snapshot(gpu(), processes=[{"pid": 1, "user": "ann", "gpus": [{"uuid": "GPU-0"}]}]))
    fleet.tick()
    assert [person.memory_bytes for person in fleet.people()] == [None]


def test_a_split_card_has_no_state(fleet: Fleet):
    parts = [gpu(0, mig_enabled=True), gpu(0, uuid="MIG-1", parent_uuid="GPU-0", mig_index=0)]
    fleet.line("n1", snapshot(*parts))
    for happen in (fleet.tick, lambda: fleet.down("n1", "gone")):
        happen()
        card = fleet.gpus()[0]
        assert (card.state, card.counted) == (None, False)


@pytest.mark.parametrize(
    ("kinds", "activity", "expected"),
    [(["compute"], None, "unknown"), (["compute"], 0.0, "free"), (["graphics"], None, "free")],
)
def test_a_process_on_a_split_card_may_be_on_any_instance(
    fleet: Fleet, kinds: list[str], activity: float | None, expected: str
):
    card = without(UTIL, mig_enabled=True)
    part = without(UTIL, uuid="MIG-1", parent_uuid="GPU-0", mig_index=0, sm_active_ratio=activity)
    unplaced = process(7, "GPU-0")
    unplaced["gpus"][0]["kinds"] = kinds
    fleet.line("n1", snapshot(card, part, processes=[unplaced]))
    fleet.tick()
    instance = fleet.gpus()[1]
    assert instance.state == expected
    assert instance.people == ([] if kinds == ["graphics"] else None)


@pytest.mark.parametrize(
    ("fields", "flags", "expected"),
    [
        ({"fabric_faults": ["route_unhealthy"]}, ["fabric_failed", "fabric"], "unhealthy"),
        ({"fabric_faults": ["incorrect_configuration"]}, ["fabric_failed", "fabric"], "unhealthy"),
        ({"fabric_status": "Insufficient Resources"}, ["fabric_failed", "fabric"], "unhealthy"),
        ({"fabric_state": "in_progress"}, ["fabric_failed", "fabric"], "unhealthy"),
        ({"fabric_faults": ["degraded_bandwidth"], "fabric_status": "Success"}, ["fabric"], "free"),
        ({"fabric_faults": [], "fabric_status": "Success", "fabric_state": "completed"}, [], "free"),
    ],
)
def test_the_fabric_is_flagged(fleet: Fleet, fields: dict[str, object], flags: list[str], expected: str):
    fleet.line("n1", snapshot(gpu(**fields)))
    assert state(fleet) == expected
    assert fleet.gpus()[0].flags == flags


def test_an_update_tells_of_the_fabric(fleet: Fleet):
    fleet.line("n1", snapshot(gpu(fabric_faults=[])))
    fleet.line("n1", update(0, 1, 1001.0, gpus={"fabric_faults": [["route_unhealthy"]]}))
    assert state(fleet) == "unhealthy"
    fleet.line("n1", snapshot(gpu(fabric_state="completed"), seq=2))
    assert state(fleet) == "free"
    fleet.line("n1", update(2, 3, 1003.0, gpus={"fabric_state": ["in_progress"]}))
    assert state(fleet) == "unhealthy"
