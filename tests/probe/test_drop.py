"""`gpulse agent drop`: whole files only, and a folder that is full, gone or hanging costs nothing but its data."""

import errno
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from gpulse_probe.child import Child
from gpulse_probe.options import UsageError
from gpulse_probe.outlets import drop
from gpulse_probe.outlets.drop import Drop, File, check_name
from tests.conform import conforms
from tests.fake_nvml import h100_node
from tests.interpreters import interpreters
from tests.patience import PATIENCE_SECONDS
from tests.probe.running import children
from tests.probe.serving import SOURCES


class Dropping:
    """`gpulse agent drop` as a process; a context manager."""

    def __init__(self, folder, environment, *options, python=sys.executable):
        self.process = subprocess.Popen(
            [python, "-m", "gpulse_probe", "drop", str(folder), "--interval", "0.1", *options],
            env={**environment, "PYTHONPATH": str(SOURCES)},
            stderr=subprocess.PIPE,
        )
        self.said = ""

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.process.kill()
        self.process.communicate()

    def until_said(self, words):
        assert self.process.stderr
        end = time.monotonic() + PATIENCE_SECONDS
        while not re.search(words, self.said):
            assert select.select([self.process.stderr], [], [], max(0, end - time.monotonic()))[0], self.said
            piece = os.read(self.process.stderr.fileno(), 4096).decode()
            assert piece, self.said
            self.said += piece


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def until(condition, seconds=PATIENCE_SECONDS):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def folder(tmp_path):
    """In memory, where that can be: a busy disk may take longer for a file than the agent gives it at its end."""
    memory = "/dev/shm"  # noqa: S108 - a folder of its own is made in it
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else tmp_path) as made:
        yield Path(made)


@pytest.mark.parametrize("version", interpreters())
def test_a_reader_never_sees_half_a_file(version, fake, folder):
    fake.describe(h100_node(2))
    file = folder / "gpu07.json"
    with Dropping(folder, fake.environment(), "--node", "gpu07", python=interpreters()[version]) as dropping:
        until(file.exists)
        seen = set()
        while len(seen) < 4:
            snapshot = json.loads(file.read_bytes())
            assert conforms("Snapshot", snapshot) == []
            assert snapshot["node"] == "gpu07"
            assert [name for name in names(folder) if not name.startswith(".")] == ["gpu07.json"]
            seen.add(snapshot["seq"])
        dropping.until_said(f"{file} is written\n")
        dropping.process.send_signal(signal.SIGTERM)
        assert dropping.process.wait(PATIENCE_SECONDS) == 0
    assert names(folder) == ["gpu07.json"], "what was being written when it was told to end is finished"


def test_every_five_seconds_unless_told():
    from gpulse_probe.agent import Options

    assert Options("drop", ["DIR"]).interval == 5.0


@pytest.mark.parametrize("name", ["", ".", "..", ".gpu07", "a/b", "../a", "/a", "a\0b", "x" * 201, "ü" * 101])
def test_names_that_no_file_can_have(name):
    with pytest.raises(UsageError, match="cannot be the name of a file"):
        check_name(name)


@pytest.mark.parametrize("name", ["gpu07", "gpu07.cluster.example.org", "a b", "ü", "x" * 200])
def test_names_that_a_file_can_have(name, tmp_path):
    check_name(name)
    file = File(str(tmp_path), name)
    assert file.write(b"1") == b""
    assert Path(file.path).read_bytes() == b"1"


def test_a_name_is_refused_at_the_start(tmp_path):
    command = [sys.executable, "-m", "gpulse_probe", "drop", str(tmp_path), "--node", "../x"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)
    assert ran.returncode == 2
    assert "'../x' cannot be the name of a file" in ran.stderr


def test_a_folder_that_comes_goes_and_comes_back(fake, tmp_path):
    folder = tmp_path / "mount"
    with Dropping(folder, fake.environment(), "--node", "n") as dropping:
        dropping.until_said(
            r"n\.json cannot be written: the folder is not there: make it, or mount it; it is tried again"
        )
        assert not folder.exists(), "a mount point that is not mounted is left alone"
        folder.mkdir()
        dropping.until_said(r"n\.json is written")
        folder.rename(tmp_path / "away")
        dropping.until_said(r"(?s)is written.*cannot be written")
        (tmp_path / "away").rename(folder)
        dropping.until_said(r"(?s)is written.*cannot be written.*is written")
    assert dropping.said.count("\n") == 4, "each is said once"


def test_what_is_left_is_removed_unless_it_is_being_written(tmp_path):
    old, new, others = (tmp_path / name for name in (".n.json.0123abcd", ".n.json.4567", ".n.json.b.json.89"))
    for path in (old, new, others):
        path.write_bytes(b"")
    for path in (old, others):
        os.utime(path, (1e9, 1e9))
    assert File(str(tmp_path), "n").write(b"x") == b""
    assert names(tmp_path) == sorted(["n.json", new.name, others.name])


