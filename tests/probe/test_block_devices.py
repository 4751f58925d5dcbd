import pytest

from gpulse_probe.block_devices import BlockDevices
from gpulse_probe.system import System
from tests.recorded import machine


def write_disk(root, name, rotational):
    folder = root / "sys/class/block" / name / "queue"
    folder.mkdir(parents=True)
    (folder / "rotational").write_text(f"{rotational}\n")


@pytest.mark.parametrize(
    ("name", "rotational", "kind"),
    [
        ("sda", 1, "hdd"),
        ("sda", 0, "ssd"),
        ("nvme0n1", 0, "nvme"),
        ("vda", 1, None),
        ("vda", 0, "ssd"),
        ("rbd0", 0, "network"),
        ("loop0", 1, None),
    ],
)
def test_disks(tmp_path, name, rotational, kind):
    write_disk(tmp_path, name, rotational)
    assert BlockDevices(System(str(tmp_path))).kind("", "/dev/" + name) == kind


def test_the_slowest_of_several_counts(tmp_path):
    for name, rotational in (("md0", 0), ("sda", 1), ("nvme0n1", 0)):
        write_disk(tmp_path, name, rotational)
    for part in ("sda", "nvme0n1"):
        (tmp_path / "sys/class/block/md0/slaves" / part).mkdir(parents=True)
    devices = BlockDevices(System(str(tmp_path)))
    assert devices.kind("", "/dev/md0") == "hdd"
    assert devices.kind("", "/dev/nvme0n1") == "nvme"


def test_all_devices_of_a_btrfs_count(tmp_path):
    write_disk(tmp_path, "nvme0n1", 0)
    write_disk(tmp_path, "sda", 1)
    for part in ("sda", "nvme0n1"):
        (tmp_path / "sys/fs/btrfs/1234/devices" / part).mkdir(parents=True)
    assert BlockDevices(System(str(tmp_path))).kind("0:33", "/dev/nvme0n1") == "hdd"


def test_a_loop_among_mapped_devices_ends(tmp_path):
    (tmp_path / "sys/class/block/dm-0/slaves/dm-0").mkdir(parents=True)
    assert BlockDevices(System(str(tmp_path))).kind("", "/dev/dm-0") is None


def test_what_is_no_block_device():
    devices = BlockDevices(machine("epyc8"))
    assert devices.kind("", "tank/data") is None
    assert devices.kind("0:44", "/dev/mapper/none") is None
    assert devices.kind("", "") is None


def test_by_number_where_the_path_says_nothing():
    assert BlockDevices(machine("workstation")).kind("8:1", "/dev/root") == "hdd"
