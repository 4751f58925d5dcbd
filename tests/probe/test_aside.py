"""Work in a child that may hang: it costs its own data, for as long as it hangs, and nothing else."""

import os
import time

import pytest

from gpulse_probe import aside
from gpulse_probe.aside import Aside
from gpulse_probe.collectors.infiniband import Infiniband
from gpulse_probe.collectors.networks import Networks
from gpulse_probe.system import System
from tests.patience import PATIENCE_SECONDS
from tests.probe.running import children
from tests.recorded import machine


@pytest.fixture
def made():
    """Makes Asides that are closed in the end."""
    all_made = []

    def make(work, stays=True):
        all_made.append(Aside(work, "the thing", stays))
        return all_made[-1]

    yield make
    for one in all_made:
        one.close()


def waited(one, now, reports, ask=True):
    """Collect until an answer to what was asked is there, however busy this machine is."""
    end = time.monotonic() + PATIENCE_SECONDS
    one.collect(now, reports.append, ask)
    while one._asked_at is not None and time.monotonic() < end:
        time.sleep(0.01)
        one.collect(now, reports.append, False)
    return one.answer


@pytest.mark.parametrize("stays", [True, False])
def test_answers(made, stays):
    one = made(lambda now: [now], stays)
    reports = []
    assert waited(one, 1.0, reports) == [1.0]
    one.collect(2.0, reports.append, ask=False)
    assert one.answer == [1.0]
    assert waited(one, 3.0, reports) == [3.0]
    assert reports == []
    assert (one._child is not None) == stays


def test_a_hang_is_told_of_and_left(made, tmp_path):
    hang = tmp_path / "hang"

    def work(now):
        while hang.exists():
            time.sleep(0.01)
        return now

    one = made(work)
    reports = []
    assert waited(one, 1.0, reports) == 1.0
    hang.touch()
    began = time.monotonic()
    for now in (2.0, 4.0, 6.9):
        one.collect(now, reports.append, ask=True)
        assert one.answer == 1.0, "what was known holds for a while"
    assert reports == []
    one.collect(7.0, reports.append, ask=True)
    assert one.answer is None
    one.collect(9.0, reports.append, ask=True)
    assert time.monotonic() - began < 30, "nobody waited for it"
    assert reports == ["the thing did not answer for 5 s", "the thing did not answer for 7 s"]
    hang.unlink()
    assert waited(one, 16.9, []) is None
    reports = []
    assert waited(one, 17.0, []) == 17.0
    one.collect(18.0, reports.append, ask=False)
    assert reports == []


def test_a_failure_is_told_of(made):
    one = made(lambda _now: 1 / 0)
    reports = []
    assert waited(one, 1.0, reports) is None
    one.collect(2.0, reports.append, ask=True)
    assert reports[-1] == "the thing: ZeroDivisionError: division by zero"


class Stuck:
    """Stands for a process that not even SIGKILL ends."""

    made = 0

    def __init__(self, _answer):
        Stuck.made += 1

    def ask(self, _request):
        pass

    def answer(self, _seconds):
        return None

    def abandon(self):
        pass

    def gone(self):
        return False


def test_children_stay_bounded_over_days():
    Stuck.made = 0
    one = Aside(None, "the thing", stays=False, start_child=Stuck)
    for second in range(0, 3 * 86400, 10):
        one.collect(float(second), str, ask=True)
    assert Stuck.made == aside.MOST_STUCK


class Hanging(System):
    """A machine whose adapters do not answer."""

    def read_line(self, path):
        if "/speed" in path or "/counters/" in path:
            time.sleep(60)
        return super().read_line(path)


@pytest.mark.parametrize("collector", [Networks, Infiniband])
def test_an_adapter_that_does_not_answer_holds_up_nobody(collector):
    one = collector(Hanging(machine("epyc8").root))
    reports = []
    began = time.monotonic()
    try:
        for now in (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0):
            assert one.collect(now, reports.append) is None
        assert time.monotonic() - began < 30
    finally:
        one.close()
    assert len(reports) == 2
    assert "did not answer for 5 s" in reports[0]


def test_no_child_where_there_is_no_infiniband(tmp_path):

    before = children(os.getpid())
    assert Infiniband(System(str(tmp_path))).collect(0.0, pytest.fail) is None
    assert children(os.getpid()) == before
