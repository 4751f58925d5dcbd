"""What the device child does: GPUs by NVML or nvidia-smi, then the processes on them.

The answer is JSON made ready for the wire, so that the parent need not take it apart and put it together again.
"""

import json
import signal

from gpulse_probe.tick import Tick

_TRY_NVML_AGAIN_SECONDS = 60.0
_PCI_DISPLAY_CLASS = "0x03"
_PCI_NVIDIA = "0x10de"
_SET_PARENT_DEATH_SIGNAL = 1

encode = json.JSONEncoder(separators=(",", ":")).encode


class Devices:
    def __init__(self, system, page):
        # Loaded in the child, so that the parent does not hold it too.
        from gpulse_probe.collectors.processes import Processes

        self._system = system
        self._page = page
        self._processes = Processes(system, mark=self._note)
        self._hung_before = frozenset()
        self._nvml = None
        self._nvml_due = 0.0
        self._why_not_nvml = None
        self._smi = None
        self._restart = False

    def answer(self, request=b""):
        """One sample as five lines of JSON: head, gpus, processes, reports, collectors.

        The request has what earlier children hung in, a line each.
        The head has gpu_source, age_seconds (of the GPU data) and restart (the child wants to be replaced).
        """
        now = self._system.monotonic()
        self._hung_before = frozenset(request.decode("utf-8").split("\n"))
        tick = Tick()
        head = {}
        records, uses = [], []
        if self._nvml is None and now >= self._nvml_due:
            self._nvml_due = now + _TRY_NVML_AGAIN_SECONDS
            if self._why_not_nvml:
                # A library once loaded never becomes the one of a newer driver: another process has to try.
                self._restart = True
            else:
                self._why_not_nvml = self._start_nvml()
        if self._nvml is not None:
            found = tick.run("nvidia_nvml", self._collect_nvml, now)
            head["gpu_source"] = "nvml"
        else:
            found = tick.run("nvidia_smi", self._collect_smi, now, head)
        if found is not None:
            records, uses = found
        elif tick.reports:
            records = None
        processes = None
        if records is not None:
            listed_at = now - head.get("age_seconds", 0.0)
            processes = tick.run("processes", self._collect_processes, now, uses, listed_at)
        if self._restart:
            head["restart"] = True
        lines = (head, records, processes, tick.reports, tick.collectors)
        return "\n".join(map(encode, lines)).encode("ascii")

    def _note(self, text):
        """Note what is about to be done; False where an earlier child hung in it."""
        self._page.note(text)
        return text not in self._hung_before

    def _start_nvml(self):
        """Try NVML; why it cannot be used, as a text, "" where there is simply none."""
        try:
            from gpulse_probe.collectors.nvidia_nvml import NvidiaNvml
            from gpulse_probe.nvidia.library import NO_DRIVER, NO_LIBRARY, Refused
        except ModuleNotFoundError as error:
            if error.name != "pynvml":
                raise
            return ""
        except ImportError as error:
            return str(error)
        _die_with_parent()
        try:
            self._nvml = NvidiaNvml(self._system, self._page)
        except Refused as refusal:
            if refusal.code == NO_LIBRARY:
                return ""
            if refusal.code == NO_DRIVER and not self._has_nvidia_card():
                return ""
            return "%s; reload the NVIDIA driver or reboot the node" % refusal.text
        return None

    def _has_nvidia_card(self):
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

            self._smi = NvidiaSmi(self._system)
        self._page.note("nvidia-smi")
        if self._why_not_nvml:
            report("NVML: %s" % self._why_not_nvml)
        reading = self._smi.collect(now, report)
        if reading is None or reading.gpus is None:
            return None
        head["gpu_source"] = "nvidia-smi"
        head["age_seconds"] = reading.age_seconds
        return reading.gpus, reading.uses

    def _collect_processes(self, now, uses, listed_at, report):
        return self._processes.collect(now, report, uses, listed_at)


def _die_with_parent():
    """A child stuck in the driver must not outlive a probe that was killed. NVML has loaded ctypes anyway."""
    import ctypes

    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def answers(system, page):
    """The function a device child runs. The driver's library is loaded in the child, at its first request."""
    devices = []

    def answer(request):
        if not devices:
            devices.append(Devices(system, page))
        return devices[0].answer(request)

    return answer
