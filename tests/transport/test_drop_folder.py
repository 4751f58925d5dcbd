"""The hub's side of a drop folder, with a real fleet: files that are whole, half, old, gone, false or hanging."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.fleet.fleet import Fleet
from gpulse.fleet.places import Place
from gpulse.transport import drop, dropped, folder
from gpulse.transport.drop import DropFolder
from gpulse.transport.folder import Content
from gpulse.transport.in_thread import in_thread
from tests.fake_nvml import h100_node
from tests.fleet.lines import gpu, snapshot
from tests.patience import PATIENCE_SECONDS
from tests.probe.serving import SOURCES

GPUSTAT = {
    "hostname": "n1.example.org",
    "driver_version": "535.104.05",
    "query_time": "2026-11-15T12:00:00",
    "gpus": [
        {
            "index": 0,
            "uuid": "GPU-0",
            "name": "NVIDIA A100",
            "temperature.gpu": 40,
            "utilization.gpu": 7,
            "memory.used": 100,
            "memory.total": 40960,
            "processes": [],
        }
    ],
}


class Clock:
    now = 5000.0

    def __call__(self):
        return self.now


class Watched:
    """A folder, the fleet, and time that passes when the test says so."""

    def __init__(self, path: Path):
        self.path = path
        self.clock = Clock()
        self.wall = Clock()
        self.wall.now = time.time()
        self.fleet = Fleet(clock=self.clock, wall=self.wall)
        self.problems: list[str] = []
        self.taken: set[str] = set()
        self.folder = self.watch()

    def watch(self, **fields) -> DropFolder:
        return DropFolder(
            self.path,
            self.fleet,
            lambda name: name not in self.taken,
            self.problems.append,
            clock=self.clock,
            wall=self.wall,
            **fields,
        )

    def write(self, name: str, data: bytes | None = None, old: float = 0.0, **fields) -> Path:
        """As an agent does: whole, by renaming."""
        content = line(name, **fields) if data is None else data
        temporary = self.path / f".{name}.json.tmp"
        temporary.write_bytes(content)
        os.utime(temporary, (self.wall.now - old, self.wall.now - old))
        return temporary.rename(self.path / f"{name}.json")

    def after(self, seconds: float = 1.0) -> dict[str, str]:
        """The states of all nodes so much later, with a look at the folder every second."""
        while seconds > 0:
            step = min(1.0, seconds)
            seconds -= step
            self.clock.now += step
            self.wall.now += step
            asyncio.run(self.folder.look())
            self.fleet.tick()
        return {name: self.fleet.node(name).state for name in self.fleet.names()}

    def reason(self, name: str) -> str:
        return self.fleet.node(name).reason


def line(name: str, interval: float = 5.0, **fields) -> bytes:
    probe = {"version": "0.1.0", "python": "3.6.8", "interval_seconds": interval}
    return snapshot(gpu(), node=name, probe=probe, **fields)


@pytest.fixture
def watched(tmp_path):
    path = tmp_path / "folder"
    path.mkdir()
    return Watched(path)


# What is taken.


def test_files_become_nodes(watched):
    watched.write("n1")
    watched.write("n2.example.org")
    assert watched.after() == {"n1": "up", "n2.example.org": "up"}
    view = watched.fleet.node("n1")
    assert view.address == f"file {watched.path}/n1.json"
    assert len(view.gpus) == 1
    assert watched.problems == []


def test_only_what_changed_is_read(watched, monkeypatch):
    reads = []
    monkeypatch.setattr(
        dropped, "read", lambda path, names, read=dropped.read: reads.append(list(names)) or read(path, names)
    )
    watched.write("n1")
    watched.write("n2")
    watched.after(3)
    watched.write("n2", seq=1)
    watched.after(3)
    assert [sorted(names) for names in reads] == [["n1", "n2"], ["n2"]]


def test_values_follow_and_silence_makes_stale_then_down(watched):
    for second in range(4):
        watched.write("n1", seq=second)
        assert watched.after(5) == {"n1": "up"}
    assert watched.after(9) == {"n1": "up"}
    assert watched.after(3) == {"n1": "stale"}
    assert watched.after(43) == {"n1": "stale"}
    assert watched.after(3) == {"n1": "down"}
    assert watched.reason("n1") == (
        "its file n1.json has not changed for 61 s;"
        " see that `gpulse agent drop` runs on the node; if the node is no more, remove the file"
    )
    watched.write("n1", seq=9)
    assert watched.after() == {"n1": "up"}


def test_place_for_gives_group_and_rack(watched):
    watched.folder = watched.watch(place_for=lambda name: Place(name=name, group="pool", rack="r1"))
    watched.write("n1")
    watched.after()
    assert (watched.fleet.node("n1").group, watched.fleet.node("n1").rack) == ("pool", "r1")


def test_what_gpustat_prints(watched):
    watched.write("n1", json.dumps(GPUSTAT).encode())
    assert watched.after() == {"n1": "up"}
    assert watched.fleet.node("n1").gpus[0].temperature_celsius == 40
    assert watched.problems == []


@pytest.mark.parametrize("name", [".n1.json", "n1.json.tmp", "n1.json~", "n1.txt", ".json", "n\n1.json", "n1.JSON"])
def test_other_files_are_left_alone(watched, name):
    (watched.path / name).write_bytes(line("n1"))
    assert watched.after() == {}
    assert watched.problems == []


def test_names_that_are_no_text_are_left_alone(watched):
    os.close(os.open(os.fsencode(watched.path) + b"/\xff.json", os.O_WRONLY | os.O_CREAT))
    assert watched.after(15) == {}


# What is not.


def test_a_file_of_another_node_is_not_taken(watched):
    watched.write("n1", line("n2"))
    assert watched.after(20) == {}
    [told] = watched.problems
    assert told == (
        f"{watched.path}/n1.json: it is of the node 'n2', and a file must have its node's name:"
        " start its agent with --node n1, or let it write another file"
    )


def test_a_node_that_turns_into_another_keeps_what_it_was(watched):
    watched.write("n1")
    watched.after()
    for _ in range(15):
        watched.write("n1", line("n2"))
        watched.after(5)
    assert watched.after() == {"n1": "down"}
    assert "its file n1.json is not taken; it is of the node 'n2'" in watched.reason("n1")
    assert len(watched.problems) == 1


def test_who_is_read_in_another_way_is_not_taken(watched):
    watched.taken.add("n1")
    watched.fleet.place(Place(name="n1", address="ssh n1"))
    watched.write("n1")
    assert watched.after(3) == {"n1": "new"}
    assert watched.problems == [f"{watched.path}/n1.json: n1 is read in another way, so its file is not taken"]
    (watched.path / "n1.json").unlink()
    assert watched.after(3700) == {"n1": "new"}, "what becomes of the file does not matter to it"
    watched.taken.clear()
    watched.write("n1", seq=1)
    assert watched.after() == {"n1": "up"}


def test_a_node_that_another_way_takes_over(watched):
    watched.write("n1")
    watched.after()
    watched.taken.add("n1")
    watched.fleet.line("n1", line("n1", seq=100))
    (watched.path / "n1.json").unlink()
    for _ in range(4):
        watched.fleet.line("n1", line("n1", seq=101))
        assert watched.after(1) == {"n1": "up"}
    watched.fleet.remove("n1")
    watched.taken.clear()
    watched.write("n1", seq=2)
    assert watched.after() == {"n1": "up"}, "and gives it back"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"[]", "it is no snapshot: Expected `object`"),
        (b"{}", "it is neither a snapshot nor what gpustat --json prints"),
        (b'{"node": "n1"}', "it is no snapshot: a snapshot without seq or time"),
        (b'{"node": "n1", "seq": "x"}', "it is no snapshot: Expected `int | null`"),
        (b'{"node": 7}', "it is no snapshot: Expected `str | null`"),
        (b'{"a":' * 100000, "it is nested too deeply"),
        (b" " * (1 << 20) + b"{}", "it is larger than 1 MiB"),
        (b'{"node": "n1", "gpus": [' + b"{}," * 300000 + b"{}]}", "are not believed"),
        (json.dumps({"node": "n1", "schema": 99, "seq": 1, "time": 1.0}).encode(), "upgrade the hub"),
    ],
)
def test_what_is_no_snapshot_is_told_at_once_and_once(watched, data, words):
    watched.write("n1", data)
    watched.after(20)
    [told] = watched.problems
    assert told.startswith(f"{watched.path}/n1.json: ")
    assert words in told


def test_many_bad_files_do_not_flood(watched):
    for number in range(200):
        watched.write(f"n{number}", b"[]")
    watched.after(5)
    assert len(watched.problems) == drop.MOST_SENTENCES + 1
    assert watched.problems[-1] == f"195 more files in {watched.path} are not taken either"


def test_a_folder_has_room_for_so_many_nodes(watched, monkeypatch):
    monkeypatch.setattr(folder, "MOST_FILES", 3)
    monkeypatch.setattr(drop, "REMOVE_SECONDS", 30.0)
    for name in ("n7", "n8", "n9"):
        watched.write(name)
    assert set(watched.after()) == {"n7", "n8", "n9"}
    assert watched.problems == []
    for number in range(20):
        watched.write(f"m{number}")
    os.mkfifo(watched.path / "pipe.json")
    # Whoever was there first stays, in whatever order the files are found.
    for name in ("n9", "n8", "n7"):
        watched.write(name)
    assert watched.after(3) == {"n7": "up", "n8": "up", "n9": "up"}
    [told] = watched.problems
    assert told.startswith(f"the folder {watched.path} has 2")
    assert "files more than the 3 that are taken" in told
    (watched.path / "n8.json").unlink()
    watched.after(drop.REMOVE_SECONDS + 5)
    names = set(watched.fleet.names())
    assert (len(names), "n8" in names) == (3, False)


def test_pipes_links_and_folders_are_left_alone(watched, tmp_path):
    os.mkfifo(watched.path / "pipe.json")
    (watched.path / "folder.json").mkdir()
    (tmp_path / "elsewhere.json").write_bytes(line("link"))
    (watched.path / "link.json").symlink_to(tmp_path / "elsewhere.json")
    watched.write("n1")
    assert watched.after() == {"n1": "up"}
    # Should one come in between.
    assert folder.read(watched.path, ["pipe", "folder", "gone"]) == []
    [content] = folder.read(watched.path, ["link"])
    assert (content.data, content.passing) == (b"", True)


@given(
    st.one_of(st.binary(max_size=300), st.binary(max_size=50).map(lambda noise: line("n")[: 5 * len(noise)] + noise))
)
def test_any_bytes(data):
    one = dropped.parsed(Content("n", (1, 2, 3), 1.0, data))
    assert bool(one.line) != bool(one.trouble)


# Half-written files.


def test_a_file_that_is_copied_slowly(watched):
    """As scp and cp write: the file is there from the first byte on."""
    whole = line("n1")
    with (watched.path / "n1.json").open("wb", buffering=0) as file:
        for start in range(0, len(whole), 100):
            file.write(whole[start : start + 100])
            states = watched.after(1)
    assert states == {"n1": "up"}
    assert watched.problems == []
    with (watched.path / "n1.json").open("wb", buffering=0) as file:
        file.write(whole[:100])
        assert watched.after(2) == {"n1": "up"}, "what is known stays"
        file.write(whole[100:])
    assert watched.after(1) == {"n1": "up"}
    assert watched.problems == []


def test_a_file_completed_within_one_tick_of_a_coarse_clock(watched):
    """The same time, size and inode as when it was half new and half old."""
    whole = line("n1", seq=7)
    path = watched.path / "n1.json"
    path.write_bytes(whole[:-10] + b"\0" * 10)
    state = path.stat()
    assert watched.after(1) == {}
    with path.open("r+b") as file:
        file.write(whole)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert folder.scan(watched.path, (), ()).marks["n1"] == watched.folder._files["n1"].mark
    assert watched.after(1) == {"n1": "up"}


def test_what_stays_half_is_told_after_a_while(watched):
    (watched.path / "n1.json").write_bytes(line("n1")[:50])
    (watched.path / "n2.json").write_bytes(b"")
    watched.after(9)
    assert watched.problems == []
    watched.after(3)
    assert sorted(words.partition(".json: ")[2] for words in watched.problems) == [
        "it is not JSON: Input data was truncated",
        "it is not JSON: Input data was truncated",
    ]
    watched.after(60)
    assert len(watched.problems) == 2
    watched.write("n1")
    assert watched.after() == {"n1": "up"}


def test_a_file_that_may_not_be_read(watched, monkeypatch):
    watched.write("n1")

    def refuse(*_arguments):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(folder, "_open", refuse)
        watched.after(20)
        assert watched.problems == [f"{watched.path}/n1.json: it cannot be read: Permission denied"]
    assert watched.after() == {"n1": "stale"}, "it is as old as it is"
    watched.write("n1", seq=1)
    assert watched.after() == {"n1": "up"}


# Clocks.


@pytest.mark.parametrize("hours", [-30, -3, 3, 30])
def test_a_node_with_a_wrong_clock(watched, hours):
    for seq in range(5):
        watched.write("n1", seq=seq, time=watched.wall.now + 3600 * hours)
        states = watched.after(5)
    assert states == {"n1": "up"}
    assert watched.fleet.node("n1").age_seconds <= 5


@pytest.mark.parametrize("hours", [-3, 3])
def test_a_file_server_with_a_wrong_clock(watched, hours):
    watched.write("n1", old=3600 * hours)
    assert watched.after() == {"n1": "down" if hours > 0 else "up"}
    for seq in range(1, 4):
        watched.write("n1", seq=seq, old=3600 * hours)
        assert watched.after(5) == {"n1": "up"}, "the next change tells"
    assert watched.after(70) == {"n1": "down"}


def test_a_file_that_was_old_when_the_hub_came(watched):
    watched.write("n1", old=100000.0)
    watched.write("n2", old=20.0)
    watched.write("n3", old=2.0)
    assert watched.after() == {"n1": "down", "n2": "stale", "n3": "up"}
    assert "has not changed for 100001 s" in watched.reason("n1")


# Nodes come and go.


def test_a_file_that_is_removed(watched):
    watched.write("n1")
    watched.write("n2")
    watched.after()
    (watched.path / "n1.json").unlink()
    watched.after(1)
    assert watched.after(1)["n1"] == "down"
    assert watched.reason("n1") == f"its file is gone from {watched.path}"
    for seq in range(71):
        watched.write("n2", seq=seq)
        states = watched.after(50)
    assert "n1" in states
    assert set(watched.after(100)) == {"n2"}
    watched.write("n1")
    assert watched.after(1)["n1"] == "up"


def test_a_file_that_is_removed_and_made_anew_at_once(watched):
    """As by those who do not rename."""
    watched.write("n1")
    watched.after()
    (watched.path / "n1.json").unlink()
    assert watched.after() == {"n1": "up"}
    (watched.path / "n1.json").write_bytes(line("n1", seq=1))
    assert watched.after() == {"n1": "up"}
    assert "gone" not in str(watched.fleet.log_of("n1"))


def test_a_node_that_is_renamed(watched):
    watched.write("old")
    watched.after(5)
    for seq in range(20):
        watched.write("new", seq=seq)
        states = watched.after(5)
    assert states == {"old": "down", "new": "up"}
    (watched.path / "old.json").unlink()
    for seq in range(80):
        watched.write("new", seq=seq)
        states = watched.after(50)
    assert states == {"new": "up"}


def test_two_machines_with_one_name(watched):
    """The first one is kept, and people are told once."""
    for turn in range(20):
        watched.write("n1", boot_id="ab"[turn % 2], seq=turn, host={"hostname": "ab"[turn % 2]})
        watched.after(2.5)
        assert watched.fleet.node("n1", detail=True).host.hostname == "a"
    assert watched.problems == [
        f"{watched.path}/n1.json: two machines write it by turns; give one of them another name with --node n1-2"
    ]


def test_a_machine_that_was_rebooted(watched):
    watched.write("n1", boot_id="a")
    watched.after(30)
    watched.write("n1", boot_id="b", seq=0)
    assert watched.after() == {"n1": "up"}
    assert watched.problems == []


# How often.


def test_files_that_come_more_slowly_than_they_are_written(watched):
    """Written every 5 s on the node, copied by cron every minute."""
    for minute in range(8):
        watched.write("n1", seq=12 * minute)
        states = {watched.after(1)["n1"] for _ in range(60)}
    assert states == {"up"}
    assert 50 < watched.fleet.known("n1").place.interval_seconds < 70
    for seq in range(20):
        watched.write("n1", seq=seq)
        watched.after(5)
    assert watched.fleet.known("n1").place.interval_seconds == 5, "and faster again"


def test_an_outage_is_no_interval(watched):
    for seq in range(10):
        watched.write("n1", seq=seq)
        watched.after(5)
    watched.after(600)
    watched.write("n1", seq=11)
    watched.after(5)
    assert watched.fleet.known("n1").place.interval_seconds == 5


def test_gpustat_by_cron(watched):
    for _minute in range(5):
        watched.write("n1", json.dumps(GPUSTAT).encode())
        states = {watched.after(1)["n1"] for _ in range(60)}
        assert states == {"up"}


def test_a_file_that_is_overdue_is_opened(watched, monkeypatch):
    """A network file system may tell old marks for a minute, unless the file is opened."""
    watched.write("n1")
    watched.after(5)
    old = folder.scan(watched.path, (), ())
    real = folder.scan

    def cached(path, known, overdue):
        # What a client of NFS does: names from memory, but what is opened is true.
        now = real(path, known, overdue)
        opened = {name: mark for name, mark in now.marks.items() if name in overdue}
        return folder.Listing({**old.marks, **opened}, 0)

    monkeypatch.setattr(folder, "scan", cached)
    for seq in range(1, 30):
        watched.write("n1", seq=seq)
        assert watched.after(5) == {"n1": "up"}


def test_opening_tells_the_same_mark(watched):
    watched.write("n1")
    assert folder.scan(watched.path, (), ["n1", "n2"]) == folder.scan(watched.path, (), ())


# The folder itself.


def test_a_folder_that_is_not_there_and_comes(tmp_path):
    watched = Watched(tmp_path / "mount")
    assert watched.after(5) == {}
    assert watched.problems == [f"the folder {tmp_path}/mount cannot be read: No such file or directory"]
    (tmp_path / "mount").mkdir()
    watched.write("n1")
    assert watched.after() == {"n1": "up"}
    assert watched.problems[1:] == [f"the folder {tmp_path}/mount can be read again"]
    shutil.move(tmp_path / "mount", tmp_path / "away")
    assert watched.after(5) == {"n1": "up"}
    assert watched.after(15) == {"n1": "stale"}, "nothing is known of it, so it is not down"
    assert len(watched.problems) == 3


def test_a_folder_that_hangs(watched, monkeypatch):
    """A file server that is gone: nobody waits, people are told once, and the hub can still end."""
    release = threading.Event()
    watched.write("n1")
    watched.after()
    monkeypatch.setattr(drop, "HANG_SECONDS", 0.1)
    monkeypatch.setattr(drop, "EVERY_SECONDS", 0.1)
    monkeypatch.setattr(folder, "scan", lambda *given, scan=folder.scan: release.wait() and scan(*given))

    async def run():
        running = asyncio.create_task(watched.folder.run())
        async with asyncio.timeout(40):
            while not watched.problems:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.3)
            watched.clock.now += 16
            watched.fleet.tick()
            assert watched.fleet.node("n1").state == "stale"
            release.set()
            while len(watched.problems) < 2:
                await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(run())
    assert watched.problems == [
        f"the folder {watched.path} has not answered for 0.1 s; its nodes are as last told until it does",
        f"the folder {watched.path} can be read again",
    ]


def test_a_thread_that_hangs_keeps_nobody_from_ending():
    script = (
        "import asyncio, threading\n"
        "from gpulse.transport.in_thread import in_thread\n"
        "async def main():\n"
        "    late = asyncio.Event()\n"
        "    task = asyncio.create_task(in_thread(threading.Event().wait, 0.05, late.set))\n"
        "    await asyncio.wait_for(late.wait(), 20)\n"
        "    print('late', flush=True)\n"
        "    task.cancel()\n"
        "asyncio.run(main())\n"
        "print('ended')\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True
    )
    assert (ran.stdout, ran.stderr) == ("late\nended\n", "")


def test_what_fails_in_a_thread_is_raised():
    def work():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        asyncio.run(in_thread(work, 1.0, pytest.fail))


# All of it.


def test_real_agents_write_and_a_hub_reads(fake, tmp_path):
    fake.describe(h100_node(2, moving=True))
    path = tmp_path / "folder"
    path.mkdir()
    command = [sys.executable, "-m", "gpulse_probe", "drop", str(path), "--interval", "0.3", "--node"]
    environment = {**fake.environment(), "PYTHONPATH": str(SOURCES)}
    agents = [subprocess.Popen([*command, name], env=environment, stderr=subprocess.PIPE) for name in ("n1", "n2")]
    fleet = Fleet()
    problems: list[str] = []

    async def run():
        running = asyncio.create_task(DropFolder(path, fleet, lambda _name: True, problems.append).run())
        async with asyncio.timeout(PATIENCE_SECONDS):
            times = set()
            while len(times) < 4:
                await asyncio.sleep(0.1)
                fleet.tick()
                if fleet.names() == ["n1", "n2"] and len(fleet.gpus()) == 4:
                    times.add(fleet.known("n2").time)
                    assert fleet.node("n1").state in ("up", "stale")
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    try:
        asyncio.run(run())
    finally:
        for agent in agents:
            agent.terminate()
            agent.communicate()
    assert problems == []
    assert [agent.returncode for agent in agents] == [0, 0]


def test_others_have_their_turn_after_each_file(watched):
    """Sixty files of a megabyte each would hold everybody up for seconds."""
    for number in range(60):
        (watched.path / f"n{number}.json").write_bytes(snapshot(f"n{number}", [gpu(0)]))

    async def run():
        turns = 0

        async def others():
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(others())
        counted = []
        take = watched.folder._take
        watched.folder._take = lambda one: (counted.append(turns), take(one))
        await watched.folder.look()
        task.cancel()
        return counted

    counted = asyncio.run(run())
    assert len(counted) == len(set(counted)) == 60
