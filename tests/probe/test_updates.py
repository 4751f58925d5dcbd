"""Updates: applied to the last whole Snapshot they make the very stream that whole Snapshots would have been.

Long because the reference `apply` stands beside all that is compared with it.
"""

import copy
import json
import subprocess
import sys
import time

from hypothesis import given
from hypothesis import strategies as st

from gpulse_probe.columns import Columns
from gpulse_probe.schema import RECORDS
from tests.conform import conforms
from tests.fake_nvml import Process, h100_node
from tests.patience import PATIENCE_SECONDS
from tests.probe.running import RunningProbe, only_child

UPDATE_FIELDS = {field.name for field in RECORDS["Update"]}


def apply(snapshot, update):
    """The Snapshot of an update: what the last whole one says, but for what the update says is not so any more."""
    assert set(update) <= UPDATE_FIELDS, update
    snapshot = copy.deepcopy(snapshot)
    snapshot.pop("devices_age_seconds", None)
    for name in ("seq", "time", "devices_age_seconds"):
        if name in update:
            snapshot[name] = update[name]
    snapshot["reports"] = update.get("reports", [])
    write(snapshot["host"], update.get("host", {}))
    uses = [use for process in snapshot.get("processes", ()) for use in process["gpus"]]
    for part, records in (("gpus", snapshot.get("gpus")), ("processes", snapshot.get("processes")), ("uses", uses)):
        for name, values in update.get(part, {}).items():
            for record, value in zip(records, values, strict=True):
                write(record, {name: value})
    return snapshot


def write(record, values):
    for name, value in values.items():
        if value is None:
            record.pop(name, None)
        else:
            record[name] = value


def differences(snapshot, expected):
    """Where two Snapshots differ: the whole of them would be pages."""
    if isinstance(snapshot, dict) and isinstance(expected, dict):
        names = sorted({*snapshot, *expected})
        return [f"{name}{rest}" for name in names for rest in differences(snapshot.get(name), expected.get(name))]
    if isinstance(snapshot, list) and isinstance(expected, list) and len(snapshot) == len(expected):
        pairs = enumerate(zip(snapshot, expected, strict=True))
        return [f"[{place}].{rest}" for place, pair in pairs for rest in differences(*pair)]
    return [] if snapshot == expected else [f": {snapshot!r} is not {expected!r}"]


class Reader:
    """Reads a stream of both kinds of line, and checks what can be checked of each."""

    def __init__(self, probe):
        self.probe = probe
        self.snapshot = None
        self.last_whole = None
        self.whole = None
        self.sizes = {True: [], False: []}

    def next(self, seconds=PATIENCE_SECONDS):
        line = self.probe.line(seconds)
        told = json.loads(line)
        self.whole = "update" not in told
        self.sizes[self.whole].append(len(line))
        if self.whole:
            self.base = told["seq"]
        else:
            assert told["update"] == self.base
            assert told["seq"] == self.snapshot["seq"] + 1
            # A line stands for itself: those in between are not needed.
        self.last_whole = told if self.whole else self.last_whole
        self.snapshot = told if self.whole else apply(self.last_whole, told)
        assert conforms("Snapshot", self.snapshot) == []
        return self.snapshot

    def until(self, condition, seconds=PATIENCE_SECONDS):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if condition(self.next()):
                return self.snapshot
        raise AssertionError(f"not within {seconds} s; the last was {json.dumps(self.snapshot)[:3000]}")


# Prints what an updating sampler writes, and the Snapshot of the same moment: the child writes both to the end.
DRIVER = """
import json, os, sys
from gpulse_probe import devices, sampler
from gpulse_probe.system import System

path = sys.argv[1]
collect = devices.Devices._collect

def noted(self, tick, head):
    records, processes = collect(self, tick, head)
    with open(path + ".new", "w") as file:
        json.dump([records, processes], file)
    os.replace(path + ".new", path)
    return records, processes

devices.Devices._collect = noted
updating = sampler.Sampler(System(), interval=0.2, updates=True)
# Each line waits for its own sample, however busy this machine is.
updating._patience = 60.0
for line in sys.stdin:
    moment = updating.moment()
    print(updating._write(moment), flush=True)
    if moment.columns is None:
        probe = moment.probe, json.loads(moment.collectors)
    with open(path) as file:
        gpus, processes = json.load(file)
    snapshot = dict(moment.snapshot, host=moment.host, gpus=gpus, processes=processes,
                    probe=dict(probe[0], collectors=probe[1]), reports=json.loads(moment.reports))
    print(json.dumps(snapshot), flush=True)
updating.close()
"""


