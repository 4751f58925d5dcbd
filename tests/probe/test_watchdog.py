"""The watchdog: a hang costs the GPUs' values, never the snapshots; what it leaves behind stays bounded."""

import re
import signal
import time
from itertools import pairwise
from typing import ClassVar

import pytest

from gpulse_probe import watchdog as module
from gpulse_probe.child import Child, ChildEnded
from gpulse_probe.page import Page
from gpulse_probe.watchdog import MOST_ABANDONED, Watchdog
from tests.patience import PATIENCE_SECONDS


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class StuckChild:
    """Stands for a process in an uninterruptible call: it never answers and survives SIGKILL."""

    alive: ClassVar[list["StuckChild"]] = []
    clock: Clock

    def __init__(self, _answer):
        self.released = False
        self.requests = []
        self.alive.append(self)

    def ask(self, request):
        self.requests.append(request)

    def answer(self, seconds):
        self.clock.now += seconds

    def abandon(self):
        pass

    def gone(self):
        if self.released and self in self.alive:
            self.alive.remove(self)
        return self.released


@pytest.fixture
def stuck():
    StuckChild.alive = []
    StuckChild.clock = Clock()
    page = Page()
    dog = Watchdog(None, page, start_child=StuckChild, clock=StuckChild.clock)
    return dog, page, StuckChild.clock


def tick(dog, clock, seconds=1.0):
    began = clock.now
    dog.ask()
    dog.wait(0.5)
    clock.now = max(clock.now, began + seconds)


def test_complaint_names_the_call_and_the_time(stuck):
    dog, page, clock = stuck
    dog.ask()
    page.note("GPU 3: nvmlDeviceGetPowerUsage")
    tick(dog, clock)
    assert dog.complaint() is None
    for second in range(2, 13):
        tick(dog, clock)
        assert dog.complaint() == f"waiting for the driver (nvmlDeviceGetPowerUsage, GPU 3), {second} s"


def test_each_call_has_its_own_deadline(stuck):
    """Many slow calls are a slow node, not a hung one."""
    dog, page, clock = stuck
    dog.ask()
    for number in range(20):
        page.note(f"GPU 0: nvmlSlowCall{number}")
        tick(dog, clock, 3.0)
        assert (dog.overdue, dog.card) == (False, None)
    assert len(StuckChild.alive) == 1


def test_driver_may_take_long_to_start_but_is_told_of(stuck):
    dog, page, clock = stuck
    dog.ask()
    page.note("nvmlInit_v2")
    for _ in range(20):
        tick(dog, clock)
    assert dog.complaint() == "waiting for the driver (nvmlInit_v2), 20 s"
    assert len(StuckChild.alive) == 1


@pytest.mark.parametrize(
    "note", ["nvmlInit_v2", "nvidia-smi", "nvmlDeviceGetCount_v2", "GPU 7: nvmlDeviceGetHandleByIndex_v2"]
)
def test_what_may_take_long_is_given_time_but_not_for_ever(stuck, note):
    dog, page, clock = stuck
    dog.ask()
    page.note(note)
    for second in range(1, 30):
        tick(dog, clock)
        assert dog.waiting
        assert dog.overdue == (second >= 5), second
        assert len(StuckChild.alive) == 1
    for _ in range(4):
        tick(dog, clock)
    assert not dog.waiting or len(StuckChild.alive) == 2
    assert dog.overdue
    assert dog.lost


def test_cards_that_wake_up_one_after_the_other_have_a_deadline_each(stuck):
    dog, page, clock = stuck
    dog.ask()
    for gpu in range(8):
        page.note(f"GPU {gpu}: nvmlDeviceGetHandleByIndex_v2")
        tick(dog, clock, 20.0)
    assert len(StuckChild.alive) == 1


class SlowChild(StuckChild):
    """Answers when it is told to."""

    ready = False

    def answer(self, seconds):
        self.clock.now += seconds
        if SlowChild.ready:
            SlowChild.ready = False
            return b"sample"
        return None


def test_a_sample_holds_while_the_next_may_take_long():
    """It is told that the answer is late, but the last one still counts until it is given up."""
    SlowChild.alive = []
    SlowChild.clock = clock = Clock()
    page = Page()
    dog = Watchdog(None, page, start_child=SlowChild, clock=clock)
    SlowChild.ready = True
    tick(dog, clock)
    assert not dog.lost
    dog.ask()
    page.note("nvidia-smi")
    for _ in range(20):
        tick(dog, clock)
    assert dog.complaint() == "waiting for nvidia-smi, 20 s"
    assert not dog.lost
    # It goes on to something else: the answer is on its way, and nothing is wrong.
    page.note("reading /proc/1/cmdline")
    tick(dog, clock)
    assert dog.complaint() is None
    SlowChild.ready = True
    tick(dog, clock)
    assert not dog.lost
    dog.ask()
    page.note("nvidia-smi")
    for _ in range(32):
        tick(dog, clock)
    assert dog.lost
    # Its successor is at it, but the sample was another's.
    page.note("nvidia-smi")
    tick(dog, clock)
    assert dog.lost
    assert dog.complaint() is not None


