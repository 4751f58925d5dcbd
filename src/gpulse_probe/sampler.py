"""Builds Snapshots: host collectors here, GPUs and their processes in a child that may hang."""

import json
import sys
from collections import namedtuple

from gpulse_probe import __version__, devices, schema
from gpulse_probe.collectors.cpu import Cpu
from gpulse_probe.collectors.disks import Disks
from gpulse_probe.collectors.infiniband import Infiniband
from gpulse_probe.collectors.machine import Machine
from gpulse_probe.collectors.memory import Memory
from gpulse_probe.collectors.networks import Networks
from gpulse_probe.hangs import KEEP_VALUES_SECONDS, Hang, Hangs, failed_fields
from gpulse_probe.page import Page
from gpulse_probe.tick import Tick
from gpulse_probe.watchdog import DEADLINE_SECONDS, Watchdog

HOST_COLLECTORS = (Machine, Cpu, Memory, Disks, Networks, Infiniband)
# GPU data younger than this are as new as the snapshot.
_FRESH_SECONDS = 0.25
_FIRST_TIME = "the GPUs are being read for the first time, which may take long on a big node"
# What is kept of a GPU that cannot be read.
_LASTING = schema.GPU_FACTS | {"xid_events"}

# What a device child answered last: its head as a dictionary, when it was asked, and texts of JSON; gpus and
# processes are those of its last whole answer, "null" where they are unknown.
Sample = namedtuple("Sample", "head asked_at gpus processes reports collectors")
# One tick, from which a line is made: dictionaries of the Snapshot's plain fields, of probe and host; lists of
# reports and collectors as texts; gpus and processes as texts, "null" where they are unknown. patch: where no child
# answers, what differs from its last answer for each GPU, {field: values}. columns: what of the devices is not as last
# told as a whole, as a text; None: anything.
Moment = namedtuple("Moment", "now snapshot probe host gpus processes reports collectors patch columns")


