"""Real file systems and how full they are, from /proc/self/mountinfo, /sys/class/block and statvfs."""

import os
import re
from collections import namedtuple

from gpulse_probe.block_devices import BlockDevices
from gpulse_probe.network_mounts import NetworkMounts
from gpulse_probe.shortening import bounded

SLOW_SECONDS = 10.0
MOST_DISKS = 64
LARGEST_TABLE = 16 << 20

LOCAL = frozenset(
    (
        *("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "jfs", "bcachefs", "nilfs2", "reiserfs"),
        *("vfat", "exfat", "ntfs", "ntfs3", "fuseblk", "hfsplus", "ufs"),
    )
)
NETWORK = frozenset(
    (
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "gpfs", "beegfs", "ceph", "glusterfs", "wekafs", "panfs"),
        *("9p", "virtiofs", "afs", "orangefs", "pvfs2", "dvs", "cvfs", "ocfs2", "gfs2"),
    )
)
NETWORK_FUSE = frozenset(
    (
        *("sshfs", "s3fs", "juicefs", "mfs", "lizardfs", "glusterfs", "ceph", "ceph-fuse", "gcsfuse", "rclone"),
        *("goofys", "geesefs", "mount-s3", "mountpoint-s3", "seaweedfs", "alluxio", "alluxio-fuse", "blobfuse"),
        *("blobfuse2", "daos", "dfuse", "quobyte", "fuse_dfs", "davfs", "cpfs", "wekafs"),
    )
)

# Mounts made for containers: what is below these is shown where it belongs, or is nobody's own.
ENGINES = (
    *("/var/lib/docker/", "/var/lib/containerd/", "/var/lib/containers/", "/var/lib/kubelet/", "/var/lib/rancher/"),
    *("/run/docker/", "/run/containerd/", "/run/k3s/", "/run/netns/", "/snap/", "/var/snap/", "/var/lib/snapd/"),
)
FIRMWARE = ("/boot", "/efi")

Mount = namedtuple("Mount", "path number filesystem source")


class Disks:
    """`close()` ends the process that asks the network file systems, where one was needed."""

    name = "disks"

    def __init__(self, system):
        self._system = system
        self._network = NetworkMounts(system)
        self._read_at = None
        self._table = None
        self._disks = []
        self._remote = {}
        self._left_out = 0

    def collect(self, now, report):
        if self._read_at is None or now - self._read_at >= SLOW_SECONDS:
            self._read_at = now
            self._read_mounts()
            for path, disk in self._disks:
                if path not in self._remote:
                    set_space(disk, self._local_space(path))
        if self._remote or self._network.busy:
            self._network.collect(self._remote, now, report)
            for path, disk in self._disks:
                if path in self._remote:
                    set_space(disk, self._network.space(path))
        if self._left_out:
            report(f"{MOST_DISKS + self._left_out} file systems are mounted, {self._left_out} of them are not shown")
        # Copies: who keeps a snapshot must not see it change.
        return {"disks": [dict(disk) for _, disk in self._disks]}

    def close(self):
        self._network.close()

    def _read_mounts(self):
        table = self._read_table()
        if table == self._table:
            return
        self._table = table
        mounts = parse_mountinfo(table) or parse_mounts(table)
        remote = network_folders(mounts)
        chosen = choose(mounts, remote, self._is_file)
        self._left_out = max(0, len(chosen) - MOST_DISKS)
        if self._left_out:
            # Those nearest to the root are the ones people know; the homes an automounter made are not.
            chosen = sorted(chosen, key=lambda mount: (mount.path.count("/"), mount.path))[:MOST_DISKS]
        chosen.sort(key=lambda mount: mount.path)
        devices = BlockDevices(self._system)
        self._disks = [(mount.path, self._describe(mount, devices)) for mount in chosen]
        self._remote = {path: disk["device"] for path, disk in self._disks if (path + "/").startswith(remote)}

    def _read_table(self):
        try:
            return self._system.read_bytes("/proc/self/mountinfo", LARGEST_TABLE)
        except OSError:
            return self._system.read_bytes("/proc/mounts", LARGEST_TABLE)

    def _is_file(self, path):
        return self._system.exists(path) and not self._system.exists(path + "/.")

    def _describe(self, mount, devices):
        disk = {
            # People may mount what they like, wherever they like.
            "mount": bounded(readable(os.fsencode(mount.path))),
            "device": bounded(readable(os.fsencode(mount.source))),
            "filesystem": mount.filesystem,
        }
        kind = "network" if is_network(mount.filesystem) else devices.kind(mount.number, mount.source)
        if kind:
            disk["kind"] = kind
        return disk

    def _local_space(self, path):
        try:
            return self._system.space(path)
        except OSError:
            return None


