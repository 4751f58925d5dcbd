"""One NVIDIA card, or one MIG instance of it: facts read once, values every tick, the rest now and then."""

from ctypes import byref, c_uint, c_void_p

from gpulse_probe.nvidia import binding, fields, readings
from gpulse_probe.nvidia.activity import Activity
from gpulse_probe.nvidia.library import CARD_LOST, DRIVER_GONE, NEVER, Refused
from gpulse_probe.nvidia.running import Running

NOW_AND_THEN_SECONDS = 10.0
_SENT, _RECEIVED = 0, 1


class _Asked:
    """A reading bound to a device, with what to ask instead where the device does not have it."""

    def __init__(self, reading, library, gpu, handle):
        self._bind = lambda wanted: readings.bind(wanted, library, gpu, handle)
        self._instead = reading.instead
        self.ask = self._bind(reading)

    def replace(self):
        """Go over to what older drivers have; False where there is nothing."""
        if self._instead is None:
            return False
        self.ask, self._instead = self._bind(self._instead), self._instead.instead
        return True


class _Part:
    """What a card and an instance have in common: readings, each asked on its own terms."""

    def __init__(self, library, index, handle):
        self.library = library
        self.index = index
        self.handle = handle
        self.facts = {}
        self.fault = None
        self._forbidden = {}
        self._troubles = []
        self._successes = 0

    def bound(self, wanted):
        return [_Asked(reading, self.library, self.index, self.handle) for reading in wanted]

    def ask_all(self, asked, values):
        """Ask every reading; those the device does not have are taken off the list."""
        for reading in tuple(asked):
            while self.fault is None:
                try:
                    reading.ask(values)
                except Refused as refusal:
                    if self.refused(refusal):
                        if reading.replace():
                            continue
                        asked.remove(reading)
                else:
                    self._successes += 1
                break

    def refused(self, refusal):
        """Note what a refusal means; True where there is no use in asking again."""
        if refusal.code in DRIVER_GONE:
            raise refusal
        if refusal.code in CARD_LOST:
            self.fault = refusal.text
        elif refusal.code == binding.NVML_ERROR_NO_PERMISSION:
            self._forbidden[refusal.function] = refusal
        elif refusal.code not in NEVER:
            self._troubles.append(refusal)
        return refusal.code in NEVER

    def begin(self):
        self.fault = None
        self._troubles = []
        self._successes = 0

    def end(self, report):
        """Tell of this tick's troubles: a card on which nothing could be read has a fault."""
        if self.fault is None and self._troubles and not self._successes:
            self.fault = self._troubles[0].text
        if self.fault is not None:
            report("GPU %d: %s" % (self.index, self.fault))
            return
        for refusal in self._troubles + list(self._forbidden.values()):
            report("GPU %d: %s" % (self.index, refusal))

    def start_activity(self, handle, instance=None):
        try:
            return Activity(self.library, self.index, handle, instance)
        except Refused as refusal:
            self.refused(refusal)
            return None

    def ask_activity(self, activity, now, values):
        """The activity figures; None where the card turned out to have none."""
        try:
            activity.ask(now, values)
        except Refused as refusal:
            if self.refused(refusal):
                return None
        return activity


class Instance(_Part):
    """A MIG instance."""

    def __init__(self, library, card, mig_index, handle):
        _Part.__init__(self, library, card.index, handle)
        self.facts = {"mig_index": mig_index}
        for name in ("index", "vendor", "driver_version", "cuda_version", "compute_capability", "pci_bus_id"):
            if name in card.facts:
                self.facts[name] = card.facts[name]
        self.facts["parent_uuid"] = card.facts.get("uuid")
        self.ask_all(self.bound(readings.MIG_ONCE + readings.MIG_IDS), self.facts)
        name, _, profile = self.facts.get("name", "").partition(" MIG ")
        if profile:
            self.facts["mig_profile"] = profile
        ids = (card.facts.get("uuid"), self.facts.get("gpu_instance_id", -1), self.facts.get("compute_instance_id", -1))
        uuid = self.facts.setdefault("uuid", "%s/gi%d/ci%d" % ids)
        self._every_tick = self.bound(readings.MIG_EVERY_TICK)
        self._running = Running(library, card.index, handle, uuid, shares=False)
        self._activity = None
        if "gpu_instance_id" in self.facts and card.has_activity:
            self._activity = self.start_activity(card.handle, self.facts["gpu_instance_id"])

    def read(self, now, wall_time, report):
        """This instance's record and the uses of its processes."""
        self.begin()
        values = {}
        self.ask_all(self._every_tick, values)
        if self._activity is not None and self.fault is None:
            self._activity = self.ask_activity(self._activity, now, values)
        uses = self._running.ask(wall_time, self.refused) if self.fault is None else []
        self.end(report)
        record = dict(self.facts)
        record.update(values if self.fault is None else {"fault": self.fault})
        return record, uses

    def close(self):
        if self._activity is not None:
            self._activity.close()