class Sampler:
    def __init__(self, system, node=None, interval=None, deadline=None, collectors=HOST_COLLECTORS, updates=False):
        """updates: line() gives whole Snapshots only when it must, and what changed otherwise."""
        self._system = system
        self._collectors = [collector(system) for collector in collectors]
        page = Page()
        deadline = deadline or DEADLINE_SECONDS
        hung_cards = {}
        self._watchdog = Watchdog(devices.answers(system, page, hung_cards), page, deadline)
        self._watchdog.card_hangs = self._card_hangs
        self._hangs = Hangs(hung_cards, devices.trials(system), 2 * deadline, self._watchdog.slow_deadline)
        self._interval = interval
        self._patience = min(1.0, interval / 2.0) if interval else 0.0
        self._seq = 0
        self._queue = []
        self._columns = "{}"
        self._sample = None
        self._last_gpus = None
        self._had_nvml = False
        self._events = {}
        self._write = whole
        self._updates = None
        if updates:
            from gpulse_probe.updates import Updates

            self._updates = Updates(interval)
            self._write = self._updates.line
        probe = {"version": __version__, "python": "%d.%d.%d" % sys.version_info[:3]}
        if interval:
            probe["interval_seconds"] = interval
        self._probe = probe
        self._fixed = {"schema": schema.SCHEMA, "node": node or system.hostname()}
        boot_id = system.read_line("/proc/sys/kernel/random/boot_id")
        if boot_id:
            self._fixed["boot_id"] = boot_id

    def line(self):
        """One Snapshot, or what changed since the last, as a line of JSON without its end."""
        return self._write(self.moment()).encode("ascii")

    def moment(self):
        now = self._system.monotonic()
        self._hangs.look(now)
        self._watchdog.ask(self._wanted(now))
        tick = Tick()
        host = {}
        for collector in self._collectors:
            host.update(tick.run(collector.name, collector.collect, now) or {})
        self._wait_for_devices()
        columns = self._take_samples()
        snapshot = dict(self._fixed, time=round(self._system.time(), 3), seq=self._seq)
        self._seq += 1
        gpus = processes = "null"
        patch = None
        reports, collectors = tick.reports, tick.collectors
        complaint = self._watchdog.complaint()
        probe = dict(self._probe)
        if complaint is not None:
            reports.append({"collector": "devices", "message": complaint})
        sample = self._sample
        if self._watchdog.lost:
            if complaint is None:
                reports.append({"collector": "devices", "message": _FIRST_TIME})
            collectors.append({"name": "devices", "outcome": "failed", "duration_seconds": 0.0})
            reports, collectors = devices.encode(reports), devices.encode(collectors)
            gpus, processes, patch = self._last_known(complaint)
        else:
            gpus, processes = sample.gpus, sample.processes
            if gpus == "null":
                # Of several reasons the last is about the last means that was tried.
                gpus, processes, patch = self._last_known(json.loads(sample.reports)[-1]["message"])
            reports, collectors = _joined(reports, sample.reports), _joined(collectors, sample.collectors)
        if sample is not None:
            if "gpu_source" in sample.head:
                probe["gpu_source"] = sample.head["gpu_source"]
            age = self._system.monotonic() - _read_at(sample)
            if age > _FRESH_SECONDS and gpus != "null":
                snapshot["devices_age_seconds"] = round(age, 1)
        return Moment(now, snapshot, probe, host, gpus, processes, reports, collectors, patch, columns)

    def close(self):
        """End the children of the collectors and of the devices."""
        for collector in self._collectors:
            if hasattr(collector, "close"):
                collector.close()
        self._watchdog.close()
        self._hangs.close()

    def _wanted(self, now):
        wanted = self._updates.wanted(now) if self._updates else {}
        if self._events:
            wanted["xid_events"] = self._events
        if self._sample is not None and self._sample.head.get("gpu_source") == "nvml":
            self._had_nvml = True
        if self._had_nvml:
            wanted["had_nvml"] = True
        if self._hangs.cards:
            wanted["hung_cards"] = list(self._hangs.cards)
        return wanted

    def _wait_for_devices(self):
        watchdog = self._watchdog
        if self._seq:
            watchdog.wait(self._patience)
            return
        # The first snapshot is worth waiting for; in a stream not longer than for any other answer.
        end = self._system.monotonic() + watchdog.deadline
        while not watchdog.answered:
            if watchdog.overdue and (self._interval or not watchdog.waiting):
                return
            if self._interval and self._system.monotonic() >= end:
                return
            watchdog.wait(min(1.0, watchdog.deadline))
            if not watchdog.answered:
                watchdog.ask(self._wanted(self._system.monotonic()))

    def _take_samples(self):
        """Look at what the child answered since the last tick: what is not as told as a whole, as Moment.columns."""
        self._queue += self._watchdog.take()
        told_whole = False
        while self._queue:
            answer, asked_at = self._queue[0]
            head, gpus, processes, reports, collectors = answer.decode("ascii").split("\n")
            head = json.loads(head)
            if head.get("update"):
                if told_whole:
                    # It is about what is told as a whole in this line, so it goes into the next one.
                    break
                self._columns = gpus
                gpus, processes = self._sample.gpus, self._sample.processes
            else:
                told_whole = True
                self._columns = "{}"
                if gpus != "null":
                    self._last_gpus = gpus
            self._sample = Sample(head, asked_at, gpus, processes, reports, collectors)
            self._events = head.get("xid_events", self._events)
            if head.get("restart"):
                self._watchdog.restart()
            del self._queue[0]
        return None if told_whole else self._columns

    def _card_hangs(self, index, call, since, child):
        """Remember a card in which a child hangs, for its successors."""
        records, read_at = [], None
        if self._last_gpus is not None:
            gpus, _processes = self._last_records()
            records = [gpu for gpu in gpus if gpu["index"] == index]
            read_at = _read_at(self._sample) - max([gpu.get("age_seconds", 0.0) for gpu in records] or [0.0])
        self._hangs.add(index, Hang(call, since, records, read_at, _LASTING), child, self._system.monotonic())

    def _last_records(self):
        """The GPUs that were known last, and their processes: None where these were not."""
        from gpulse_probe.merging import put_changes

        gpus, processes = json.loads(self._last_gpus), None
        if self._sample.gpus == self._last_gpus:
            processes = json.loads(self._sample.processes)
            put_changes(gpus, processes or [], json.loads(self._columns))
        return gpus, processes

    def _last_known(self, reason):
        """What is known of the GPUs while none is read, as gpus, processes and patch of a Moment.

        Where a call about one card hangs, only that one is unknown, and the others are as old as their last sample.
        Otherwise all are, and nothing but their facts is known. Processes are None where they are unknown.
        """
        if self._last_gpus is None:
            return "null", "null", None
        now = self._system.monotonic()
        gpus, processes = self._last_records()
        hung = {index: hang.records(index, now) for index, hang in self._hangs.cards.items()}
        one = self._watchdog.card in hung and now - _read_at(self._sample) <= KEEP_VALUES_SECONDS
        known = []
        for gpu in gpus:
            of_card = hung.get(gpu["index"])
            # A card and its instances are in the order they had.
            silent = of_card.pop(0) if of_card else None
            if one:
                known.append(silent or gpu)
                continue
            kept = {name: value for name, value in gpu.items() if name in _LASTING}
            kept["failed_fields"] = failed_fields(gpu)
            kept["failed_reason"] = silent["failed_reason"] if silent else reason
            known.append(kept)
        names = ("failed_fields", "failed_reason", "age_seconds") if one else ("failed_fields", "failed_reason")
        patch = {name: [gpu.get(name) for gpu in known] for name in names}
        return devices.encode(known), devices.encode(processes) if one else "null", patch


def _read_at(sample):
    """When a sample's values were read, at the latest."""
    return sample.asked_at - sample.head.get("age_seconds", 0.0)


def whole(moment):
    """The Snapshot of a moment as JSON."""
    parts = [
        devices.encode(moment.snapshot)[:-1],
        ',"probe":%s,"collectors":%s}' % (devices.encode(moment.probe)[:-1], moment.collectors),
        ',"host":%s' % devices.encode(moment.host),
    ]
    if moment.gpus != "null":
        parts.append(',"gpus":%s' % moment.gpus)
    if moment.processes != "null":
        parts.append(',"processes":%s' % moment.processes)
    parts.append(',"reports":%s}' % moment.reports)
    return "".join(parts)


def _joined(first, second):
    """Two JSON lists as one: the first as a list, the second as a text."""
    if not first:
        return second
    return "%s,%s" % (devices.encode(first)[:-1], second[1:]) if second != "[]" else devices.encode(first)
