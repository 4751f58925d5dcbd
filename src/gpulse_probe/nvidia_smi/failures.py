"""What nvidia-smi says instead of an answer, for a whole command, a GPU or a field, and what to do about it."""

import re

LOST, RESET, BLOCKED = "GPU is lost", "GPU requires reset", "GPU access blocked by the operating system"
UNKNOWN_ERROR = "Unknown Error"
DENIED = "Insufficient Permissions"

_NEXT_STEP = {
    LOST: "it fell off the bus; look for its Xid in dmesg and reboot the node",
    RESET: 'run "nvidia-smi --gpu-reset" on the node when nobody uses the GPU, or reboot it',
    BLOCKED: "look in dmesg who blocks it",
    UNKNOWN_ERROR: "look for its Xid in dmesg; a reboot of the node may bring it back",
}

# Texts that mean one GPU is out of order, whichever field they stand in. "Unknown Error" is not among them: it
# may be the trouble of a single sensor.
_FAULTS = {fault.lower(): fault for fault in (LOST, RESET, BLOCKED)}
_ERRORS = (UNKNOWN_ERROR.lower(), "err!")
_TIMEOUT = "timeout"
# Words for what failed this time; others in place of a value say that there never is one.
ERRORS = frozenset(_FAULTS) | frozenset((*_ERRORS, _TIMEOUT))
# Without these nobody can say whether a GPU is in use.
ESSENTIAL = ("memory_used_bytes", "utilization_ratio")
NO_VALUE = (
    frozenset(_FAULTS)
    | frozenset(_ERRORS)
    | frozenset(
        (
            "",
            "n/a",
            "none",
            "unknown",
            "not found",
            "not supported",
            "not available",
            "function not found",
            _TIMEOUT,
            DENIED.lower(),
            "requested functionality has been deprecated",
        )
    )
)

_NO_GPU = ("no devices were found", "no supported gpus were found")

_HANDLE = re.compile(
    r"unable to determine the device handle for gpu ?([0-9a-f:.]{7,16}): ([a-z ]{1,60})", re.IGNORECASE
)
_LIBRARY = re.compile(r"nvml library version: ([0-9.]{1,20})")

# What the command says when it fails as a whole, in lower case, and how we say it. The first that is found counts.
_FAILURES = (
    (
        "driver/library version mismatch",
        "driver/library version mismatch: reload the NVIDIA kernel module or reboot the node",
    ),
    (
        "couldn't communicate with the nvidia driver",
        "the NVIDIA driver does not answer, its kernel module is not loaded or does not fit the kernel: "
        'run "modprobe nvidia" on the node or install the driver again',
    ),
    (
        "couldn't find libnvidia-ml.so",
        "libnvidia-ml.so was not found: install the NVIDIA driver's libraries, or give them to the container",
    ),
    (
        "mismatch in versions between nvidia-smi and nvml",
        "nvidia-smi and libnvidia-ml.so are of different versions: "
        "use those of one driver, and look for a foreign libnvidia-ml.so in LD_LIBRARY_PATH and LD_PRELOAD",
    ),
    (
        "failed to initialize nvml: unknown error",
        "NVML cannot be initialised (Unknown Error): "
        "a container that lost its /dev/nvidia* files must be restarted; else look for Xid in dmesg",
    ),
    (
        "failed to initialize nvml: insufficient permissions",
        "NVML cannot be initialised (Insufficient Permissions): this user may not open /dev/nvidia* on the node",
    ),
)


def plain(text):
    """The text without the brackets some drivers put around what is no value."""
    return text.strip("[]").lower()


def failure(text):
    """What output without a document means: whether it says that there is no GPU, and else a message."""
    said = " ".join(text[:65536].split())
    lower = said.lower()
    if any(known in lower for known in _NO_GPU):
        return True, None
    for known, message in _FAILURES:
        if known in lower:
            library = _LIBRARY.search(lower)
            return False, f"nvidia-smi: {message} (NVML {library.group(1)})" if library else f"nvidia-smi: {message}"
    handles = _handles(said)
    if handles:
        return False, "; ".join(handles) + "; nvidia-smi tells nothing of the other GPUs meanwhile"
    if not said:
        return False, "nvidia-smi printed nothing"
    return False, "nvidia-smi printed no document but: " + said[:200]


def warnings(text):
    """The messages among the lines around a document; others are not nvidia-smi's."""
    messages = _handles(" ".join(text[:65536].split()))
    for line in text[:65536].splitlines():
        start, _, warning = line.strip().partition(":")
        if start.lower() == "warning":
            messages.append("nvidia-smi: " + warning.strip()[:200])
    return messages[:32]


def _handles(said):
    messages = []
    for place, reason in _HANDLE.findall(said):
        known = _FAULTS.get(reason.strip().lower(), reason.strip())
        messages.append(f"GPU {place}: {known}: {_NEXT_STEP.get(known, 'look for its messages in dmesg')}")
    return messages


class Unread:
    """Collects why fields of a document's GPUs are missing, and tells it in few words."""

    def __init__(self):
        self.gpu = ""
        self._denied = set()
        self._fault = None
        self._errors = []
        self._messages = []
        # Fields of the record at hand that could not be read this time, each with the reason.
        self._failed = {}

    def begin(self, index, place):
        self.gpu = f"GPU {index} ({place[:16]})"
        self._fault = None
        self._errors = []
        self._failed = {}

    def note(self, field, text):
        text = plain(text)
        if text in _FAULTS:
            self._fault = self._fault or _FAULTS[text]
            self.fail(field, f"{_FAULTS[text]} from nvidia-smi")
        elif text in _ERRORS:
            self._errors.append(field)
            self.fail(field, f"{UNKNOWN_ERROR} from nvidia-smi")
        elif text == _TIMEOUT:
            self.fail(field, "Timeout from nvidia-smi")
        elif text == DENIED.lower():
            self._denied.add(field)
        elif text not in NO_VALUE and field in ESSENTIAL:
            self.fail(field, "no readable value from nvidia-smi")

    def fail(self, field, reason):
        self._failed.setdefault(field, reason)

    def put_failures(self, record):
        """Name in a record what could not be read of it, and why; the next record starts without failures."""
        failed = {field: reason for field, reason in self._failed.items() if field not in record}
        self._failed = {}
        if failed:
            record["failed_fields"] = sorted(failed)
            record["failed_reason"] = "; ".join(sorted(set(failed.values())))

    def note_process(self, field, text):
        """What ails a process is not the card's, so only missing permissions are told."""
        if plain(text) == DENIED.lower():
            self._denied.add("process " + field)

    def end(self, card, alive):
        """Sets the card's fault: an unknown error is the card's when nothing that changes can be read of it."""
        fault = self._fault or (UNKNOWN_ERROR if self._errors and not alive else None)
        if fault:
            card["fault"] = fault
            self._messages.append(f"{self.gpu}: {fault}: {_NEXT_STEP[fault]}")
        elif self._errors:
            self._messages.append(f"{self.gpu}: nvidia-smi cannot read {', '.join(self._errors)} (Unknown Error)")

    def reports(self):
        if not self._denied:
            return self._messages
        fields = ", ".join(sorted(self._denied))
        return [*self._messages, f"nvidia-smi may not read {fields} ({DENIED}): run it as a user who may"]
