"""One MIG instance of an NVIDIA card: a device of its own with a parent."""

from gpulse_probe.nvidia import readings
from gpulse_probe.nvidia.part import UUID, Part
from gpulse_probe.nvidia.running import Running

_OF_THE_CARD = ("index", "vendor", "driver_version", "cuda_version", "compute_capability", "pci_bus_id")


class Instance(Part):
    def __init__(self, library, card, mig_index, handle):
        Part.__init__(self, library, card.index, handle)
        self._card = card
        self.facts = {"mig_index": mig_index, "parent_uuid": card.facts["uuid"]}
        self._identity = self.bound(readings.MIG_IDENTITY)
        self._unread = self.bound(readings.MIG_ONCE)
        self._every_tick = self.bound(readings.MIG_EVERY_TICK)
        self._running = Running(library, card.index, handle, shares=False)

    def same(self):
        """Whether this is still the instance it was: the driver gives the handle of one that is gone to the next.

        What could not be read of its facts before is asked again.
        """
        self.begin()
        found = {}
        self.ask_all(self._identity, found)
        self._unread = self.ask_all(self._unread, found)
        self._unread_troubles = self._troubles
        if any(self.facts.get(name, value) != value for name, value in found.items()):
            return False
        self.facts.update(found)
        name, _, profile = self.facts.get("name", "").partition(" MIG ")
        if profile:
            # The model is the card's, as nvidia-smi has it.
            self.facts.update(name=name, mig_profile=profile)
        if "uuid" not in self.facts and all(reading.function != UUID for reading in self._identity):
            ids = [self.facts.get(field) for field in ("parent_uuid", "gpu_instance_id", "compute_instance_id")]
            if None not in ids:
                self.facts["uuid"] = "%s/gi%d/ci%d" % tuple(ids)
        return True

    def read(self, now, wall_time, report, card_fault=None):
        """This instance's record and the uses of its processes; of a card that is lost only the facts."""
        self.begin()
        values = {}
        if card_fault is not None:
            self.fault = card_fault
            return self._record(values), []
        if self.again(now):
            self._forbidden = {}
            self._every_tick = self.bound(readings.MIG_EVERY_TICK)
            self._running.ask_again()
            if self._activity is None:
                self._activity_due = 0.0
        self.ask_all(self._every_tick, values)
        self.keep_memory_total(values)
        if self.fault is None and self._card.has_activity and "gpu_instance_id" in self.facts:
            self.ask_activity(self._card.handle, self.facts["gpu_instance_id"], now, values)
        uses = self.ask_processes(self._running, wall_time)
        self.end(report)
        return self._record(values), uses

    def _record(self, values):
        card = self._card.all_facts()
        record = {name: card[name] for name in _OF_THE_CARD if name in card}
        record.update(self.facts)
        if self.fault is not None:
            record["fault"] = self.fault
            return record
        record.update(values)
        self.put_processes(self._running, record)
        self.put_failures(record)
        return record
