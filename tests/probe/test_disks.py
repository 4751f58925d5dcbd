import json
import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse_probe.collectors.disks import Disks, choose, network_folders, parse_mountinfo, parse_mounts, unescape
from gpulse_probe.system import System
from gpulse_probe.tick import Tick
from tests.conform import conforms
from tests.patience import PATIENCE_SECONDS
from tests.recorded import MACHINES, expected, machine

NETWORK_LINE = "50 1 0:{} / {} rw - nfs4 nas:{} rw\n"


@pytest.fixture
def disks_of():
    """Collectors whose children are ended with the test."""
    made = []

    def make(system):
        made.append(Disks(system))
        return made[-1]

    yield make
    for disks in made:
        disks.close()


def settled(disks, now, wanted):
    """Collect until all of `wanted` have sizes: a network file system is asked when the one before has answered."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        reports = []
        collected = disks.collect(now, reports.append)
        sized = {disk["mount"] for disk in collected["disks"] if "total_bytes" in disk}
        if wanted <= sized or time.monotonic() > deadline:
            return collected, reports
        time.sleep(0.01)


@pytest.mark.parametrize("name", MACHINES)
def test_recorded_machines(name, disks_of):
    wanted = expected(name, "disks")
    sized = {disk["mount"] for disk in wanted["disks"] if "total_bytes" in disk}
    collected, reports = settled(disks_of(machine(name)), 0.0, sized)
    assert collected == wanted
    assert conforms("Host", collected) == []
    assert reports == (["file system /proj (JuiceFS:proj): No such file or directory"] if name == "grace" else [])


def test_this_machine(disks_of):
    collected = disks_of(System()).collect(0.0, pytest.fail)
    assert conforms("Host", collected) == []
    assert json.loads(json.dumps(collected)) == collected
    for disk in collected["disks"]:
        if "total_bytes" in disk and disk.get("kind") != "network":
            answer = os.statvfs(disk["mount"])
            assert disk["total_bytes"] == answer.f_blocks * answer.f_frsize
            assert 0 <= disk["used_bytes"] <= disk["total_bytes"]


def write_machine(root, mountinfo, space=""):
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/mountinfo").write_text(mountinfo)
    (root / "statvfs").write_text(space)
    return System(str(root))


def never(_path):
    return False


def mounts_of(lines):
    mounts = parse_mountinfo(lines.encode())
    return sorted(mount.path for mount in choose(mounts, network_folders(mounts), never))


@pytest.mark.parametrize(
    ("lines", "paths"),
    [
        ("1 0 8:1 / / rw - ext4 /dev/root rw\n2 1 8:1 /srv /data rw - ext4 /dev/sda1 rw\n", ["/"]),
        ("1 0 8:1 / /data rw - ext4 /dev/sda1 rw\n2 1 0:9 / /data rw - tmpfs none rw\n", []),
        ("1 0 0:9 / /data rw - tmpfs none rw\n2 1 8:1 / /data rw - ext4 /dev/sda1 rw\n", ["/data"]),
        ("1 0 8:1 / /boot/efi rw - vfat /dev/sda1 rw\n2 1 8:2 / /stick rw - vfat /dev/sda2 rw\n", ["/stick"]),
        ("1 0 8:1 / /var/lib/docker rw - xfs /dev/sda1 rw\n", ["/var/lib/docker"]),
        ("1 0 8:1 / /var/lib/docker/volumes/x rw - xfs /dev/sda1 rw\n", []),
        ("1 0 0:4 / /a rw - nfs nas:/a rw\n2 0 0:4 / /b rw - nfs nas:/b rw\n", ["/a", "/b"]),
        ("1 0 0:4 / /a rw - nfs nas:/a rw\n2 0 0:5 / /longer rw - nfs nas:/a rw\n", ["/a"]),
        ("1 0 0:4 / / rw - 9p none rw\n2 0 0:5 / /x rw - 9p none rw\n", ["/", "/x"]),
        (
            "1 0 0:4 / /s rw shared:1 master:2 - fuse.sshfs me@there:/ rw\n2 0 0:5 / /p rw - fuse.lxcfs lxcfs rw\n",
            ["/s"],
        ),
        ("1 0 0:4 / / rw - overlay overlay rw\n2 1 8:1 /d /data rw - ext4 /dev/sda1 rw\n", ["/data"]),
        ("1 0 0:4 / / rw - overlay overlay rw\n2 1 0:5 / /proc rw - proc proc rw\n", ["/"]),
        ("1 0 0:4 / / rw - tmpfs rootfs rw\n", []),
    ],
)
def test_choice(lines, paths):
    assert mounts_of(lines) == paths


def test_proc_mounts_is_read_where_there_is_no_mountinfo(tmp_path, disks_of):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/mounts").write_text(
        "/dev/sda1 / ext4 rw 0 0\nproc /proc proc rw 0 0\n/dev/sda1 /again ext4 rw 0 0\n"
    )
    assert disks_of(System(str(tmp_path))).collect(0.0, pytest.fail)["disks"] == [
        {"mount": "/", "device": "/dev/sda1", "filesystem": "ext4"}
    ]


def test_no_mount_table_is_a_failure(tmp_path, disks_of):
    with pytest.raises(OSError, match="mounts"):
        disks_of(System(str(tmp_path))).collect(0.0, pytest.fail)


def test_more_than_can_be_shown(tmp_path, disks_of):
    lines = "".join(f"{n} 1 8:{n} / /home/user{n:02} rw - ext4 /dev/sd{n} rw\n" for n in range(70))
    system = write_machine(tmp_path, lines + "99 1 8:99 / /z rw - ext4 /dev/sdz rw\n")
    reports = []
    disks = disks_of(system).collect(0.0, reports.append)["disks"]
    assert [disk["mount"] for disk in disks] == [f"/home/user{n:02}" for n in range(63)] + ["/z"]
    assert reports == ["71 file systems are mounted, 7 of them are not shown"]


def test_paths_as_long_as_the_kernel_allows(tmp_path, disks_of):
    """Anybody may mount such with FUSE; together they must not make the snapshot larger than a hub takes."""
    wide = "\U0001f525"
    lines = [f"{n} 1 0:{n} / /{n:02}{wide * 1000} rw - fuse.sshfs {'s' * 4000} rw\n" for n in range(64)]
    tick = Tick()
    disks = tick.run("disks", disks_of(write_machine(tmp_path, "".join(lines))).collect, 0.0)["disks"]
    assert len(disks) == 64
    assert disks[0]["mount"] == "/00" + wide * 77 + "…"
    assert disks[0]["device"] == "s" * 1000 + "…"
    assert len(json.dumps([disks, tick.reports])) < 220_000


def test_sizes_are_read_every_ten_seconds(tmp_path, disks_of):
    system = write_machine(tmp_path, "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n", "1000 600 500 /\n")
    disks = disks_of(system)
    first = disks.collect(0.0, pytest.fail)["disks"][0]
    assert (first["total_bytes"], first["used_bytes"], first["available_bytes"]) == (1000, 400, 500)
    (tmp_path / "statvfs").write_text("1000 100 50 /\n")
    assert disks.collect(9.9, pytest.fail)["disks"][0]["used_bytes"] == 400
    assert disks.collect(10.0, pytest.fail)["disks"][0]["used_bytes"] == 900
    assert first["used_bytes"] == 400, "a record given away must not change"
    (tmp_path / "statvfs").unlink()
    assert "used_bytes" not in disks.collect(20.0, pytest.fail)["disks"][0]


def test_a_mount_that_comes_and_one_that_goes(tmp_path, disks_of):
    system = write_machine(tmp_path, NETWORK_LINE.format(1, "/a", "/a"), "10 5 5 /a\n20 5 5 /b\n")
    disks = disks_of(system)
    collected, _ = settled(disks, 0.0, {"/a"})
    assert [disk["mount"] for disk in collected["disks"]] == ["/a"]
    (tmp_path / "proc/self/mountinfo").write_text(NETWORK_LINE.format(2, "/b", "/b"))
    collected, reports = settled(disks, 10.0, {"/b"})
    assert [(disk["mount"], disk["total_bytes"]) for disk in collected["disks"]] == [("/b", 20)]
    assert reports == []


def test_the_table_is_read_to_its_end_though_the_kernel_gives_it_in_pieces(tmp_path, disks_of, monkeypatch):
    lines = "".join(f"{n} 1 8:{n} / /disk{n:02} rw - ext4 /dev/sd{n} rw\n" for n in range(60))
    system = write_machine(tmp_path, lines)
    read = os.read
    monkeypatch.setattr(os, "read", lambda descriptor, size: read(descriptor, min(size, 100)))
    disks = disks_of(system).collect(0.0, pytest.fail)["disks"]
    assert [disk["mount"] for disk in disks] == [f"/disk{n:02}" for n in range(60)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (rb"a\040b", b"a b"),
        (rb"\134040", rb"\040"),
        (rb"a\011\012", b"a\t\n"),
        (rb"\9\777\0", rb"\9\777\0"),
        (b"\\", b"\\"),
    ],
)
def test_escapes(name, text):
    assert unescape(name) == text


def test_a_name_of_any_bytes_reaches_the_kernel_as_it_is(tmp_path, disks_of):
    asked = []

    class Asked(System):
        def space(self, path):
            asked.append(os.fsencode(path))
            raise OSError

    write_machine(tmp_path, "")
    (tmp_path / "proc/self/mountinfo").write_bytes(b"1 0 8:1 / /m\xff\\040x rw - ext4 /dev/sda1 rw\n")
    (disk,) = disks_of(Asked(str(tmp_path))).collect(0.0, pytest.fail)["disks"]
    assert asked == [b"/m\xff x"]
    assert disk["mount"] == "/m\\xff x"


FIELDS = st.one_of(
    st.binary(max_size=8), st.sampled_from([b"/", b"/data", b"-", b"ext4", b"nfs", b"overlay", b"8:1", b"\\040"])
)


@given(st.one_of(st.binary(), st.lists(st.lists(FIELDS).map(b" ".join)).map(b"\n".join)))
def test_any_bytes(table):
    for parse in (parse_mountinfo, parse_mounts):
        mounts = parse(table)
        chosen = choose(mounts, network_folders(mounts), never)
        assert len({mount.path for mount in chosen}) == len(chosen)
        assert set(chosen) <= set(mounts)
