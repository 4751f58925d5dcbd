"""A server that is gone must cost its own mount only. The hanging calls are real, in real child processes."""

import errno
import gc
import os
import time
from itertools import pairwise
from pathlib import Path

import pytest

from gpulse_probe import network_mounts
from gpulse_probe.collectors.disks import Disks
from gpulse_probe.network_mounts import MOST_STUCK, NetworkMounts
from gpulse_probe.system import Space, System
from tests.patience import PATIENCE_SECONDS

MOUNTS = "".join(
    f"{number} 1 0:{number} / {path} rw - {kind} {source} rw\n"
    for number, path, kind, source in (
        (50, "/data", "nfs4", "nas:/data"),
        (51, "/data/local", "xfs", "/dev/sdb1"),
        (52, "/home", "nfs4", "nas:/home"),
    )
)


def quiet(_message):
    """For tests that are not about reports."""


class Hanging(System):
    """Calls on /data do not return as long as the file `gone` is there."""

    def space(self, path):
        while path.startswith("/data") and self.exists("/gone"):
            time.sleep(0.02)
        return Space(1000, 600, 500)


@pytest.fixture
def hanging(tmp_path):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text(MOUNTS + "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n")
    (tmp_path / "gone").touch()
    disks = Disks(Hanging(str(tmp_path)))
    yield disks
    (tmp_path / "gone").unlink(missing_ok=True)
    disks.close()


def sizes(disks, now, reports=None):
    started = time.monotonic()
    collected = disks.collect(now, (reports if reports is not None else []).append)
    assert time.monotonic() - started < 20, "collect must not wait for a server"
    return {disk["mount"]: disk.get("total_bytes") for disk in collected["disks"]}


def until(disks, now, wanted):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        reports = []
        found = sizes(disks, now, reports)
        if found == wanted:
            return reports
        time.sleep(0.01)
    pytest.fail(f"{found} instead of {wanted}")


def test_a_hanging_server(hanging, tmp_path):
    known = {"/": 1000, "/data": None, "/data/local": None, "/home": None}
    reports = []
    assert sizes(hanging, 0.0, reports) == known
    assert sizes(hanging, 4.9, reports) == known
    assert reports == []
    # The first is given up, and the next one on the same way hangs as well.
    assert sizes(hanging, 5.0, reports) == known
    assert reports == ["file system /data (nas:/data) has not answered for 5 s"]
    sizes(hanging, 10.0)
    known["/home"] = 1000
    assert until(hanging, 10.0, known) == [
        "file system /data (nas:/data) has not answered for 10 s",
        "file system /data/local (/dev/sdb1) has not answered for 5 s",
    ]
    assert until(hanging, 12.0, known)[0] == "file system /data (nas:/data) has not answered for 12 s"
    (tmp_path / "gone").unlink()
    assert until(hanging, 20.0, dict.fromkeys(known, 1000)) == []


def test_no_wait_for_a_question_of_an_earlier_tick(hanging, monkeypatch):
    sizes(hanging, 0.0)
    monkeypatch.setattr(network_mounts, "PATIENCE_SECONDS", 40.0)
    started = time.monotonic()
    hanging.collect(1.0, quiet)
    assert time.monotonic() - started < 30


def test_no_child_without_a_network_mount(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fork", pytest.fail)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text("1 0 8:1 / / rw - ext4 /dev/sda1 rw\n")
    assert sizes(Disks(Hanging(str(tmp_path))), 0.0) == {"/": 1000}


class Silent:
    """A child that never answers and, as long as `immortal`, never ends."""

    immortal = False

    def __init__(self, _answer):
        self.asked = []
        STARTED.append(self)

    def ask(self, request):
        self.asked.append(request)

    def answer(self, _seconds):
        return None

    def abandon(self):
        self.asked.append("abandoned")

    def gone(self):
        return not self.immortal


STARTED = []


@pytest.fixture(autouse=True)
def forget():
    STARTED.clear()
    Silent.immortal = False


def test_pauses_grow_up_to_five_minutes():
    mounts = NetworkMounts(System(), Silent)
    asked = []
    for now in range(2000):
        before = len(STARTED)
        mounts.collect({"/data": "nas:/data"}, float(now), quiet)
        if len(STARTED) > before:
            asked.append(now)
    assert [later - earlier for earlier, later in pairwise(asked)][:8] == [
        15,
        25,
        45,
        85,
        165,
        305,
        305,
        305,
    ]


def test_few_children_are_left_behind():
    Silent.immortal = True
    mounts = NetworkMounts(System(), Silent)
    sources = {f"/m{number}": "nas" for number in range(5)}
    for now in range(1000):
        mounts.collect(sources, float(now), quiet)
    assert len(STARTED) == MOST_STUCK
    reports = []
    mounts.collect(sources, 1000.0, reports.append)
    assert reports == [
        "file system /m0 (nas) has not answered for 1000 s",
        "file system /m1 (nas) has not answered for 995 s",
        "file system /m2 (nas) has not answered for 990 s",
        "no network file system is asked while 3 earlier questions are stuck in the kernel",
    ]
    Silent.immortal = False
    mounts.collect(sources, 1001.0, quiet)
    assert len(STARTED) == MOST_STUCK + 1


def answered(system, paths):
    """What is reported when all have been asked; the last of them must be one that is reported."""
    mounts = NetworkMounts(system)
    deadline = time.monotonic() + PATIENCE_SECONDS
    reports = []
    while not reports and time.monotonic() < deadline:
        mounts.collect(dict.fromkeys(paths, "nas"), 0.0, reports.append)
    mounts.close()
    return mounts, reports


class Refusing(System):
    def space(self, path):
        if path == "/ends":
            os._exit(3)
        if path == "/odd":
            raise ValueError("no such answer")
        code = {"/stale": errno.ESTALE, "/private": errno.EACCES}[path]
        raise OSError(code, os.strerror(code))


def test_an_error_of_the_server_is_told_and_a_private_mount_is_not():
    mounts, reports = answered(Refusing(), ["/private", "/stale"])
    assert reports == ["file system /stale (nas): Stale file handle"]
    assert mounts.space("/stale") is mounts.space("/private") is None


@pytest.mark.parametrize(
    ("path", "reason"), [("/ends", "it ended without an answer"), ("/odd", "ValueError: no such answer")]
)
def test_a_child_that_fails_is_told_of(path, reason):
    _, reports = answered(Refusing(), [path])
    assert reports == [f"file system {path} (nas): the process that asks has ended: {reason}"]


def test_nothing_is_left_open(hanging):
    # What earlier tests left open and lost would be closed meanwhile.
    gc.collect()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for now in range(0, 400, 5):
        hanging.collect(float(now), quiet)
    hanging.close()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while hanging._network.busy and time.monotonic() < deadline:
        hanging._network.collect({}, 1000.0, pytest.fail)
    assert not hanging._network.busy
    assert len(list(Path("/proc/self/fd").iterdir())) == before
