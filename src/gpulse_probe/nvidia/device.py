"""One NVIDIA card with its MIG instances: facts read once, values every tick, the rest now and then."""

from ctypes import byref, c_uint, c_void_p

from gpulse_probe.nvidia import activity, binding, fields, readings
from gpulse_probe.nvidia.instance import Instance
from gpulse_probe.nvidia.library import NEVER, Refused
from gpulse_probe.nvidia.part import NOW_AND_THEN_SECONDS, UUID, Part
from gpulse_probe.nvidia.running import Running
from gpulse_probe.schema import GPU_FACTS

_SENT, _RECEIVED = 0, 1
# Instances come and go while people wait for them.
_INSTANCES_SECONDS = 3.0


class Card(Part):
    def __init__(self, library, index, handle, common_facts, inherited_events=None):
        """common_facts: those of all cards, shared because they may be learnt later.

        inherited_events: the XID events an earlier process learnt of, by UUID; taken out when they are this card's.
        """
        Part.__init__(self, library, index, handle)
        self.facts = {"index": index, "vendor": "nvidia"}
        self.instances = []
        self.xid_events = []
        self._common = common_facts
        self._inherited = {} if inherited_events is None else inherited_events
        self._mig_enabled = None
        self._mig_values = {}
        self._mig_due = 0.0
        self._slow_values = {}
        self._slow_failed = {}
        self._was_lost = False
        self._running = Running(library, index, handle, shares=True)
        self._bind()

    def _bind(self):
        """Everything a card may have. A card that is split refuses much of it for good, until it is whole again."""
        self.close()
        self.has_activity = None
        self._ask_for_all()

    def _ask_for_all(self):
        """Ask from now on for everything, also for what the card refused before."""
        self._forbidden = {}
        self._slow_due = 0.0
        self._unread = self.bound(readings.ONCE)
        self._unread_due = 0.0
        self._every_tick = self.bound(readings.EVERY_TICK)
        self._now_and_then = self.bound(readings.NOW_AND_THEN)
        self._batch = fields.FieldBatch(self.library, self.index, self.handle, fields.EVERY_TICK)
        self._slow_batch = fields.FieldBatch(self.library, self.index, self.handle, fields.NOW_AND_THEN)
        self._running.ask_again()
        self._link_state = self.library.function("nvmlDeviceGetNvLinkState", self.index)
        self._throughput = self.library.function("nvmlDeviceGetPcieThroughput", self.index)
        self._mig_mode = self.library.function("nvmlDeviceGetMigMode", self.index)
        if self._activity is None:
            self._activity_due = 0.0
            self.has_activity = None

    @property
    def counts_pcie_bytes(self):
        return self._throughput is None or self._batch.has("pcie_sent_bytes_total")

    def all_facts(self):
        return dict(self._common, **self.facts)

    def lasting_facts(self):
        """Return all facts, also those that are read again now and then: they hold while the card cannot be read."""
        facts = {name: value for name, value in self._slow_values.items() if name in GPU_FACTS}
        return dict(facts, **dict(self._mig_values, **self.all_facts()))

    def read(self, now, wall_time, report, measure=False):
        """The records of the card and its instances, and the uses of their processes.

        measure: it is this card's turn to measure its PCIe rates.
        """
        self.begin()
        values = {}
        if self.again(now):
            self._ask_for_all()
        self.ask_facts(now)
        self._settle_uuid()
        if self.fault is None and now >= self._mig_due:
            self._mig_due = now + _INSTANCES_SECONDS
            self._find_instances()
        if self.fault is None and measure:
            self._measure_throughput()
        if self.fault is None:
            self.ask_all(self._every_tick, values)
            self.keep_memory_total(values)
        if self.fault is None:
            self._ask_batch(self._batch, values)
        if self.fault is None and now >= self._slow_due:
            self._slow_due = now + NOW_AND_THEN_SECONDS
            self._read_now_and_then()
        if self.fault is None:
            self._ask_own_activity(now, values)
        uses = [] if self.instances else self.ask_processes(self._running, wall_time)
        self.end(report)
        record = self._record(values)
        records = [record]
        for instance in self.instances:
            instance_record, instance_uses = instance.read(now, wall_time, report, self.fault)
            records.append(instance_record)
            uses.extend(instance_uses)
        return records, uses

    def _record(self, values):
        if self.fault is not None:
            record = dict(self.lasting_facts(), fault=self.fault)
        else:
            record = self.all_facts()
            record.update(self._mig_values)
            record.update(self._slow_values)
            record.update(values)
            self.failed.update(self._slow_failed)
            if not self.instances:
                self.put_processes(self._running, record)
            self.put_failures(record)
            if self._was_lost:
                # What it refused on its way back may be there again.
                self.ask_again()
        self._was_lost = self.fault is not None
        if self.xid_events:
            record["xid_events"] = list(self.xid_events)
        return record

    def _settle_uuid(self):
        if "uuid" not in self.facts and all(reading.function != UUID for reading in self._unread):
            self.facts["uuid"] = "GPU-at-index-%d" % self.index
        if self._inherited:
            self.xid_events = self._inherited.pop(self.facts.get("uuid"), []) + self.xid_events

    def _ask_own_activity(self, now, values):
        if self.has_activity is None:
            try:
                self.has_activity = activity.supported(self.library, self.index, self.handle)
            except Refused as refusal:
                if self.refused(refusal):
                    self.has_activity = False
        if self.has_activity:
            self.ask_activity(self.handle, None, now, values)

    def _ask_batch(self, batch, values):
        try:
            batch.ask(values, self.failed)
        except Refused as refusal:
            if self.refused(refusal):
                batch.give_up()
            else:
                self.failed.update((field, refusal) for field in batch.fields())

    def _read_now_and_then(self):
        # Throughput rates are measured in turns and stay until their next turn.
        kept = {name: value for name, value in self._slow_values.items() if name.endswith("_per_second")}
        before, failed, self.failed = self._slow_values, self.failed, {}
        values = self._slow_values = kept
        self.ask_all(self._now_and_then, values)
        self._ask_batch(self._slow_batch, values)
        if values.get("nvlink_links"):
            self._count_active_links(values)
        elif "nvlink_links" in values:
            del values["nvlink_links"]
        self._slow_failed, self.failed = self.failed, failed
        if self.fault is not None:
            # It was lost meanwhile: what is known of it stays.
            self._slow_values = before

    def _count_active_links(self, values):
        active = known = 0
        state = c_uint()
        for link in range(values["nvlink_links"] if self._link_state else 0):
            try:
                self._link_state(self.handle, c_uint(link), byref(state))
            except Refused as refusal:
                if self.refused(refusal):
                    continue
                return
            known += 1
            active += bool(state.value)
        if known:
            values["nvlink_links_active"] = active
        else:
            self._link_state = None

    def _measure_throughput(self):
        """PCIe rates of cards that do not count bytes. Each call takes the driver some 20 ms of waiting."""
        for counter, field in ((_SENT, "pcie_sent_bytes_per_second"), (_RECEIVED, "pcie_received_bytes_per_second")):
            rate = c_uint()
            try:
                self._throughput(self.handle, c_uint(counter), byref(rate))
            except Refused as refusal:
                self._slow_values.pop(field, None)
                if self.refused(refusal):
                    self._throughput = None
                return
            self._slow_values[field] = rate.value * 1000.0

    def _find_instances(self):
        """MIG can be switched and instances made, removed or replaced while the probe runs."""
        enabled = self._ask_mig_mode()
        if enabled is None:
            return
        self._mig_values = {"mig_enabled": enabled}
        found = self._mig_handles() if enabled and "uuid" in self.facts else []
        if found is None:
            return
        known = {(instance.facts["mig_index"], instance.handle.value): instance for instance in self.instances}
        self.instances = []
        for place, handle in found:
            instance = known.get((place, handle.value))
            if instance is None or not instance.same():
                instance = Instance(self.library, self, place, handle)
                instance.same()
            else:
                del known[place, handle.value]
            self.instances.append(instance)
        for gone in known.values():
            gone.close()

    def _ask_mig_mode(self):
        """Whether the card is split; None where it cannot be."""
        if self._mig_mode is None:
            return None
        current, pending = c_uint(), c_uint()
        try:
            self._mig_mode(self.handle, byref(current), byref(pending))
        except Refused as refusal:
            if self.refused(refusal):
                self._mig_mode = None
            return self._mig_enabled
        enabled = bool(current.value)
        if self._mig_enabled is not None and enabled != self._mig_enabled:
            self._bind()
        self._mig_enabled = enabled
        return enabled

    def _mig_handles(self):
        """(place, handle) of each instance; None where that cannot be told now."""
        most = c_uint()
        found = []
        try:
            self.library.function("nvmlDeviceGetMaxMigDeviceCount", self.index)(self.handle, byref(most))
        except Refused as refusal:
            return [] if self.refused(refusal) else None
        get_handle = self.library.function("nvmlDeviceGetMigDeviceHandleByIndex", self.index)
        for place in range(most.value):
            handle = c_void_p()
            try:
                get_handle(self.handle, c_uint(place), byref(handle))
            except Refused as refusal:
                # An empty place is "not found" by the book; some drivers say "invalid argument".
                if refusal.code != binding.NVML_ERROR_NOT_FOUND and refusal.code not in NEVER:
                    self.refused(refusal)
                    return None
                continue
            found.append((place, handle))
        return found
