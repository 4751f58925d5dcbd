"""Processes on GPUs, on recorded machines and with any bytes in any file."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse_probe.collectors.processes import Processes
from gpulse_probe.schema import RECORDS
from gpulse_probe.system import System
from tests.testdata import archive

RECORDED = Path(__file__).parent.parent / "recorded" / "processes"
FIELDS = {field.name for field in RECORDS["Process"]}


def use(pid: int, uuid: str = "GPU-a", **more: Any) -> dict[str, Any]:
    return {"pid": pid, "uuid": uuid, "kinds": ["compute"], **more}


def never(message: str) -> None:
    raise AssertionError(message)


def nothing(_path: str) -> bool:
    return False


class Spied(System):
    """A System that tells what was read, and can hide processes as hidepid does."""

    def __init__(self, root: str = "/", hidden: Callable[[str], bool] = nothing, exists: Any = "ask"):
        super().__init__(root)
        self.read: list[str] = []
        self.hidden = hidden
        self.exists_answer = exists

    def read_bytes(self, path: str, limit: int = 1 << 20) -> bytes:
        self.read.append(path)
        if self.hidden(path):
            raise PermissionError(1, "Operation not permitted", path)
        return super().read_bytes(path, limit)

    def process_exists(self, pid: int) -> Any:
        return super().process_exists(pid) if self.exists_answer == "ask" else self.exists_answer

    def owner(self, path: str) -> int:
        if self.hidden(path):
            raise FileNotFoundError(2, "No such file or directory", path)
        return super().owner(path)


def test_a_recorded_node_is_read_as_it_was() -> None:
    collector = Processes(System(str(RECORDED / "node")))
    uses = [use(pid, memory_bytes=pid * 1024) for pid in (9999, 4242, 5000, 6000, 7000)]
    collector.collect(0.0, never, uses)
    records = collector.collect(1.0, never, uses)
    assert records == json.loads((RECORDED / "node" / "expected.json").read_text())
    assert all(set(record) <= FIELDS for record in records)


def test_a_live_process_costs_one_file_a_tick_and_the_rest_every_30_seconds() -> None:
    system = Spied(str(RECORDED / "node"))
    collector = Processes(system)
    collector.collect(0.0, never, [use(4242), use(5000)])
    system.read.clear()
    for tick in range(1, 30):
        collector.collect(float(tick), never, [use(4242), use(5000)])
    assert sorted(set(system.read)) == ["/proc/4242/stat", "/proc/5000/stat"]
    assert len(system.read) == 2 * 29
    system.read.clear()
    collector.collect(40.0, never, [use(4242)])
    # The command line may hang and is not read again; the child is known and is not read again either.
    assert system.read == ["/proc/4242/stat", "/proc/4242/status", "/proc/4242/cgroup", "/proc/4242/task/4242/children"]


def test_what_may_hang_is_announced() -> None:
    marks: list[str] = []
    collector = Processes(System(str(RECORDED / "node")), marks.append)
    collector.collect(0.0, never, [use(4242), use(5000)])
    assert marks == ["looking up uid 1001", "reading /proc/4242/cmdline", "reading /proc/5000/cmdline"]
    marks.clear()
    collector.collect(100.0, never, [use(4242)])
    assert marks == []
    collector.collect(700.0, never, [use(4242)])
    assert marks == ["looking up uid 1001"]


def test_several_uses_of_a_process_are_one_record() -> None:
    uses = [
        use(4242, "GPU-a", memory_bytes=5, sm_ratio=0.5),
        use(4242, "GPU-b", memory_bytes=7),
        {"pid": 4242, "uuid": "GPU-a", "kinds": ["graphics"], "memory_bytes": 9},
        {"pid": 4242, "uuid": "GPU-b", "kinds": ["graphics"]},
    ]
    (record,) = Processes(System(str(RECORDED / "node"))).collect(0.0, never, uses)
    assert record["gpus"] == [
        {"uuid": "GPU-a", "kinds": ["compute", "graphics"], "memory_bytes": 9, "sm_ratio": 0.5},
        {"uuid": "GPU-b", "kinds": ["compute", "graphics"], "memory_bytes": 7},
    ]
    assert uses[0]["kinds"] == ["compute"]


def copied(folder: Path) -> Path:
    for source in (RECORDED / "node").rglob("*"):
        if source.is_file():
            target = folder / source.relative_to(RECORDED / "node")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    return folder


def remove(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    folder.rmdir()


def test_a_vanished_process_keeps_what_was_known_of_it(tmp_path: Path) -> None:
    root = copied(tmp_path)
    collector = Processes(System(str(root)))
    collector.collect(0.0, never, [use(4242)])
    remove(root / "proc" / "4242")
    (record,) = collector.collect(0.5, never, [use(4242, memory_bytes=3)])
    assert "vanished" not in record
    assert record["command"].startswith("python train.py")
    (record,) = collector.collect(1.0, never, [use(4242, memory_bytes=3)])
    assert record == {
        "pid": 4242,
        "user": "ada",
        "uid": 1001,
        "name": "pt_main_thread",
        "command": "python train.py '--run name' --wandb_key *** data.text_key=story \"it's\"",
        "start_time": 1700002500.5,
        "cgroup": "/system.slice/slurmstepd.scope/job_77/step_0/user/task_0",
        "vanished": True,
        "children": [4243],
        "gpus": [{"uuid": "GPU-a", "kinds": ["compute"], "memory_bytes": 3}],
    }
    # The child ends and its pid goes to another: that one is no child.
    stat = root / "proc" / "4243" / "stat"
    stat.write_bytes(b"4243 (other) S 1 4243 4243 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 777 0 0")
    stat.write_bytes(stat.read_bytes() + b" 0\n")
    assert "children" not in collector.collect(2.0, never, [use(4242)])[0]


def test_a_pid_given_to_another_process_is_a_new_process(tmp_path: Path) -> None:
    root = copied(tmp_path)
    collector = Processes(System(str(root)))
    assert collector.collect(0.0, never, [use(4242)])[0]["user"] == "ada"
    folder = root / "proc" / "4242"
    folder.joinpath("stat").write_bytes(folder.joinpath("stat").read_bytes().replace(b" 250050 ", b" 350050 "))
    folder.joinpath("status").write_text("Uid:\t0\t0\t0\t0\n")
    folder.joinpath("cmdline").write_bytes(b"other\0-x\0")
    (record,) = collector.collect(1.0, never, [use(4242)])
    assert (record["user"], record["command"], record["start_time"]) == ("root", "other -x", 1700003500.5)


def test_a_process_that_ended_after_an_old_listing_is_left_out(tmp_path: Path) -> None:
    root = copied(tmp_path)
    collector = Processes(System(str(root)))
    collector.collect(12.0, never, [use(4242)], listed_at=10.0)
    remove(root / "proc" / "4242")
    assert collector.collect(13.0, never, [use(4242)], listed_at=10.0) == []
    (record,) = collector.collect(15.0, never, [use(4242)], listed_at=15.0)
    assert "vanished" not in record


def test_vanished_is_what_the_driver_lists_again_after_it_was_found_gone(tmp_path: Path) -> None:
    """A process that ends while the driver is read is in its list, and gone when we look: it did not vanish."""
    root = copied(tmp_path)
    collector = Processes(System(str(root)))
    collector.collect(10.0, never, [use(4242)], listed_at=9.5)
    remove(root / "proc" / "4242")
    for now in (20.4, 21.0, 22.0):
        # The same list, looked at again and again.
        (record,) = collector.collect(now, never, [use(4242)], listed_at=20.0)
        assert "vanished" not in record
    (record,) = collector.collect(25.4, never, [use(4242)], listed_at=25.0)
    assert record["vanished"] is True


def test_the_processes_of_others_are_unknown_where_they_are_hidden() -> None:
    reports: list[str] = []
    system = Spied(str(RECORDED / "node"), lambda path: path.startswith(("/proc/4242", "/proc/6000")), exists=True)
    records = Processes(system).collect(0.0, reports.append, [use(4242, name="python"), use(6000), use(7000)])
    assert records[0] == {"pid": 4242, "name": "python", "gpus": [{"uuid": "GPU-a", "kinds": ["compute"]}]}
    assert records[1] == {"pid": 6000, "gpus": [{"uuid": "GPU-a", "kinds": ["compute"]}]}
    assert records[2]["user"] == "root"
    assert len(reports) == 1
    assert reports[0].startswith("2 processes of other users are hidden (/proc is mounted with hidepid)")


def test_hidepid_1_still_tells_whose_a_process_is() -> None:
    """Its files cannot be read, its folder can be seen."""
    reports: list[str] = []
    system = Spied(str(RECORDED / "node"), lambda path: path.startswith("/proc/4242/"), exists=True)
    (record,) = Processes(system).collect(0.0, reports.append, [use(4242)])
    owner = (RECORDED / "node" / "proc" / "4242").stat().st_uid
    assert (record["uid"], record["user"]) == (owner, System(str(RECORDED / "node")).user_name(owner) or str(owner))
    assert len(reports) == 1


def test_pids_of_another_namespace_are_unknown_but_not_vanished() -> None:
    reports: list[str] = []
    system = Spied(str(RECORDED / "node"), exists=None)
    records = Processes(system).collect(0.0, reports.append, [use(31337), use(0)])
    assert [set(record) for record in records] == [{"pid", "gpus"}, {"pid", "gpus"}]
    assert len(reports) == 1
    assert reports[0].startswith("2 processes are outside the probe's container")


def test_one_unreadable_file_costs_its_field_only() -> None:
    for file, lost in (("cgroup", {"cgroup"}), ("cmdline", {"command"}), ("status", set()), ("stat", {"start_time"})):
        path = "/proc/stat" if file == "stat" else "/proc/4242/" + file
        system = Spied(str(RECORDED / "node"), lambda read, path=path: read == path)
        whole = Processes(System(str(RECORDED / "node"))).collect(0.0, never, [use(4242)])[0]
        (record,) = Processes(system).collect(0.0, never, [use(4242)])
        assert set(whole) - set(record) == lost
    assert record["user"] == "ada"


def test_the_owner_of_the_folder_tells_the_user_where_the_status_does_not() -> None:
    system = Spied(str(RECORDED / "node"), lambda path: path.endswith("/status"))
    (record,) = Processes(system).collect(0.0, never, [use(4242)])
    assert record["uid"] == (RECORDED / "node" / "proc" / "4242").stat().st_uid


def test_processes_that_are_gone_are_forgotten() -> None:
    collector = Processes(System(str(RECORDED / "node")))
    for tick in range(3000):
        collector.collect(float(tick), never, [use(10000 + tick)])
    assert len(collector._known) <= 61


def test_a_process_of_another_machine(tmp_path: Path) -> None:
    proc = archive("prometheus+procfs/proc_pids.ttar", tmp_path) / "fixtures" / "proc"
    (proc / "stat").write_text("btime 1418183276\n")
    (record,) = Processes(System(str(tmp_path / "fixtures"))).collect(0.0, never, [use(26231)])
    assert record["cpu_seconds_total"] == pytest.approx((1677 + 44) / 100)
    assert record["memory_bytes"] == 1981 * 4096
    assert record["start_time"] == pytest.approx(1418183276 + 823.75)
    assert (record["user"], record["command"], record["parent_pid"]) == ("1000", "vim test.go +10", 5392)


ANY = st.binary(max_size=200)


STAT = (RECORDED / "node" / "proc" / "4242" / "stat").read_bytes()


@given(stat=st.one_of(st.just(STAT), ANY), status=ANY, cmdline=ANY, cgroup=ANY, children=ANY)
def test_any_bytes_in_any_file_make_a_record(**files: bytes) -> None:
    class Written(System):
        def read_bytes(self, path: str, limit: int = 1 << 20) -> bytes:
            return files[path.rsplit("/", 1)[1]][:limit]

        def owner(self, path: str) -> int:
            raise FileNotFoundError(path)

        def user_name(self, uid: int) -> str | None:
            return str(uid) + "\udcff"

    (record,) = Processes(Written(), None).collect(0.0, str, [use(7, name="\udcff\n")])
    assert record["pid"] == 7
    assert set(record) <= FIELDS
    json.dumps(record, ensure_ascii=False).encode("utf-8")


def test_what_hung_before_is_left_alone():
    """A process whose memory map is locked must not hang every child that comes after the first."""
    collector = Processes(System(str(RECORDED / "node")), lambda _text: False)
    (record,) = collector.collect(0.0, print, [{"pid": 4242, "uuid": "GPU-1", "kinds": ["compute"]}])
    assert "command" not in record
    assert record["user"] == str(record["uid"])