def test_what_cannot_be_written_as_a_whole_leaves_the_last_one(tmp_path):
    script = (
        "import resource, signal, sys\n"
        "from gpulse_probe.outlets.drop import File\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "file = File(sys.argv[1], 'n')\n"
        "print(file.write(b'good'), file.write(b'x' * 1000))\n"
    )
    ran = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True, check=True)
    assert ran.stdout == "b'' b'File too large'\n"
    assert names(tmp_path) == ["n.json"]
    assert (tmp_path / "n.json").read_bytes() == b"good"


@pytest.mark.parametrize(("call", "number"), [("fsync", errno.ENOSPC), ("fsync", errno.EDQUOT), ("open", errno.EROFS)])
def test_what_a_file_server_says_late_is_told(tmp_path, monkeypatch, call, number):
    file = File(str(tmp_path), "n")
    assert file.write(b"good") == b""

    def refuse(*_arguments):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(drop.os, call, refuse)
        assert file.write(b"bad") == os.strerror(number).encode()
    assert names(tmp_path) == ["n.json"]
    assert (tmp_path / "n.json").read_bytes() == b"good"
    assert file.write(b"new") == b""


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


class Stuck:
    """Stands for a process that not even SIGKILL ends."""

    made = 0
    released = False

    def __init__(self, _answer):
        Stuck.made += 1
        self.abandoned = False

    def ask(self, _request):
        pass

    def answer(self, _seconds):
        return None

    def abandon(self):
        self.abandoned = True

    def gone(self):
        return Stuck.released


def test_a_server_that_is_gone_makes_no_pile(monkeypatch):
    Stuck.made, Stuck.released = 0, False
    clock = Clock()
    said = []
    dropping = Drop("/mnt", "n", said.append, Stuck, clock)
    monkeypatch.setattr(drop.time, "sleep", lambda _seconds: None)
    for _ in range(2000):
        dropping.write(b"{}")
        clock.now += 5
        dropping.sleep_until(clock.now)
    assert Stuck.made == drop.MOST_STUCK
    [told] = said
    assert told.startswith("/mnt/n.json cannot be written: the folder's file system does not answer")
    Stuck.released = True
    dropping.write(b"{}")
    assert Stuck.made == drop.MOST_STUCK + 1, "once they have ended it is tried again"


def test_a_write_that_hangs_holds_up_nobody(tmp_path):
    said = []
    clock = Clock()
    dropping = Drop(str(tmp_path), "n", said.append, clock=clock)
    hang = tmp_path / "hang"
    hang.touch()
    write = dropping._file.write

    def slow(data):
        while hang.exists():
            time.sleep(0.01)
        return write(data)

    dropping._file.write = slow
    try:
        began = time.monotonic()
        for number in range(6):
            dropping.write(b"%d" % number)
            dropping.sleep_until(clock.now)
            clock.now += 5
        assert time.monotonic() - began < 20
        assert said == []
        assert len(children(os.getpid())) >= 1
        dropping.sleep_until(clock.now)
        assert "does not answer" in said[0]
        hang.unlink()
        until(lambda: _written(dropping, clock) == b"last\n")
        assert said[1:] == [f"{tmp_path}/n.json is written"]
    finally:
        hang.unlink(missing_ok=True)
        dropping.close()
        until(lambda: all(child.gone() for child in dropping._stuck))


def _written(dropping, clock):
    dropping.write(b"last")
    dropping.sleep_until(clock() + 0.5)
    path = Path(dropping._file.path)
    return path.read_bytes() if path.exists() else None


def test_a_child_that_ends_is_told_of_and_replaced(tmp_path):
    said = []
    started = []

    def start(answer):
        started.append(Child(answer))
        return started[-1]

    dropping = Drop(str(tmp_path), "n", said.append, start)
    try:
        dropping.write(b"1")
        until(lambda: dropping.sleep_until(time.monotonic()) or said)
        assert (tmp_path / "n.json").read_bytes() == b"1\n"
        os.kill(started[0].pid, signal.SIGKILL)
        until(lambda: Path(f"/proc/{started[0].pid}/stat").read_text("ascii").split()[2] == "Z")
        dropping.write(b"2")
        dropping.sleep_until(time.monotonic())
        dropping.write(b"3")
        until(lambda: dropping.sleep_until(time.monotonic()) or len(said) == 3)
        assert (tmp_path / "n.json").read_bytes() == b"3\n"
        assert "the process that writes has ended" in said[1]
    finally:
        dropping.close()
        until(lambda: all(child.gone() for child in started))
