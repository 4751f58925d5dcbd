"""Updates: a whole Snapshot when something came or went, otherwise what is not as in the last whole one."""

from gpulse_probe import devices, schema
from gpulse_probe.sampler import whole

# Whoever missed a line, or does not trust their own sums, is right again after so long.
WHOLE_EVERY_SECONDS = 300.0
_MOVING = ("seq", "time", "devices_age_seconds")
_HOST_FACTS = frozenset(field.name for field in schema.HOST if field.kind == "fact")


class Updates:
    def __init__(self, interval):
        self._interval = interval or 0.0
        self._whole_seq = None
        self._whole_due = 0.0
        self._host = {}
        self._known = None
        self._patch = None

    def wanted(self, now):
        """What a device child is to be told."""
        wanted = {"updates": True}
        if now >= self._whole_due:
            wanted["full"] = True
        return wanted

    def line(self, moment):
        patch = None if moment.patch is None else sorted(moment.patch)
        known = (moment.gpus != "null", moment.processes != "null", patch)
        # While no child answers nothing of the GPUs has to come from one.
        at_will = patch is not None and moment.now >= self._whole_due
        if self._whole_seq is None or moment.columns is None or known != self._known or at_will:
            self._known = known
            self._whole_seq = moment.snapshot["seq"]
            self._whole_due = moment.now + WHOLE_EVERY_SECONDS - self._interval
            self._patch = moment.patch
            self._host = moment.host
            return whole(moment)
        host = self._host_changes(moment.host)
        if _HOST_FACTS.intersection(host):
            self._whole_due = moment.now
        return self._update(moment, host)

    def _host_changes(self, host):
        before = self._host
        changed = {name: value for name, value in host.items() if name not in before or before[name] != value}
        changed.update((name, None) for name in before if name not in host)
        return changed

    def _update(self, moment, host):
        head = {"update": self._whole_seq}
        head.update((name, moment.snapshot[name]) for name in _MOVING if name in moment.snapshot)
        if host:
            head["host"] = host
        parts = [devices.encode(head)[:-1]]
        columns = moment.columns
        if moment.patch is not None:
            changed = {name: values for name, values in moment.patch.items() if values != self._patch[name]}
            columns = devices.encode({"gpus": changed}) if changed else "{}"
        if columns != "{}":
            parts.append("," + columns[1:-1])
        if moment.reports != "[]":
            parts.append(',"reports":%s' % moment.reports)
        return "".join(parts) + "}"
