"""Which processes are on a device, how much memory each holds, and how much of the card's time it takes."""

from ctypes import Structure, byref, c_uint, c_ulonglong

from gpulse_probe.nvidia import binding
from gpulse_probe.nvidia.library import NEVER, Refused
from gpulse_probe.nvidia.readings import UNKNOWN_64

_ProcessInfo = binding.c_nvmlProcessInfo_v2_t
_Sample = binding.c_nvmlProcessUtilizationSample_t


class _OldProcessInfo(Structure):
    """What drivers before 450 tell of a process."""

    _fields_ = (("pid", c_uint), ("usedGpuMemory", c_ulonglong))


_KINDS = (
    ("compute", "nvmlDeviceGetComputeRunningProcesses"),
    ("graphics", "nvmlDeviceGetGraphicsRunningProcesses"),
    ("mps", "nvmlDeviceGetMPSComputeRunningProcesses"),
)
# A share holds so long when no new sample comes: drivers take one or more a second while a process computes.
_SHARE_SECONDS = 2.0
_VERSIONS = (("_v3", _ProcessInfo), ("_v2", _ProcessInfo), ("", _OldProcessInfo))


class _List:
    """One of NVML's process lists for one device."""

    def __init__(self, kind, library, gpu, handle, name):
        self.kind = kind
        self._library = library
        self._gpu = gpu
        self._handle = handle
        self._name = name
        self._versions = list(_VERSIONS)
        self._use_version()

    def _use_version(self):
        suffix, self._structure = self._versions.pop(0)
        self._function = self._library.function(self._name + suffix, self._gpu)
        self._make_room(32)

    def _make_room(self, size):
        self._room = (self._structure * size)()
        self._count = c_uint(size)
        self._arguments = (self._handle, byref(self._count), self._room)

    def ask(self):
        """The processes as (pid, bytes or None)."""
        while True:
            self._count.value = len(self._room)
            try:
                self._function(*self._arguments)
            except Refused as refusal:
                if refusal.code == binding.NVML_ERROR_INSUFFICIENT_SIZE:
                    self._make_room(max(self._count.value, len(self._room)) * 2)
                    continue
                if refusal.code == binding.NVML_ERROR_FUNCTION_NOT_FOUND and self._versions:
                    self._use_version()
                    continue
                raise
            room = self._room
            found = []
            for index in range(self._count.value):
                info = room[index]
                memory = info.usedGpuMemory
                found.append((info.pid, None if memory == UNKNOWN_64 else memory))
            return found


class Running:
    """The processes of one device, as uses: dictionaries with pid, uuid, kinds, memory_bytes and sm_ratio."""

    def __init__(self, library, gpu, handle, shares):
        """`shares`: also ask how much of the card's time each process takes; MIG instances cannot tell."""
        self._library = library
        self._gpu = gpu
        self._handle = handle
        self._wants_shares = shares
        # Why the processes are unknown at this tick, as a Refused.
        self.failure = None
        self.ask_again()
        self._seen = 0
        self._shares = {}
        self._samples = (_Sample * 64)()

    def ask_again(self):
        """Ask from now on for everything, also for lists that were refused for good."""
        self._lists = [_List(kind, self._library, self._gpu, self._handle, name) for kind, name in _KINDS]
        shares = self._library.function("nvmlDeviceGetProcessUtilization", self._gpu)
        self._utilization = shares if self._wants_shares else None

    @property
    def listed(self):
        """Whether the driver lists those who compute on the device; a list of those who draw says nothing of them."""
        return any(listing.kind == "compute" for listing in self._lists)

    def ask(self, uuid, wall_time, refused):
        """The uses of the device of this UUID; refused(Refused) is called for each list that could not be had."""
        uses = {}
        self.failure = None
        for listing in tuple(self._lists):
            try:
                found = listing.ask()
            except Refused as refusal:
                if refusal.code in NEVER:
                    self._lists.remove(listing)
                elif listing.kind != "mps":
                    # The server of those who share a card by MPS is in the other lists.
                    self.failure = refusal
                refused(refusal)
                continue
            for pid, memory in found:
                use = uses.get(pid)
                if use is None:
                    use = uses[pid] = {"pid": pid, "uuid": uuid, "kinds": []}
                if listing.kind not in use["kinds"]:
                    use["kinds"].append(listing.kind)
                # The same memory stands in every list the process is in.
                if memory is not None and memory > use.get("memory_bytes", -1):
                    use["memory_bytes"] = memory
        if uses and self._utilization is not None:
            try:
                self._add_shares(uses, wall_time)
            except Refused as refusal:
                if refusal.code in NEVER:
                    self._utilization = None
                refused(refusal)
        return list(uses.values())

    def _add_shares(self, uses, wall_time):
        future = (wall_time + _SHARE_SECONDS) * 1000000
        if self._seen > future:
            # The clock was set back: by what is known, no new sample would ever come.
            self._seen = 0
        since = self._seen or int((wall_time - 1.0) * 1000000)
        count = c_uint(len(self._samples))
        while True:
            try:
                self._utilization(self._handle, self._samples, byref(count), c_ulonglong(since))
            except Refused as refusal:
                if refusal.code == binding.NVML_ERROR_INSUFFICIENT_SIZE and count.value > len(self._samples):
                    self._samples = (_Sample * (count.value * 2))()
                    count = c_uint(len(self._samples))
                    continue
                if refusal.code != binding.NVML_ERROR_NOT_FOUND:
                    raise
                # No sample since the last time: nobody computed, or it is too early for the next one.
                count.value = 0
            break
        newest = {pid: self._shares[pid] for pid in uses if pid in self._shares and self._shares[pid][0] <= future}
        for index in range(count.value):
            sample = self._samples[index]
            stamp = sample.timeStamp
            if stamp >= newest.get(sample.pid, (0, 0))[0]:
                newest[sample.pid] = (stamp, sample.smUtil)
            self._seen = max(self._seen, stamp)
        self._shares = newest
        oldest = (wall_time - _SHARE_SECONDS) * 1000000
        for pid, use in uses.items():
            stamp, percent = newest.get(pid, (0, 0))
            # Some drivers give nonsense for a process that just started.
            if percent <= 100:
                use["sm_ratio"] = percent / 100.0 if stamp > oldest else 0.0
