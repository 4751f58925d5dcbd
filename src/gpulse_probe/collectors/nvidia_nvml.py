"""NVIDIA GPUs from NVML, the driver's own library."""

from ctypes import byref, c_uint, c_void_p, create_string_buffer

from gpulse_probe.nvidia.device import Card
from gpulse_probe.nvidia.events import Events
from gpulse_probe.nvidia.library import DRIVER_GONE, NEVER, Library, Refused

# A card that is added, or comes back, is seen after so long.
_LOOK_AGAIN_SECONDS = 3.0
# Opening a card that is gone may take the driver long; it is tried at most a tenth of the time.
_LOOK_SHARE = 10.0
_ASK_AGAIN_SECONDS = 10.0
_EVENTS_AGAIN_SECONDS = 60.0
_NEVER_AGAIN_SECONDS = 600.0


class NvidiaNvml:
    """All NVIDIA cards of the node. Raises Refused at construction where NVML cannot be used.

    A Refused out of collect means the driver is gone: the process has to be started anew, because a
    loaded library never becomes the one of a newer driver.
    """

    name = "nvidia_nvml"

    def __init__(self, system, page, inherited_events=None, hung=None, only=None):
        """inherited_events: the XID events an earlier process learnt of, as xid_events() gave them.

        hung: cards that must not be touched, {index: Hang}. only: the index of the one card to read.
        """
        self._system = system
        self._library = Library(page)
        self._hung = {} if hung is None else hung
        self._only = only
        self._count = None
        self._cards = []
        # Cards that cannot be opened: why, and the facts known of them.
        self._unreachable = {}
        self._events = None
        self._no_events = None
        self._inherited = dict(inherited_events or {})
        self._turn = 0
        self._versions = {}
        self._unasked = [("driver_version", self._driver_version), ("cuda_version", self._cuda_version)]
        self._version_troubles = []
        self._ask_again_at = 0.0
        self._look_again_at = 0.0
        self._events_due = 0.0
        self._ask_versions()

    def collect(self, now, report):
        """The GPUs' records and the uses of their processes."""
        if self._unasked and now >= self._ask_again_at:
            self._ask_again_at = now + _ASK_AGAIN_SECONDS
            self._ask_versions()
        if now >= self._look_again_at:
            began = self._system.monotonic()
            self._find_cards()
            took = self._system.monotonic() - began
            self._look_again_at = now + max(_LOOK_AGAIN_SECONDS, _LOOK_SHARE * took)
        if now >= self._events_due:
            self._retry_events(now)
        records = []
        uses = []
        self._collect_events(report)
        measured = self._next_to_measure()
        for card in self._cards:
            card_records, card_uses = card.read(now, self._system.time(), report, card is measured)
            records.extend(card_records)
            uses.extend(card_uses)
        for index, (refusal, facts) in sorted(self._unreachable.items()):
            report("GPU %d: %s" % (index, refusal.text))
            records.append(dict(facts, index=index, vendor="nvidia", fault=refusal.text))
        for index, hang in sorted(self._hung.items()):
            waited = self._system.monotonic()
            report(hang.report(index, waited))
            records.extend(hang.records(index, waited))
        for refusal in self._version_troubles:
            report(str(refusal))
        records.sort(key=lambda record: record["index"])
        return records, uses

    def xid_events(self):
        """All XID events known, by the UUID of the card."""
        known = dict(self._inherited)
        known.update((card.facts["uuid"], card.xid_events) for card in self._cards if _has_events(card))
        return known

    def _ask_versions(self):
        self._version_troubles = []
        for version in tuple(self._unasked):
            field, ask = version
            try:
                self._versions[field] = ask()
            except Refused as refusal:
                if refusal.code in DRIVER_GONE:
                    raise
                if refusal.code not in NEVER:
                    self._version_troubles.append(refusal)
                    continue
            self._unasked.remove(version)

    def _driver_version(self):
        version = create_string_buffer(96)
        self._library.function("nvmlSystemGetDriverVersion")(version, c_uint(96))
        return version.value.decode("ascii", "replace")

    def _cuda_version(self):
        number = c_uint()
        self._library.function("nvmlSystemGetCudaDriverVersion")(byref(number))
        return "%d.%d" % (number.value // 1000, number.value % 1000 // 10)

    def _find_cards(self):
        """Cards may be added, or come back after a reset; a known one keeps its history."""
        count = c_uint()
        self._library.function("nvmlDeviceGetCount_v2")(byref(count))
        changed = count.value != self._count
        if not changed and not self._unreachable:
            return
        self._count = count.value
        before = self._cards
        known = {(card.index, card.handle.value): card for card in before}
        at_place = {card.index: card for card in before}
        facts = {index: facts for index, (_refusal, facts) in self._unreachable.items()}
        facts.update((card.index, card.lasting_facts()) for card in before)
        self._cards = []
        self._unreachable = {}
        for index in range(count.value):
            if index in self._hung or (self._only is not None and index != self._only):
                continue
            if not changed and index in at_place:
                self._cards.append(at_place[index])
                continue
            handle = c_void_p()
            try:
                # A card that nobody keeps awake wakes up here: it is named, so that each has its own deadline.
                self._library.function("nvmlDeviceGetHandleByIndex_v2", index)(c_uint(index), byref(handle))
            except Refused as refusal:
                if refusal.code in DRIVER_GONE:
                    raise
                self._unreachable[index] = (refusal, facts.get(index, {}))
                continue
            card = known.get((index, handle.value))
            self._cards.append(card or Card(self._library, index, handle, self._versions, self._inherited))
        if self._cards != before:
            for card in before:
                card.ask_again()
            self._events_due = 0.0

    def release(self, index):
        """Read a card again that hung before."""
        del self._hung[index]
        self._count = None
        self._look_again_at = 0.0

    def _retry_events(self, now):
        """Watch for XID events: where the cards changed, and again where that failed."""
        self._start_events()
        if self._no_events is not None or (self._events is not None and self._events.troubles):
            self._events_due = now + _EVENTS_AGAIN_SECONDS
        else:
            # A set that works is left alone: an error between two sets would be missed.
            self._events_due = now + _NEVER_AGAIN_SECONDS if self._events is None else float("inf")

    def _start_events(self):
        if self._events is not None:
            self._events.close()
            self._events = None
        self._no_events = None
        try:
            self._events = Events(self._library, self._cards)
        except Refused as refusal:
            if refusal.code in DRIVER_GONE:
                raise
            if refusal.code not in NEVER:
                self._no_events = refusal

    def _collect_events(self, report):
        if self._no_events is not None:
            report("XID events: %s" % self._no_events)
        if self._events is None:
            return
        for index, refusal in self._events.troubles:
            report("GPU %d: XID events: %s" % (index, refusal))
        try:
            self._events.collect(self._system.time())
        except Refused as refusal:
            if refusal.code in DRIVER_GONE:
                raise
            report("XID events: %s" % refusal)

    def _next_to_measure(self):
        """PCIe rates take 40 ms of waiting a card: one card a tick."""
        waiting = [card for card in self._cards if not card.counts_pcie_bytes]
        if not waiting:
            return None
        self._turn += 1
        return waiting[self._turn % len(waiting)]


def _has_events(card):
    return bool(card.xid_events) and "uuid" in card.facts