class Card(_Part):
    """A whole GPU, with its MIG instances where it is split."""

    def __init__(self, library, index, handle, common_facts):
        _Part.__init__(self, library, index, handle)
        self.facts = dict(common_facts, index=index, vendor="nvidia")
        self.instances = []
        self.xid_events = []
        self._facts_known = False
        self._ask_facts()

    def _ask_facts(self):
        self.begin()
        self.ask_all(self.bound(readings.ONCE), self.facts)
        if self.fault is not None:
            return
        self._facts_known = True
        uuid = self.facts.get("uuid", str(self.index))
        self._every_tick = self.bound(readings.EVERY_TICK)
        self._now_and_then = self.bound(readings.NOW_AND_THEN)
        self._batch = fields.FieldBatch(self.library, self.index, self.handle, fields.EVERY_TICK)
        self._slow_batch = fields.FieldBatch(self.library, self.index, self.handle, fields.NOW_AND_THEN)
        self._running = Running(self.library, self.index, self.handle, uuid, shares=True)
        self._link_state = self.library.function("nvmlDeviceGetNvLinkState", self.index)
        self._throughput = self.library.function("nvmlDeviceGetPcieThroughput", self.index)
        self._activity = self.start_activity(self.handle)
        self._slow_values = {}
        self._slow_due = 0.0
        self._mig_mode = self.library.function("nvmlDeviceGetMigMode", self.index)

    @property
    def has_activity(self):
        return self._activity is not None and self._activity.supported

    @property
    def counts_pcie_bytes(self):
        return not self._facts_known or self._throughput is None or self._batch.has("pcie_sent_bytes_total")

    def read(self, now, wall_time, report):
        """The records of the card and its instances, and the uses of their processes."""
        if not self._facts_known:
            self._ask_facts()
        else:
            self.begin()
        values = {}
        uses = []
        if self.fault is None:
            self.ask_all(self._every_tick, values)
        if self.fault is None:
            self._ask_batch(self._batch, values)
        if self.fault is None and now >= self._slow_due:
            self._slow_due = now + NOW_AND_THEN_SECONDS
            self._read_now_and_then()
        if self.fault is None and self._activity is not None:
            self._activity = self.ask_activity(self._activity, now, values)
        if self.fault is None and not self.instances:
            uses = self._running.ask(wall_time, self.refused)
        self.end(report)
        record = dict(self.facts)
        if self.fault is None:
            record.update(self._slow_values)
            record.update(values)
        else:
            record["fault"] = self.fault
        if self.xid_events:
            record["xid_events"] = list(self.xid_events)
        records = [record]
        if self.fault is None:
            for instance in self.instances:
                instance_record, instance_uses = instance.read(now, wall_time, report)
                records.append(instance_record)
                uses.extend(instance_uses)
        return records, uses

    def _ask_batch(self, batch, values):
        try:
            batch.ask(values)
        except Refused as refusal:
            self.refused(refusal)

    def _read_now_and_then(self):
        # Throughput rates are measured in turns and stay until their next turn.
        kept = {name: value for name, value in self._slow_values.items() if name.endswith("_per_second")}
        values = self._slow_values = kept
        self.ask_all(self._now_and_then, values)
        self._ask_batch(self._slow_batch, values)
        if values.get("nvlink_links"):
            self._count_active_links(values)
        elif "nvlink_links" in values:
            del values["nvlink_links"]
        self._find_instances(values)

    def _count_active_links(self, values):
        active = 0
        state = c_uint()
        for link in range(values["nvlink_links"]):
            try:
                self._link_state(self.handle, c_uint(link), byref(state))
            except Refused as refusal:
                if self.refused(refusal):
                    continue
                return
            active += bool(state.value)
        values["nvlink_links_active"] = active

    def measure_throughput(self):
        """PCIe rates of cards that do not count bytes. Each call takes the driver some 20 ms of waiting."""
        for counter, field in ((_SENT, "pcie_sent_bytes_per_second"), (_RECEIVED, "pcie_received_bytes_per_second")):
            rate = c_uint()
            try:
                self._throughput(self.handle, c_uint(counter), byref(rate))
            except Refused as refusal:
                if self.refused(refusal):
                    self._throughput = None
                return
            self._slow_values[field] = rate.value * 1000.0

    def _find_instances(self, values):
        """MIG can be switched and instances made or removed while the probe runs."""
        current, pending = c_uint(), c_uint()
        try:
            self._mig_mode(self.handle, byref(current), byref(pending))
        except Refused as refusal:
            self.refused(refusal)
            return
        values["mig_enabled"] = bool(current.value)
        found = self._mig_handles() if current.value else []
        known = [(instance.facts["mig_index"], instance.handle.value) for instance in self.instances]
        if [(index, handle.value) for index, handle in found] != known:
            for instance in self.instances:
                instance.close()
            self.instances = [Instance(self.library, self, index, handle) for index, handle in found]

    def _mig_handles(self):
        most = c_uint()
        found = []
        try:
            self.library.function("nvmlDeviceGetMaxMigDeviceCount", self.index)(self.handle, byref(most))
        except Refused as refusal:
            self.refused(refusal)
            return found
        get_handle = self.library.function("nvmlDeviceGetMigDeviceHandleByIndex", self.index)
        for place in range(most.value):
            handle = c_void_p()
            try:
                get_handle(self.handle, c_uint(place), byref(handle))
            except Refused as refusal:
                # An empty place is "not found" by the book; some drivers say "invalid argument".
                if refusal.code != binding.NVML_ERROR_NOT_FOUND:
                    self.refused(refusal)
                continue
            found.append((place, handle))
        return found
