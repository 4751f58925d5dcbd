"""What the device child does: GPUs by NVML or nvidia-smi, then the processes on them.

The answer is JSON made ready for the wire, so that the parent need not take it apart and put it together again.
"""

import json
import os

from gpulse_probe.known_processes import processes_known
from gpulse_probe.tick import Tick

_TRY_NVML_AGAIN_SECONDS = 60.0
# A driver that was there is mostly reloaded, and soon.
_RELOAD_SECONDS = 3.0
_RELOADED_WITHIN_SECONDS = 120.0
_DRIVER_VERSION = "/proc/driver/nvidia/version"
_PCI_DISPLAY_CLASS = "0x03"
_PCI_NVIDIA = "0x10de"
_NOTHING_TO_READ_WITH = "there is an NVIDIA GPU but nothing to read it with: install "
_NO_BINDING = _NOTHING_TO_READ_WITH + "the Python package nvidia-ml-py, or the nvidia-smi of the NVIDIA driver"
_NO_LIBRARY = _NOTHING_TO_READ_WITH + "the NVIDIA driver (libnvidia-ml.so.1, nvidia-smi), or give it to the container"

encode = json.JSONEncoder(separators=(",", ":")).encode


class Devices:
    def __init__(self, system, page, parent_pid=None, hung_cards=None):
        """hung_cards: cards that are not touched while requests name them, {index: hangs.Hang}."""
        # Loaded in the child, so that the parent does not hold it too.
        from gpulse_probe.collectors.processes import Processes

        self._system = system
        self._page = page
        self._parent_pid = os.getppid() if parent_pid is None else parent_pid
        self._processes = Processes(system, mark=self._note)
        self._hung_before = frozenset()
        self._hung_cards = {} if hung_cards is None else hung_cards
        self._events = {}
        self._nvml = None
        self._nvml_due = 0.0
        # Why NVML is not used: a text; "" where there is simply nothing to monitor; None where it is.
        self._why_not_nvml = None
        self._no_driver = False
        self._had_nvml = False
        self._driver = None
        self._reload_until = None
        self._missing = None
        self._smi = None
        self._card_looked_for = None
        self._has_card = False
        self._columns = None
        self._restart = False

    def answer(self, request=b""):
        """One sample as five lines of JSON: head, gpus, processes, reports, collectors.

        The request is a dictionary as JSON: hung (what earlier children hung in), hung_cards (the cards they hung in),
        had_nvml (they read GPUs by NVML), xid_events (what they learnt of), updates (columns of what changed will do)
        and full (they will not, this time); all may be missing.
        The head has gpu_source, age_seconds (of the GPU data), restart (the child wants to be replaced), xid_events
        and update: then the second line has columns instead of gpus, and the third has nothing.
        """
        wanted = json.loads(request.decode("ascii")) if request else {}
        self._hung_before = frozenset(wanted.get("hung", ()))
        self._had_nvml = wanted.get("had_nvml", False)
        self._release_cards(wanted.get("hung_cards", ()))
        self._events = wanted.get("xid_events") or self._events
        tick = Tick()
        head = {}
        records, processes = self._collect(tick, head)
        if self._restart:
            head["restart"] = True
        if self._nvml is not None:
            self._events = self._nvml.xid_events()
        if self._events:
            head["xid_events"] = self._events
        if wanted.get("updates"):
            columns = self._changes(head.get("gpu_source"), records, processes, wanted.get("full"))
            if columns is not None:
                head["update"] = True
                records, processes = columns, None
        lines = (head, records, processes, tick.reports, tick.collectors)
        return "\n".join(map(encode, lines)).encode("ascii")

    def _collect(self, tick, head):
        """The GPUs and their processes, each None where they are unknown."""
        now = self._system.monotonic()
        if self._nvml is None:
            self._try_nvml(now)
        if self._nvml is not None:
            found = tick.run("nvidia_nvml", self._collect_nvml, now)
            head["gpu_source"] = "nvml"
        else:
            found = tick.run("nvidia_smi", self._collect_smi, now, head)
        if found is None and tick.reports:
            return None, None
        records, uses = found or ([], [])
        if not processes_known(records, uses):
            return records, None
        listed_at = now - head.get("age_seconds", 0.0)
        return records, tick.run("processes", self._collect_processes, uses, listed_at)

    def _try_nvml(self, now):
        """Start NVML where it is time to, or where the driver is another one than it was."""
        driver = self._system.read_line(_DRIVER_VERSION)
        if now < self._nvml_due and driver == self._driver:
            return
        tried, self._driver = self._reload_until is not None, driver
        if not tried:
            self._reload_until = now + _RELOADED_WITHIN_SECONDS
        if not self._why_not_nvml or self._no_driver:
            self._why_not_nvml = self._start_nvml()
        if self._why_not_nvml and not self._no_driver and tried:
            # A library once loaded never becomes the one of a newer driver: another process has to try.
            self._restart = True
        soon = self._had_nvml and self._no_driver and now < self._reload_until
        self._nvml_due = now + (_RELOAD_SECONDS if soon else _TRY_NVML_AGAIN_SECONDS)

    def _release_cards(self, hung):
        """Read cards again that do not hang any more."""
        for index in [index for index in self._hung_cards if index not in hung]:
            if self._nvml is not None:
                self._nvml.release(index)
            else:
                del self._hung_cards[index]

    def _changes(self, source, records, processes, full):
        if self._columns is None:
            from gpulse_probe.columns import Columns

            self._columns = Columns()
        return self._columns.changes(source, records, processes, full)

    def _note(self, text):
        """Note what is about to be done; False where an earlier child hung in it."""
        self._page.note(text)
        return text not in self._hung_before

    def _start_nvml(self):
        """Try NVML; why it cannot be used, as a text, "" where there is simply none."""
        self._missing = None
        self._no_driver = False
        try:
            from gpulse_probe.collectors.nvidia_nvml import NvidiaNvml
            from gpulse_probe.nvidia.library import NO_DRIVER, NO_LIBRARY, Refused
        except ModuleNotFoundError as error:
            if error.name != "pynvml":
                raise
            self._missing = _NO_BINDING
            return ""
        except ImportError as error:
            return str(error)
        # NVML has loaded ctypes anyway. A child stuck in the driver must not outlive a probe that was killed.
        from gpulse_probe.parent_death import end_with

        end_with(self._parent_pid)
        try:
            self._nvml = NvidiaNvml(self._system, self._page, self._events, self._hung_cards)
        except Refused as refusal:
            if refusal.code == NO_LIBRARY:
                self._missing = _NO_LIBRARY
                return ""
            self._no_driver = refusal.code == NO_DRIVER
            if self._no_driver and not self._had_nvml and not self._has_nvidia_card():
                return ""
            return "%s; reload the NVIDIA driver or reboot the node" % refusal.text
        return None

    def _has_nvidia_card(self):
        if self._system.exists("/proc/driver/nvidia"):
            return True
        folder = "/sys/bus/pci/devices/"
        return any(
            (self._system.read_line(folder + place + "/class") or "").startswith(_PCI_DISPLAY_CLASS)
            for place in self._system.names(folder)
            if self._system.read_line(folder + place + "/vendor") == _PCI_NVIDIA
        )

    def _collect_nvml(self, now, report):
        from gpulse_probe.nvidia.library import Refused

        try:
            return self._nvml.collect(now, report)
        except Refused:
            self._restart = True
            raise

    def _collect_smi(self, now, head, report):
        if self._smi is None:
            # The XML parser is loaded on the few nodes that need it only.
            from gpulse_probe.collectors.nvidia_smi import NvidiaSmi

            self._smi = NvidiaSmi(self._system, self._page)
        self._page.note("nvidia-smi")
        if self._why_not_nvml:
            report("NVML: %s" % self._why_not_nvml)
        reading = self._smi.collect(now, report)
        if reading is None and self._missing:
            if self._card_looked_for != self._nvml_due:
                self._card_looked_for = self._nvml_due
                self._has_card = self._has_nvidia_card()
            if self._has_card:
                report(self._missing)
        if reading is None or reading.gpus is None:
            return None
        head["gpu_source"] = "nvidia-smi"
        head["age_seconds"] = reading.age_seconds
        return reading.gpus, reading.uses

    def _collect_processes(self, uses, listed_at, report):
        # By now: the driver may have taken its time, and processes end meanwhile.
        return self._processes.collect(self._system.monotonic(), report, uses, listed_at)


def answers(system, page, hung_cards=None):
    """The function a device child runs. The driver's library is loaded in the child, at its first request.

    hung_cards: as for Devices. Each child has those that hang when it is started.
    """
    devices = []
    parent_pid = os.getpid()

    def answer(request):
        if not devices:
            devices.append(Devices(system, page, parent_pid, hung_cards))
        return devices[0].answer(request)

    return answer


def trials(system):
    """Return what makes, for the index of a card, the function a child runs to see whether the card hangs."""
    parent_pid = os.getpid()

    def try_card(index):
        def answer(_request):
            from gpulse_probe.collectors.nvidia_nvml import NvidiaNvml
            from gpulse_probe.page import Page
            from gpulse_probe.parent_death import end_with

            end_with(parent_pid)
            nvml = NvidiaNvml(system, Page(), only=index)
            now = system.monotonic()
            for moment in (now, now + 1.0):
                # Some figures are made of two samples.
                nvml.collect(moment, bool)
            return b""

        return answer

    return try_card
