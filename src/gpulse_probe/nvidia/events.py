"""Errors the driver tells of (XID), through NVML's event set."""

from ctypes import byref, c_uint, c_ulonglong, c_void_p

from gpulse_probe.nvidia import binding
from gpulse_probe.nvidia.library import CARD_LOST, DRIVER_GONE, NEVER, Refused

# Events kept per card, so that a hub that missed a snapshot still learns of them.
KEPT = 10
# Taken off the queue at one tick, so that a card in a storm of errors does not hold up the others.
_MOST_AT_ONCE = 64


class Events:
    """One event set for all cards. Raises library.Refused where the driver has none.

    `troubles` has what kept cards from being watched and may pass: (index, Refused). A lost card tells of itself.
    """

    def __init__(self, library, cards):
        self.troubles = []
        self._set = c_void_p()
        library.function("nvmlEventSetCreate")(byref(self._set))
        self._wait = library.function("nvmlEventSetWait_v2")
        self._free = library.function("nvmlEventSetFree")
        self._data = binding.c_nvmlEventData_t()
        self._cards = {}
        for card in cards:
            try:
                if self._watch(library, card):
                    self._cards[card.handle.value] = card
            except Refused as refusal:
                if refusal.code in DRIVER_GONE:
                    raise
                if refusal.code not in NEVER | CARD_LOST:
                    self.troubles.append((card.index, refusal))

    def _watch(self, library, card):
        supported = c_ulonglong()
        wanted = binding.nvmlEventTypeXidCriticalError
        library.function("nvmlDeviceGetSupportedEventTypes", card.index)(card.handle, byref(supported))
        if not supported.value & wanted:
            return False
        library.function("nvmlDeviceRegisterEvents", card.index)(card.handle, c_ulonglong(wanted), self._set)
        return True

    def collect(self, wall_time):
        """Add what happened since the last tick to the cards it happened to."""
        if not self._cards:
            return
        for _ in range(_MOST_AT_ONCE):
            try:
                self._wait(self._set, byref(self._data), c_uint(0))
            except Refused as refusal:
                # A lost card tells of itself when it is read.
                if refusal.code == binding.NVML_ERROR_TIMEOUT or refusal.code in CARD_LOST:
                    return
                raise
            card = self._cards.get(self._data.device)
            if card is not None and self._data.eventType == binding.nvmlEventTypeXidCriticalError:
                card.xid_events.append({"time": round(wall_time, 3), "xid": self._data.eventData})
                del card.xid_events[:-KEPT]

    def close(self):
        try:
            self._free(self._set)
        except Refused:
            # The driver that had it is gone, and the set with it: nothing is left to be done or told.
            return
