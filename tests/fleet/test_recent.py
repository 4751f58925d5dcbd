"""The last ten minutes: what is in them, and whose they are when GPUs come, go and move."""

import time

import numpy as np
import pytest

from gpulse.fleet.columns import GpuColumns, NodeColumns
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.places import Place
from gpulse.fleet.planes import as_bytes, as_words
from gpulse.fleet.recent import STEP_SECONDS, STEPS, Recent, Series
from gpulse.fleet.state import UP
from tests.api.fleets import GIB, card, snapshot


class Cluster:
    """A fleet whose seconds pass when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0
        self.fleet = Fleet(clock=lambda: self.now, wall=lambda: 1e9 + self.now)
        # Steps are counted from the first tick on.
        self.tick()

    def tell(self, name: str, *cards: dict, seconds: int = STEP_SECONDS) -> None:
        """The node says the same each second, for so long."""
        if not self.fleet.has(name):
            self.fleet.place(Place(name=name))
        for _ in range(seconds):
            self.fleet.line(name, snapshot(name, list(cards)))
            self.tick()

    def tick(self, seconds: float = 1.0) -> None:
        self.fleet.tick()
        self.now += seconds

    def series(self, name: str) -> Series:
        node = self.fleet.known(name)
        return self.fleet.recent.series(node.start, node.count)

    def utilization(self, name: str, place: int = 0) -> list[int]:
        """What is known of it, the oldest first."""
        return [value for value in self.series(name).utilization[:, place].tolist() if value != 255]


def loaded(uuid: str, index: int, ratio: float | None, **more: object) -> dict:
    return card(uuid, index, utilization_ratio=ratio, **more)


def test_a_step_is_the_mean_of_its_ten_seconds():
    cluster = Cluster()
    cluster.tell("n", loaded("A", 0, 0.5, power_watts=100.0, memory_used_bytes=20 * GIB), seconds=5)
    cluster.tell("n", loaded("A", 0, 1.0, power_watts=300.0, memory_used_bytes=40 * GIB), seconds=4)
    assert cluster.utilization("n") == []
    cluster.tell("n", loaded("A", 0, 1.0, power_watts=300.0, memory_used_bytes=40 * GIB), seconds=1)
    found = cluster.series("n")
    assert [len(figure) for figure in found] == [STEPS] * 4
    assert [int(figure[-1, 0]) for figure in found] == [150, 100, 35, 200]
    assert [int(figure[-2, 0]) for figure in found] == [255, 255, 255, 65535]
    assert cluster.fleet.recent.end == 1e9 + 110


def test_the_newest_is_last_and_the_oldest_goes():
    cluster = Cluster()
    for step in range(STEPS + 5):
        cluster.tell("n", loaded("A", 0, step / 100))
    assert cluster.series("n").utilization[:, 0].tolist() == [2 * step for step in range(5, STEPS + 5)]


def test_what_is_not_told_is_unknown():
    cluster = Cluster()
    cluster.tell("n", loaded("A", 0, None, power_watts=None, temperature_celsius=None, memory_total_bytes=0))
    cluster.tell("n", loaded("A", 0, None, memory_used_bytes=None))
    rows = [[int(figure[row, 0]) for figure in cluster.series("n")] for row in (-2, -1)]
    assert rows == [[255, 255, 255, 65535], [255, 255, 35, 70]]


def test_a_silent_node_is_unknown_and_not_as_it_was():
    cluster = Cluster()
    cluster.tell("n", loaded("A", 0, 1.0))
    for _ in range(30):
        cluster.tick()
    cluster.tell("n", loaded("A", 0, 0.0))
    found = cluster.series("n")
    # It is stale after three seconds: till then it may still be so.
    assert found.utilization[-5:, 0].tolist() == [200, 200, 255, 255, 0]
    assert found.memory[-5:, 0].tolist() == [0, 255, 255, 255, 0]
    assert found.temperature[-5:, 0].tolist() == [35, 255, 255, 255, 35]
    assert found.power[-5:, 0].tolist() == [70, 70, 65535, 65535, 70]


def test_a_gpu_keeps_its_past_when_its_slots_move():
    cluster = Cluster()
    cluster.tell("n", loaded("A", 0, 0.1), loaded("B", 1, 0.2))
    cluster.tell("n", loaded("B", 0, 0.2), loaded("C", 1, 0.3), loaded("A", 2, 0.1))
    cluster.tell("m", loaded("D", 0, 0.4), loaded("E", 1, 0.5))
    # The other node falls silent meanwhile, and is believed for three seconds more.
    assert [cluster.utilization("n", place) for place in range(3)] == [[40, 40, 40], [60, 60], [20, 20, 20]]
    # It has the slots that the first two had.
    assert [cluster.utilization("m", place) for place in range(2)] == [[80], [100]]


def test_another_card_in_the_same_place_has_no_past():
    cluster = Cluster()
    cluster.tell("n", loaded("A", 0, 0.1), loaded("B", 1, 0.2))
    cluster.tell("n", loaded("A", 0, 0.1), loaded("C", 1, 0.3))
    assert [cluster.utilization("n", place) for place in range(2)] == [[20, 20], [60]]
    cluster.tell("n", loaded("C", 0, 0.3), loaded("A", 1, 0.1))
    assert [cluster.utilization("n", place) for place in range(2)] == [[60, 60], [20, 20, 20]]


def test_who_comes_after_a_node_that_went_sees_nothing_of_it():
    cluster = Cluster()
    cluster.tell("old", loaded("A", 0, 1.0), seconds=15)
    cluster.fleet.remove("old")
    cluster.tell("new", loaded("B", 0, 0.25), seconds=6)
    assert cluster.utilization("new") == [50]


def test_a_hub_that_slept_has_a_gap():
    cluster = Cluster()
    cluster.tell("n", loaded("A", 0, 0.5))
    cluster.now += 35
    cluster.tell("n", loaded("A", 0, 0.75))
    assert cluster.series("n").utilization[-6:, 0].tolist() == [255, 100, 255, 255, 150, 150]
    cluster.now += 1e6
    cluster.tell("n", loaded("A", 0, 1.0))
    assert set(cluster.utilization("n")) == {200}
    assert cluster.fleet.recent.end == pytest.approx(1e9 + cluster.now, abs=STEP_SECONDS)


def test_numbers_no_card_can_have_stay_in_bounds():
    numbers = np.array([np.nan, -5, 0, 1.9, 254, 255, 65535, 3e38, np.inf], np.float32)
    assert as_bytes(numbers).tolist() == [255, 0, 0, 1, 254, 254, 254, 254, 254]
    assert as_words(numbers).tolist() == [65535, 0, 0, 1, 254, 255, 65534, 65534, 65534]
    cluster = Cluster()
    cluster.tell("n", loaded("A", 0, 3e38, power_watts=3e38))
    assert cluster.utilization("n") == [254]


def test_a_hundred_thousand_gpus_cost_little():
    gpus, nodes = GpuColumns(), NodeColumns()
    for _ in range(12_500):
        slot = nodes.take()
        nodes.state[slot] = UP
        gpus.take(8, slot)
    for column in gpus.hot.values():
        column[: gpus.used] = 0.5
    recent = Recent(0.0)
    costs = []
    for second in range(200):
        began = time.thread_time()
        recent.tick(gpus, nodes, float(second), float(second))
        costs.append(time.thread_time() - began)
    # 0.5 ms on two slow cores; the least of some, as others work on this machine too.
    assert min(np.mean(costs[start : start + 10]) for start in range(10, 200, 10)) < 0.002