def test_children_stay_bounded_over_days(stuck):
    dog, page, clock = stuck
    most = 0
    for _ in range(3 * 24 * 360):
        tick(dog, clock, 10.0)
        page.note("GPU 0: nvmlDeviceGetMemoryInfo_v2")
        most = max(most, len(StuckChild.alive))
    assert most == MOST_ABANDONED
    assert "reboot the node" in dog.complaint()
    for child in list(StuckChild.alive):
        child.released = True
    tick(dog, clock)
    assert dog.complaint().startswith("waiting for the driver (nvmlDeviceGetMemoryInfo_v2, GPU 0), ")
    assert "reboot" not in dog.complaint()


def test_pauses_between_children_grow(stuck):
    dog, page, clock = stuck
    starts = []
    for _ in range(400):
        before = len(StuckChild.alive)
        dog.ask()
        if len(StuckChild.alive) > before:
            starts.append(clock.now)
            page.note("GPU 0: nvmlDeviceGetName")
        dog.wait(0.5)
        clock.now += 0.5
        for child in StuckChild.alive[:-1]:
            child.released = True
    pauses = [round(later - earlier) for earlier, later in pairwise(starts)]
    assert pauses[:4] == sorted(pauses[:4])
    assert pauses[3] - pauses[0] >= 6
    assert max(pauses) <= 60 + 6


def test_next_child_is_told_what_the_last_one_hung_in(stuck):
    dog, page, clock = stuck
    dog.ask()
    page.note("reading /proc/4711/cmdline")
    while len(StuckChild.alive) == 1:
        tick(dog, clock)
    assert StuckChild.alive[0].requests == [b""]
    assert StuckChild.alive[1].requests == [b'{"hung": ["reading /proc/4711/cmdline"]}']
    assert dog.complaint().startswith("waiting for the node (reading /proc/4711/cmdline), ")
    clock.now += 601
    assert dog.ask() is None
    assert dog._hung_in == {}


def run_until(dog, condition):
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end, dog.complaint()
        dog.ask()
        dog.wait(0.05)
        time.sleep(0.01)


def test_real_child_that_hangs_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_FIRST_PAUSE_SECONDS", 0.05)
    hang = tmp_path / "hang"
    page = Page()

    def answer(_request):
        page.note("GPU 1: nvmlDeviceGetPowerUsage")
        while hang.exists():
            time.sleep(0.02)
        return b"sample"

    dog = Watchdog(answer, page, deadline=0.3)
    try:
        run_until(dog, lambda: dog.answered)
        assert dog.take()[-1][0] == b"sample"
        hang.touch()
        complaint = r"waiting for the driver \(nvmlDeviceGetPowerUsage, GPU 1\), \d+ s"
        # On a busy machine a child may be given up before it has begun.
        run_until(dog, lambda: re.fullmatch(complaint, dog.complaint() or ""))
        hang.unlink()
        run_until(dog, lambda: dog.complaint() is None)
    finally:
        dog.close()


def test_crash_of_the_driver_library_is_told_and_survived(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_FIRST_PAUSE_SECONDS", 0.05)
    crash = tmp_path / "crash"
    crash.touch()
    page = Page()

    def answer(_request):
        page.note("GPU 0: nvmlDeviceGetName")
        if crash.exists():
            signal.raise_signal(signal.SIGSEGV)
        return b"fine"

    dog = Watchdog(answer, page)
    try:
        run_until(dog, lambda: "ended (GPU 0: nvmlDeviceGetName)" in (dog.complaint() or ""))
        crash.unlink()
        run_until(dog, lambda: dog.complaint() is None)
        assert dog.take()[-1][0] == b"fine"
    finally:
        dog.close()


def test_close_ends_the_child():
    page = Page()
    children = []

    def start(answer):
        children.append(Child(answer))
        return children[-1]

    dog = Watchdog(lambda _request: b"", page, start_child=start)
    dog.ask()
    dog.close()
    assert children[0].gone()
    with pytest.raises(ChildEnded):
        children[0].ask()
