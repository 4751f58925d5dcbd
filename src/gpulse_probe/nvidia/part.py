"""What an NVIDIA card and a MIG instance have in common: readings, each asked on its own terms."""

from gpulse_probe.nvidia import binding, readings
from gpulse_probe.nvidia.activity import Activity
from gpulse_probe.nvidia.library import CARD_LOST, DRIVER_GONE, NEVER, Refused

NOW_AND_THEN_SECONDS = 10.0
# "Not supported" may be the word of a card in reset, so it is asked again after so long; cards take turns.
_ASK_AGAIN_SECONDS = 600.0
_TURN_SECONDS = 7.0
UUID = "nvmlDeviceGetUUID"
_MOST_REASONS = 3
_NAMELESS = Refused(binding.NVML_ERROR_UNKNOWN, UUID)


class _Asked:
    """A reading bound to a device, with what to ask instead where the device does not have it."""

    def __init__(self, reading, library, gpu, handle):
        self._bind = lambda wanted: readings.bind(wanted, library, gpu, handle)
        self._instead = reading.instead
        self.function = reading.function
        self.fields = reading.fields
        self.ask = self._bind(reading)

    def replace(self):
        """Go over to what older drivers have; False where there is nothing."""
        if self._instead is None:
            return False
        self.ask, self._instead = self._bind(self._instead), self._instead.instead
        return True


class Part:
    def __init__(self, library, index, handle):
        self.library = library
        self.index = index
        self.handle = handle
        self.facts = {}
        self.fault = None
        self._unread = []
        self._unread_due = 0.0
        self._unread_troubles = []
        self._unread_failed = {}
        self._again_due = None
        # Fields that could not be read at this tick though the device has them, each with the refusal.
        self.failed = {}
        self._forbidden = {}
        self._troubles = []
        self._successes = 0
        self._activity = None
        self._activity_due = 0.0

    def bound(self, wanted):
        return [_Asked(reading, self.library, self.index, self.handle) for reading in wanted]

    def ask_all(self, asked, values):
        """Ask every reading; those the device does not have are taken off the list.

        Gives back those that met an error which may pass.
        """
        failed = []
        for reading in tuple(asked):
            while self.fault is None:
                try:
                    reading.ask(values)
                except Refused as refusal:
                    if not self.refused(refusal):
                        failed.append(reading)
                        self.failed.update((field, refusal) for field in reading.fields)
                    elif reading.replace():
                        continue
                    else:
                        asked.remove(reading)
                else:
                    self._successes += 1
                break
            else:
                failed.append(reading)
        return failed

    def ask_facts(self, now):
        """Facts are asked once; those that met an error again every ten seconds, and it is told of meanwhile."""
        if self._unread and now >= self._unread_due:
            self._unread = self.ask_all(self._unread, self.facts)
            self._unread_troubles, self._troubles = self._troubles, []
            self._unread_failed, self.failed = self.failed, {}
            # A card that is lost may be back at any tick.
            self._unread_due = now + NOW_AND_THEN_SECONDS if self.fault is None else now
        self.failed.update(self._unread_failed)

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

    def ask_again(self):
        """Ask at the next tick for what the device refused before: it, its neighbors or the driver changed."""
        self._again_due = 0.0

    def again(self, now):
        """Return whether it is time to ask for what the device refused before."""
        due = self._again_due
        if due is None or now >= due:
            self._again_due = now + _ASK_AGAIN_SECONDS + _TURN_SECONDS * self.index
        return due is not None and now >= due

    def put_failures(self, record):
        """Name in a record what could not be read this time, and why."""
        if not self.failed:
            return
        reasons = []
        for refusal in self.failed.values():
            reason = "%s from %s" % (refusal.text, refusal.function)
            if reason not in reasons:
                reasons.append(reason)
        more = len(reasons) - _MOST_REASONS
        record["failed_fields"] = sorted(self.failed)
        record["failed_reason"] = "; ".join(reasons[:_MOST_REASONS]) + (" and %d more" % more if more > 0 else "")

    def ask_processes(self, running, wall_time):
        """Return the uses of the processes; a device without a name has none, as a use names its device."""
        if self.fault is not None or "uuid" not in self.facts:
            return []
        uses = running.ask(self.facts["uuid"], wall_time, self.refused)
        self._successes += running.failure is None and running.listed
        return uses

    def put_processes(self, running, record):
        """Say in a record whether the processes on the device are known."""
        failure = running.failure if "uuid" in self.facts else _NAMELESS
        if failure is not None:
            self.failed["processes"] = failure
        elif not running.listed:
            record["processes_listed"] = False

    def keep_memory_total(self, values):
        """Memory is read as a whole, but its size is a fact that outlives a failed reading."""
        if "memory_total_bytes" in values:
            self.facts["memory_total_bytes"] = values["memory_total_bytes"]
        if "memory_total_bytes" in self.facts:
            self.failed.pop("memory_total_bytes", None)

    def begin(self):
        self.fault = None
        self.failed = {}
        self._troubles = []
        self._successes = 0

    def end(self, report):
        """Tell of this tick's troubles: a card on which nothing could be read has a fault."""
        troubles = self._unread_troubles + self._troubles
        if self.fault is None and troubles and not self._successes:
            self.fault = troubles[0].text
        if self.fault is not None:
            report("GPU %d: %s" % (self.index, self.fault))
            return
        told = set()
        for refusal in troubles + list(self._forbidden.values()):
            text = "GPU %d: %s" % (self.index, refusal)
            if text not in told:
                told.add(text)
                report(text)

    def ask_activity(self, handle, instance, now, values):
        """The activity figures, where there are any."""
        try:
            if self._activity is None and self._activity_due is not None and now >= self._activity_due:
                self._activity_due = now + NOW_AND_THEN_SECONDS
                self._activity = Activity(self.library, self.index, handle, instance)
                self._activity_due = None
            if self._activity is not None:
                self._activity.ask(now, values, self.failed)
        except Refused as refusal:
            if self.refused(refusal):
                self.close()
                self._activity_due = None
            else:
                self.failed["sm_active_ratio"] = refusal

    def close(self):
        if self._activity is not None:
            self._activity.close()
            self._activity = None