def test_updates_make_the_stream_of_whole_snapshots(fake, tmp_path):
    """Values that move, processes that come, go and change, a card that is lost for a while."""
    sleepers = [subprocess.Popen(["sleep", "300"]) for _ in range(6)]
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(tmp_path / "collected")],
        env=fake.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert driver.stdin
    assert driver.stdout
    kinds = []
    whole = None
    try:
        for tick in range(60):
            alive = sleepers[: 2 + tick // 12] if tick < 40 else sleepers[1:4]
            used = [
                Process(one.pid, gpu=at % 4, memory=f"{at + 1 + tick // 5}GiB", sm=30 + at)
                for at, one in enumerate(alive)
            ]
            fault = "  fault * lost\n" if 20 <= tick < 25 else "  fan none\n" if tick % 10 < 5 else "  fan 33\n"
            fake.describe(h100_node(4, used, moving=True) + fault)
            time.sleep(0.03)
            driver.stdin.write("go\n")
            driver.stdin.flush()
            told, expected = (json.loads(driver.stdout.readline()) for _ in range(2))
            kinds.append("update" in told)
            whole = whole if kinds[-1] else told
            snapshot = apply(whole, told) if kinds[-1] else dict(told)
            snapshot.pop("devices_age_seconds", None)
            expected.pop("devices_age_seconds", None)
            assert differences(snapshot, expected) == [], tick
    finally:
        driver.kill()
        driver.communicate()
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()
    assert kinds[0] is False
    assert 40 < sum(kinds) < 58


def test_lines_of_a_stream(fake):
    sleepers = [subprocess.Popen(["sleep", "300"]) for _ in range(16)]
    try:
        used = [Process(one.pid, gpu=number // 2, sm=30 + number) for number, one in enumerate(sleepers)]
        fake.describe(h100_node(8, used, moving=True))
        with RunningProbe(fake.environment(), "--updates", "--interval", "0.2") as probe:
            reader = Reader(probe)
            first = reader.next()
            assert reader.whole
            assert first["seq"] == 0
            for number in range(1, 20):
                assert reader.next()["seq"] == number
            assert len(reader.snapshot["gpus"]) == 8
            # The first sample of GPM and the first shares may bring a field or two; nothing comes or goes.
            assert len(reader.sizes[False]) >= 18
            usual = sorted(reader.sizes[False])[len(reader.sizes[False]) // 2]
            assert usual < reader.sizes[True][0] / 5
            fake.describe(h100_node(8, used[:-1], moving=True))
            reader.until(lambda taken: len(taken["processes"]) == 15)
            assert reader.whole
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()


def test_hang_and_recovery(fake, pids):
    used = [Process(pids[0], sm=30)]
    fake.describe(h100_node(2, used))
    with RunningProbe(fake.environment(), "--updates", "--interval", "0.2", "--deadline", "1") as probe:
        reader = Reader(probe)
        reader.until(lambda _: not reader.whole)
        # The child that is started next hangs, too, so that nothing is read at all.
        fake.describe("fault nvmlInit* hang\nfault nvmlSystem* hang\nfault nvmlDevice* hang\n" + h100_node(2, used))
        reader.until(lambda taken: taken["reports"] and "processes" not in taken)
        assert reader.whole
        reasons = set()
        for _ in range(8):
            snapshot = reader.next()
            assert not reader.whole
            assert snapshot["gpus"][1]["failed_reason"] == snapshot["reports"][0]["message"]
            assert "power_watts" not in snapshot["gpus"][0]
            assert "fault" not in snapshot["gpus"][0]
            reasons.add(snapshot["gpus"][1]["failed_reason"])
        assert len(reasons) > 1, "the report says for how long"
        fake.describe(h100_node(2, used))
        snapshot = reader.until(lambda taken: not taken["reports"])
        assert reader.whole
        assert "failed_fields" not in snapshot["gpus"][1]
        assert len(snapshot["processes"]) == 1
        only_child(probe.process.pid)


def test_events_and_facts_come_as_a_whole(fake):
    fake.describe(h100_node(1))
    with RunningProbe(fake.environment(), "--updates", "--interval", "0.2") as probe:
        reader = Reader(probe)
        reader.until(lambda _: not reader.whole)
        fake.describe(h100_node(1) + "  xid 79\n")
        reader.until(lambda taken: "xid_events" in taken["gpus"][0])
        assert reader.whole
        fake.describe(h100_node(1) + "  xid 79\n  power_limit_enforced 500\n")
        reader.until(lambda taken: taken["gpus"][0]["power_limit_watts"] == 500.0)
        assert reader.whole


def test_slow_samples_lose_nothing(fake):
    """Answers that come late, two of them for one line: the last values are those of the card."""
    fake.describe(h100_node(1) + "  fault nvmlDeviceGetPowerUsage slow 250\n")
    with RunningProbe(fake.environment(), "--updates", "--interval", "0.2") as probe:
        reader = Reader(probe)
        reader.next()
        for number in range(12):
            fake.describe(
                h100_node(1).replace("temperature 50", f"temperature {60 + number}")
                + "  fault nvmlDeviceGetPowerUsage slow 250\n"
            )
            reader.next()
        snapshot = reader.until(lambda taken: taken["gpus"][0]["temperature_celsius"] == 71)
        assert snapshot["gpus"][0]["memory_temperature_celsius"] == 60


def test_whole_again_after_a_while():
    """By a clock that the test moves: a minute a line, and it stands still until the devices have answered."""
    script = (
        "from gpulse_probe.sampler import Sampler\n"
        "from gpulse_probe.system import System\n"
        "class Clocked(System):\n"
        "    now = 1000.0\n"
        "    def monotonic(self):\n"
        "        return self.now\n"
        "system = Clocked()\n"
        "sampler = Sampler(system, interval=60.0, updates=True)\n"
        "sampler._watchdog._clock = system.monotonic\n"
        "for _ in range(20):\n"
        "    print(sampler.line().decode(), flush=True)\n"
        "    system.now += 60.0\n"
        "sampler.close()\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    # Every fourth one: the fifth comes at five minutes or a little later.
    assert [line["seq"] for line in lines if "update" not in line] == [0, 4, 8, 12, 16]
    snapshot = lines[0]
    for line in lines[1:]:
        snapshot = apply(snapshot, line) if "update" in line else line
    assert conforms("Snapshot", snapshot) == []


# Facts, values and parts of each record, and what they may hold.
GPU_VALUES = st.fixed_dictionaries(
    {"index": st.integers(0, 1), "uuid": st.sampled_from(["a", "b"])},
    optional={
        "power_watts": st.floats(0, 9),
        "throttle_reasons": st.lists(st.sampled_from(["x", "y"]), max_size=2),
        "fault": st.sampled_from(["lost", "hung"]),
        "xid_events": st.lists(st.just({"time": 1.0, "xid": 79}), max_size=1),
    },
)
USES = st.fixed_dictionaries(
    {"uuid": st.sampled_from(["a", "b"]), "kinds": st.just(["compute"])},
    optional={"memory_bytes": st.integers(0, 2), "sm_ratio": st.floats(0, 1)},
)
PROCESSES = st.fixed_dictionaries(
    {"pid": st.integers(1, 2), "gpus": st.lists(USES, max_size=2)},
    optional={
        "state": st.sampled_from("RS"),
        "vanished": st.just(True),
        "children": st.lists(st.integers(1, 3), max_size=2),
        "user": st.sampled_from(["ada", "bob"]),
    },
)
SAMPLES = st.tuples(
    st.sampled_from(["nvml", "nvidia-smi"]),
    st.none() | st.lists(GPU_VALUES, max_size=2),
    st.none() | st.lists(PROCESSES, max_size=2),
)


@given(st.lists(SAMPLES, min_size=2, max_size=6))
def test_any_samples(samples):
    columns = Columns()
    known = None
    for source, gpus, processes in samples:
        changes = columns.changes(source, copy.deepcopy(gpus), copy.deepcopy(processes))
        now = {"source": source, "host": {}, "reports": [], "gpus": gpus, "processes": processes}
        now = {name: value for name, value in now.items() if value is not None}
        known = now if changes is None else apply(known, {"update": 0, **changes})
        assert known == now
