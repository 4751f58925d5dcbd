"""A driver call that is slow or hangs on one card: its age travels, and only that card is unknown."""

import re
import time
from itertools import pairwise

import pytest

from gpulse_probe.child import ChildEnded
from gpulse_probe.hangs import KEEP_VALUES_SECONDS, Hang, Hangs, failed_fields, waiting
from gpulse_probe.page import Page
from gpulse_probe.watchdog import MOST_ABANDONED, Watchdog
from tests.fake_nvml import Process, h100_node
from tests.probe.running import RunningProbe, children, messages, once
from tests.probe.test_updates import Reader
from tests.probe.test_watchdog import Clock, StuckChild, tick

VALUES = ("utilization_ratio", "memory_used_bytes", "temperature_celsius", "power_watts")
UNKNOWN = ["utilization_ratio", "memory_used_bytes", "sm_active_ratio", "processes"]
HUNG = "waiting for the driver (nvmlDeviceGetPowerUsage), "
REPORT = re.compile(r"waiting for the driver \(nvmlDeviceGetPowerUsage, GPU 1\), \d+ s")


def on_second_card(gpus, fault, processes=()):
    """A node whose second card has a fault."""
    first, second, *others = h100_node(gpus, processes).split("\ngpu\n")[1:]
    head = h100_node(gpus, processes).split("\ngpu\n", maxsplit=1)[0]
    cards = [first, second.rstrip("\n") + f"\n  fault {fault}\n", *others]
    return "\ngpu\n".join([head, *cards])


def known(gpu):
    return [name for name in VALUES if name in gpu]


def hung(snapshot):
    return "failed_fields" in snapshot["gpus"][1]


def fresh_but_one(snapshot):
    """All cards but the second are read again."""
    return hung(snapshot) and snapshot.get("devices_age_seconds", 0.0) < 2 and "age_seconds" in snapshot["gpus"][1]


@pytest.mark.parametrize("updates", [False, True], ids=["whole", "updates"])
def test_only_the_card_that_hangs_is_unknown(fake, pids, updates):
    used = [Process(pids[0], gpu=0, sm=30), Process(pids[1], gpu=1, sm=30), Process(pids[2], gpu=2, sm=30)]
    fake.describe(h100_node(3, used))
    with RunningProbe(fake.environment(), "--interval", "0.5", *(["--updates"] if updates else [])) as probe:
        reader = Reader(probe) if updates else probe
        reader.until(lambda taken: "sm_active_ratio" in taken["gpus"][1])
        fake.describe(on_second_card(3, "nvmlDeviceGetPowerUsage hang", used))
        began = time.monotonic()
        snapshot = reader.until(fresh_but_one)
        assert time.monotonic() - began < 25, "the others are read again within 10 s, on a machine that is not busy"
        first, second, third = snapshot["gpus"]
        for other in (first, third):
            assert known(other) == list(VALUES)
            assert not {"fault", "failed_fields", "failed_reason", "age_seconds"} & set(other)
        assert "fault" not in second
        assert second["failed_fields"] == UNKNOWN
        assert second["failed_reason"].startswith(HUNG)
        assert known(second) == list(VALUES), "its last values stay, with their age"
        assert second["age_seconds"] > 4
        assert second["memory_total_bytes"] == first["memory_total_bytes"]
        (report,) = messages(snapshot)
        assert REPORT.fullmatch(report)
        # The processes of the others arrive; those of the card that hangs are unknown.
        uuids = {use["uuid"] for process in snapshot["processes"] for use in process["gpus"]}
        assert uuids == {first["uuid"], third["uuid"]}
        later = reader.until(lambda taken: taken["gpus"][1]["age_seconds"] > second["age_seconds"] + 1)
        assert later["gpus"][1]["failed_reason"] != second["failed_reason"], "it says for how long"
        fake.describe(h100_node(3, used))
        snapshot = reader.until(lambda taken: not taken["reports"], 60)
        assert [known(gpu) for gpu in snapshot["gpus"]] == [list(VALUES)] * 3
        assert not any({"failed_fields", "age_seconds"} & set(gpu) for gpu in snapshot["gpus"])
        assert len(snapshot["processes"]) == 3


