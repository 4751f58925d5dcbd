"""The child: answers, failures, abandonment; nothing of it stays behind."""

import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpulse_probe.child import Child, ChildEnded


def ended(child, seconds=20.0):
    end = time.monotonic() + seconds
    while not child.gone():
        assert time.monotonic() < end, "the child does not end"
        time.sleep(0.01)
    return True


@pytest.fixture
def start():
    started = []

    def start(answer):
        child = Child(answer)
        started.append(child)
        return child

    yield start
    for child in started:
        child.abandon()
        ended(child)


def test_answers_requests_in_order(start):
    child = start(lambda request: request.upper())
    for word in (b"one", b"", b"x" * 300_000):
        child.ask(word)
        assert child.answer(20) == word.upper()


def test_late_answer_is_fetched_later(start, tmp_path):
    def late(_request):
        while not (tmp_path / "go").exists():
            time.sleep(0.01)
        return b"late"

    child = start(late)
    child.ask()
    assert child.answer(0.05) is None
    (tmp_path / "go").touch()
    assert child.answer(20) == b"late"


def test_failure_is_told_with_its_reason(start):
    def fail(_request):
        raise ValueError("no such card")

    child = start(fail)
    child.ask()
    with pytest.raises(ChildEnded, match="ValueError: no such card"):
        child.answer(20)


def test_end_of_the_child_is_noticed(start):
    child = start(lambda _request: os.kill(os.getpid(), signal.SIGSEGV))
    child.ask()
    with pytest.raises(ChildEnded):
        child.answer(20)
    assert ended(child)
    with pytest.raises(ChildEnded):
        child.ask()


def test_abandoned_child_is_killed_even_when_it_ignores_signals(start):
    def hang(_request):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(60)

    child = start(hang)
    child.ask()
    assert child.answer(0.05) is None
    child.abandon()
    assert ended(child)


def test_child_holds_none_of_the_parents_descriptors(start):
    """A child stuck in the driver must not keep the connection to the hub open."""
    read, write = os.pipe()
    child = start(lambda _request: b" ".join(bytes(Path(f"/proc/self/fd/{n}").readlink()) for n in range(3)))
    os.close(write)
    assert os.read(read, 1) == b"", "the child kept the pipe open"
    os.close(read)
    child.ask()
    assert child.answer(20) == b"/dev/null /dev/null /dev/null"


def test_child_ends_with_its_parent(start):
    child = start(lambda _request: b"%d" % os.getpid())
    os.close(child._requests)
    child._requests = None
    assert ended(child)


def test_abandoning_leaves_no_descriptor():
    # What earlier tests left open and lost would be closed meanwhile.
    gc.collect()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        child = Child(lambda request: request)
        child.abandon()
        assert ended(child)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_all_children_are_reaped_whoever_started_them():
    """In a process of its own: others here have children that are waited for elsewhere."""
    script = """
import os, subprocess, sys
from gpulse_probe.child import Child, reap
killed, other = Child(bytes), subprocess.Popen(["true"])
killed.abandon()
print(reap(20), open("/proc/self/task/%d/children" % os.getpid()).read().split())
stays = Child(bytes)
print(reap(0.05), open("/proc/self/task/%d/children" % os.getpid()).read().split() == [str(stays.pid)])
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "True []\nFalse True\n"