def set_space(disk, space):
    """Write the sizes into the record, or take them out where they are not known."""
    if space is None or not space.total_bytes:
        for field in ("total_bytes", "used_bytes", "available_bytes"):
            disk.pop(field, None)
        return
    disk["total_bytes"] = space.total_bytes
    disk["used_bytes"] = max(0, space.total_bytes - space.free_bytes)
    disk["available_bytes"] = space.available_bytes


def parse_mountinfo(table):
    """The mounts of /proc/self/mountinfo, in its order."""
    mounts = []
    for line in table.split(b"\n"):
        place, dash, rest = line.partition(b" - ")
        fields, origin = place.split(b" "), rest.split(b" ")
        if dash and len(fields) >= 6 and len(origin) >= 2 and fields[4].startswith(b"/"):
            mounts.append(_mount(fields[4], fields[2], origin[0], origin[1]))
    return mounts


def parse_mounts(table):
    """The mounts of /proc/mounts, which does not tell the number of the device."""
    mounts = []
    for line in table.split(b"\n"):
        fields = line.split(b" ")
        if len(fields) >= 4 and fields[1].startswith(b"/"):
            mounts.append(_mount(fields[1], b"", fields[2], fields[0]))
    return mounts


def _mount(path, number, filesystem, source):
    return Mount(os.fsdecode(unescape(path)), readable(number), readable(filesystem), os.fsdecode(unescape(source)))


def unescape(name):
    r"""The kernel writes a blank, tab, newline, backslash and # in a name as \ and three octal digits."""
    if b"\\" not in name:
        return name
    return re.sub(rb"\\([0-3][0-7][0-7])", lambda found: bytes([int(found.group(1), 8)]), name)


def readable(raw):
    """Text that every reader of JSON takes, whatever bytes a name has."""
    return raw.decode("utf-8", "backslashreplace")


def network_folders(mounts):
    """The mount points of network file systems, each ending in a slash: whatever is below one may hang with it."""
    return tuple(mount.path.rstrip("/") + "/" for mount in mounts if is_network(mount.filesystem))


def choose(mounts, remote, is_file):
    """The real file systems, each once, at the shortest of its mount points."""
    # A later mount on the same point hides the earlier one.
    visible = {mount.path: mount for mount in mounts}
    best = {}
    for mount in visible.values():
        if not is_real(mount):
            continue
        # Containers get single files of the host mounted, such as /etc/hosts or the driver's libraries.
        if not (mount.path + "/").startswith(remote) and is_file(mount.path):
            continue
        known = best.get(identity(mount))
        if known is None or (len(mount.path), mount.path) < (len(known.path), known.path):
            best[identity(mount)] = mount
    root = visible.get("/")
    # In a container, the layers the root is made of are all there is.
    if not best and root is not None and root.filesystem == "overlay":
        return [root]
    return list(best.values())


def is_real(mount):
    if mount.path.startswith(ENGINES):
        return False
    if mount.filesystem == "vfat" and mount.path.startswith(FIRMWARE):
        return False
    return mount.filesystem in LOCAL or is_network(mount.filesystem)


def is_network(filesystem):
    family, dot, program = filesystem.partition(".")
    return filesystem in NETWORK or (family == "fuse" and dot != "" and program in NETWORK_FUSE)


def identity(mount):
    """What two mounts of one file system have in common.

    Exports of one server may share a device number and are still different folders to people, so a
    network file system goes by its source, where that says something ("none" does not).
    """
    if is_network(mount.filesystem) and ("/" in mount.source or ":" in mount.source):
        return mount.source
    return mount.number or mount.source