def test_no_line_says_less_than_the_age_of_a_value(fake):
    """From the first second of a hang on, until the card is given up and after."""
    fake.describe(h100_node(2).replace("temperature 50", "temperature 50 grows 1"))
    with RunningProbe(fake.environment(), "--interval", "0.3", "--updates", "--deadline", "4") as probe:
        reader = Reader(probe)
        reader.until(lambda taken: not taken["reports"] and not reader.whole)
        fake.describe(on_second_card(2, "nvmlDeviceGetPowerUsage hang"))
        time.sleep(0.1)
        told = reader.until(lambda taken: taken.get("devices_age_seconds", 0.0) > 1.0)
        # It is read no more: each line is as much older as time has passed.
        start = told["time"] - told["devices_age_seconds"]
        reported = []
        while not fresh_but_one(reader.next()):
            snapshot = reader.snapshot
            age = snapshot["devices_age_seconds"]
            assert age == pytest.approx(snapshot["time"] - start, abs=0.3)
            if age > 2.6:
                reported += messages(snapshot)
                assert REPORT.fullmatch(messages(snapshot)[0])
        assert len(set(reported)) > 1, "its number grows"


def test_a_slow_call_is_reported_from_the_second_second_on(fake):
    fake.describe(h100_node(2))
    with RunningProbe(fake.environment(), "--interval", "0.3") as probe:
        probe.next()
        fake.describe(on_second_card(2, "nvmlDeviceGetPowerUsage slow 3000"))
        snapshot = probe.until(lambda taken: taken["reports"])
        (report,) = messages(snapshot)
        assert REPORT.fullmatch(report)
        assert snapshot["devices_age_seconds"] >= 1.9
        assert not hung(snapshot), "slow is not hung"
        snapshot = probe.until(lambda taken: not taken["reports"])
        assert snapshot["devices_age_seconds"] >= 2.9, "values that took 3 s are not new"


def test_a_card_that_hangs_from_the_start(fake):
    fake.describe(on_second_card(2, "nvmlDeviceGetName hang"))
    with RunningProbe(fake.environment(), "--interval", "0.3", "--deadline", "1") as probe:
        snapshot = probe.until(lambda taken: "gpus" in taken)
        first, second = snapshot["gpus"]
        assert known(first) == list(VALUES)
        assert second["index"] == 1
        assert second["failed_fields"] == ["utilization_ratio", "memory_used_bytes", "processes"]
        assert second["failed_reason"].startswith("waiting for the driver (nvmlDeviceGetName), ")


def test_one_snapshot_leaves_the_card_that_hangs_out(fake):
    fake.describe(on_second_card(2, "nvmlDeviceGetPowerUsage hang"))
    snapshot = once(fake.environment(), "--deadline", "1")
    assert [bool(known(gpu)) for gpu in snapshot.get("gpus", [])] in ([], [True, False])
    assert messages(snapshot)


def test_a_driver_that_hangs_as_a_whole_makes_all_cards_unknown(fake, pids):
    fake.describe(h100_node(2, [Process(pids[0])]))
    with RunningProbe(fake.environment(), "--interval", "0.2", "--deadline", "0.5") as probe:
        probe.until(lambda taken: not taken["reports"] and "sm_active_ratio" in taken["gpus"][1])
        fake.describe("fault nvmlDevice* hang\nfault nvmlInit* hang\n" + h100_node(2, [Process(pids[0])]))
        snapshot = probe.until(lambda taken: "processes" not in taken)
        for gpu in snapshot["gpus"]:
            assert (known(gpu), "fault" in gpu) == ([], False)
            assert gpu["failed_fields"] == UNKNOWN
            assert gpu["failed_reason"].startswith("waiting for the driver (")
            assert gpu["memory_total_bytes"] == 81559 << 20
        assert snapshot["gpus"][1]["failed_reason"] == messages(snapshot)[0]
        assert snapshot["devices_age_seconds"] > 0.4


def test_hung_cards_leave_nothing_behind(fake):
    """A killable hang: of the children there are the reader and at most one trial."""
    fake.describe(on_second_card(2, "nvmlDeviceGetPowerUsage hang"))
    with RunningProbe(fake.environment(), "--interval", "0.1", "--deadline", "0.3") as probe:
        probe.until(lambda taken: "gpus" in taken and hung(taken))
        for _ in range(60):
            probe.next()
            assert len(children(probe.process.pid)) <= 3
        fake.describe(h100_node(2))
        probe.until(lambda taken: not taken["reports"] and len(children(probe.process.pid)) == 1)


class Trial(StuckChild):
    """A trial that answers, ends or hangs as the test says."""

    outcome = None

    def ask(self, request=b""):
        pass

    def answer(self, _seconds):
        if self.outcome is ChildEnded:
            raise ChildEnded("it crashed")
        return self.outcome


@pytest.fixture
def trial():
    Trial.alive, Trial.outcome = [], None
    return Trial


def hangs_of(trial):
    return Hangs({}, lambda index: index, 10.0, 30.0, start_child=trial)


