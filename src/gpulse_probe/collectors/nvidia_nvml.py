"""NVIDIA GPUs from NVML, the driver's own library."""

from ctypes import byref, c_uint, c_void_p, create_string_buffer

from gpulse_probe.nvidia.device import Card
from gpulse_probe.nvidia.events import Events
from gpulse_probe.nvidia.library import DRIVER_GONE, Library, Refused

_LOOK_AGAIN_SECONDS = 60.0


class NvidiaNvml:
    """All NVIDIA cards of the node. Raises Refused at construction where NVML cannot be used.

    A Refused out of collect means the driver is gone: the process has to be started anew, because a
    loaded library never becomes the one of a newer driver.
    """

    name = "nvidia_nvml"

    def __init__(self, system, page):
        self._system = system
        self._library = Library(page)
        self._cards = []
        self._unreachable = {}
        self._events = None
        self._turn = 0
        self._common = self._versions()
        self._look_again_at = 0.0

    def collect(self, now, report):
        """The GPUs' records and the uses of their processes."""
        if now >= self._look_again_at:
            self._look_again_at = now + _LOOK_AGAIN_SECONDS
            self._find_cards()
        wall_time = self._system.time()
        records = []
        uses = []
        self._collect_events(wall_time, report)
        self._measure_one_throughput()
        for card in self._cards:
            card_records, card_uses = card.read(now, wall_time, report)
            records.extend(card_records)
            uses.extend(card_uses)
        for index, refusal in sorted(self._unreachable.items()):
            report("GPU %d: %s" % (index, refusal.text))
            records.append({"index": index, "vendor": "nvidia", "fault": refusal.text})
        records.sort(key=lambda record: record["index"])
        return records, uses

    def _versions(self):
        facts = {}
        version = create_string_buffer(96)
        try:
            self._library.function("nvmlSystemGetDriverVersion")(version, c_uint(96))
            facts["driver_version"] = version.value.decode("ascii", "replace")
            number = c_uint()
            self._library.function("nvmlSystemGetCudaDriverVersion")(byref(number))
            facts["cuda_version"] = "%d.%d" % (number.value // 1000, number.value % 1000 // 10)
        except Refused as refusal:
            if refusal.code in DRIVER_GONE:
                raise
        return facts

    def _find_cards(self):
        """Cards may be added, or come back after a reset; a known one keeps its history."""
        count = c_uint()
        self._library.function("nvmlDeviceGetCount_v2")(byref(count))
        if count.value == len(self._cards) and not self._unreachable:
            return
        known = {card.index: card for card in self._cards}
        get_handle = self._library.function("nvmlDeviceGetHandleByIndex_v2")
        self._cards = []
        self._unreachable = {}
        for index in range(count.value):
            handle = c_void_p()
            try:
                get_handle(c_uint(index), byref(handle))
            except Refused as refusal:
                if refusal.code in DRIVER_GONE:
                    raise
                self._unreachable[index] = refusal
                continue
            self._cards.append(known.get(index) or Card(self._library, index, handle, self._common))
        self._start_events()

    def _start_events(self):
        if self._events is not None:
            self._events.close()
            self._events = None
        try:
            self._events = Events(self._library, self._cards)
        except Refused as refusal:
            # A driver without events has nothing to tell; one that is gone says so at the next call.
            self._events_refused = refusal

    def _collect_events(self, wall_time, report):
        if self._events is None:
            return
        try:
            self._events.collect(wall_time)
        except Refused as refusal:
            if refusal.code in DRIVER_GONE:
                raise
            report("XID events: %s" % refusal)

    def _measure_one_throughput(self):
        """PCIe rates take 40 ms of waiting a card: one card a tick."""
        waiting = [card for card in self._cards if not card.counts_pcie_bytes]
        if waiting:
            self._turn += 1
            waiting[self._turn % len(waiting)].measure_throughput()
