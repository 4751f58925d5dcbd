"""What kind of disk a file system lies on, from /sys/class/block: through partitions, LVM, LUKS and RAID."""

BLOCK = "/sys/class/block"
# The slowest part is what is felt, so it comes first.
KINDS = ("network", "hdd", "ssd", "nvme")
# Layers of mapped devices are few; a loop among them can only be a damaged recording.
DEEPEST = 8

BY_NAME = (
    ("nvme", "nvme"),
    (("rbd", "nbd", "drbd"), "network"),
    (("loop", "ram", "zram"), None),
)


class BlockDevices:
    """A look at the machine's block devices: the names of mapped ones are read once."""

    def __init__(self, system):
        self._system = system
        self._mapped = None

    def kind(self, number, source):
        """nvme, ssd, hdd or network of a device by its number ("8:1") or path; None where the kernel does not say."""
        name = self._name(number, source)
        if name is None:
            return None
        return self._slowest([self._kind(part, DEEPEST) for part in self._members(name)])

    def _name(self, number, source):
        """The kernel's name of the device: a path in /dev may be a link, or missing in a container."""
        # File systems of several devices (btrfs) have a number of their own, with a major of 0.
        if number and not number.startswith("0:"):
            link = self._system.link("/sys/dev/block/" + number)
            if link:
                return link.rpartition("/")[2]
        # bcachefs names all its devices with colons between them.
        path = source.partition(":")[0]
        if not path.startswith("/dev/"):
            return None
        for candidate in (path, self._system.real_path(path)):
            name = candidate.rpartition("/")[2]
            if self._system.exists(f"{BLOCK}/{name}"):
                return name
        return self._mapped_names().get(path.rpartition("/")[2])

    def _mapped_names(self):
        if self._mapped is None:
            devices = [device for device in self._system.names(BLOCK) if device.startswith("dm-")]
            self._mapped = {self._system.read_line(f"{BLOCK}/{device}/dm/name"): device for device in devices}
        return self._mapped

    def _members(self, name):
        """All devices of the btrfs file system the device belongs to, else the device alone."""
        for identity in self._system.names("/sys/fs/btrfs"):
            devices = self._system.names(f"/sys/fs/btrfs/{identity}/devices")
            if name in devices:
                return devices
        return [name]

    def _kind(self, name, depth):
        for beginning, kind in BY_NAME:
            if name.startswith(beginning):
                return kind
        folder = f"{BLOCK}/{name}"
        parts = self._system.names(folder + "/slaves")
        if not parts and self._system.exists(folder + "/partition"):
            parts = [self._system.real_path(folder).split("/")[-2]]
        if parts:
            return self._slowest([self._kind(part, depth - 1) for part in parts]) if depth else None
        rotational = self._system.read_line(folder + "/queue/rotational")
        # A virtual disk counts as rotating unless its maker says otherwise, which hardly any does.
        if rotational == "1" and name.startswith(("vd", "xvd")):
            return None
        return {"0": "ssd", "1": "hdd"}.get(rotational)

    def _slowest(self, kinds):
        return next((kind for kind in KINDS if kind in kinds), None)