def a_hang(since=100.0, records=(), read_at=None):
    return Hang("nvmlDeviceGetPowerUsage", since, list(records), read_at, {"index", "name", "vendor"})


def test_a_card_is_tried_again_with_pauses_that_grow(trial):
    hangs, starts = hangs_of(trial), []
    hangs.add(2, a_hang(), None, 100.0)
    for now in range(100, 4000):
        before = len(trial.alive)
        hangs.look(float(now))
        if len(trial.alive) > before:
            starts.append(now)
        for child in trial.alive[:-1]:
            child.released = True
        if trial.alive and hangs._trial is None:
            trial.alive[-1].released = True
    assert starts[0] == 110
    pauses = [later - earlier for earlier, later in pairwise(starts)]
    assert pauses == sorted(pauses)
    assert 590 < pauses[-1] <= 640
    assert list(hangs.cards) == [2]


def test_a_process_that_cannot_be_ended_is_the_last_for_its_card(trial):
    hangs = hangs_of(trial)
    stuck = trial(None)
    hangs.add(2, a_hang(), stuck, 100.0)
    for now in range(100, 2000):
        hangs.look(float(now))
    assert trial.alive == [stuck]
    stuck.released = True
    trial.outcome = b""
    hangs.look(2000.0)
    hangs.look(2001.0)
    assert hangs.cards == {}


@pytest.mark.parametrize("outcome", [b"", ChildEnded])
def test_a_card_that_does_not_hang_any_more_is_read_again(trial, outcome):
    hangs = hangs_of(trial)
    hangs.add(2, a_hang(), None, 100.0)
    trial.outcome = outcome
    hangs.look(110.0)
    hangs.look(111.0)
    assert hangs.cards == {}
    # One that hangs again soon is left alone for longer.
    hangs.add(2, a_hang(), None, 120.0)
    assert hangs.cards[2].due == 140.0
    hangs.cards.clear()
    hangs.add(2, a_hang(), None, 5000.0)
    assert hangs.cards[2].due == 5010.0


def test_values_are_kept_for_a_minute_and_facts_for_ever():
    record = {"index": 2, "vendor": "nvidia", "name": "X", "utilization_ratio": 0.5, "power_watts": 80.0}
    hang = a_hang(100.0, [record], 99.0)
    (now,) = hang.records(2, 106.0)
    assert (now["utilization_ratio"], now["age_seconds"]) == (0.5, 7.0)
    assert now["failed_fields"] == ["utilization_ratio", "processes"]
    assert now["failed_reason"] == "waiting for the driver (nvmlDeviceGetPowerUsage), 6 s"
    (old,) = hang.records(2, 100.0 + KEEP_VALUES_SECONDS)
    assert set(old) == {"index", "vendor", "name", "failed_fields", "failed_reason"}
    assert old["failed_fields"] == now["failed_fields"]


def test_words():
    assert waiting("nvmlDeviceGetPowerUsage", 3.7, 2) == "waiting for the driver (nvmlDeviceGetPowerUsage, GPU 2), 3 s"
    assert waiting("nvidia-smi", 5.0) == "waiting for nvidia-smi, 5 s"
    assert waiting("", 5.0) == "waiting for the driver (starting), 5 s"
    assert waiting("reading /proc/1/cmdline", 5.0) == "waiting for the node (reading /proc/1/cmdline), 5 s"
    assert failed_fields({"memory_used_bytes": 1}) == ["memory_used_bytes", "processes"]


def stuck_in_cards(cards):
    """A watchdog whose children hang in one card after the other, and cannot be ended."""
    StuckChild.alive, StuckChild.clock = [], Clock()
    page = Page()
    dog = Watchdog(None, page, start_child=StuckChild, clock=StuckChild.clock)
    told = []
    dog.card_hangs = lambda index, call, _since, _child: told.append((index, call))
    for _ in range(600):
        before = len(StuckChild.alive)
        dog.ask()
        if len(StuckChild.alive) > before:
            page.note(f"GPU {cards[min(before, len(cards) - 1)]}: nvmlDeviceGetPowerUsage")
        tick(dog, StuckChild.clock)
    return dog, told


def test_cards_that_hang_for_good_do_not_stop_the_reading_of_the_others():
    _dog, told = stuck_in_cards([0, 1, 2, 3, 4, 4])
    assert [index for index, _ in told[:5]] == [0, 1, 2, 3, 4]
    assert len(StuckChild.alive) <= 7
    dog, _told = stuck_in_cards([0])
    assert len(StuckChild.alive) == MOST_ABANDONED
    assert "reboot the node" in dog.complaint()
