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
# reports and collectors as texts; gpus and processes as texts, "null" where they are unknown. fault: why GPUs that
# were known cannot be read. columns: what of the devices is not as last told as a whole, as a text; None: anything.
Moment = namedtuple("Moment", "now snapshot probe host gpus processes reports collectors fault columns")


class Sampler:
    def __init__(self, system, node=None, interval=None, deadline=None, collectors=HOST_COLLECTORS, updates=False):
        """updates: line() gives whole Snapshots only when it must, and what changed otherwise."""
        self._system = system
        self._collectors = [collector(system) for collector in collectors]
        page = Page()
        self._watchdog = Watchdog(devices.answers(system, page), page, deadline or DEADLINE_SECONDS)
        self._interval = interval
        self._patience = min(1.0, interval / 2.0) if interval else 0.0
        self._seq = 0
        self._queue = []
        self._columns = "{}"
        self._sample = None
        self._last_gpus = None
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
        reports, collectors = tick.reports, tick.collectors
        complaint = self._watchdog.complaint()
        probe = dict(self._probe)
        if complaint is not None:
            reports.append({"collector": "devices", "message": complaint})
        if self._watchdog.lost:
            if complaint is None:
                reports.append({"collector": "devices", "message": _FIRST_TIME})
            collectors.append({"name": "devices", "outcome": "failed", "duration_seconds": 0.0})
            reports, collectors = devices.encode(reports), devices.encode(collectors)
            fault = complaint
        else:
            sample = self._sample
            gpus, processes = sample.gpus, sample.processes
            fault = json.loads(sample.reports)[0]["message"] if gpus == "null" else None
            reports, collectors = _joined(reports, sample.reports), _joined(collectors, sample.collectors)
            if "gpu_source" in sample.head:
                probe["gpu_source"] = sample.head["gpu_source"]
            age = sample.head.get("age_seconds", 0.0) + self._system.monotonic() - sample.asked_at
            if age > _FRESH_SECONDS:
                snapshot["devices_age_seconds"] = round(age, 1)
        if gpus == "null":
            gpus = self._facts_only(fault)
        return Moment(now, snapshot, probe, host, gpus, processes, reports, collectors, fault, columns)

    def close(self):
        """End the children of the collectors and of the devices."""
        for collector in self._collectors:
            if hasattr(collector, "close"):
                collector.close()
        self._watchdog.close()

    def _wanted(self, now):
        wanted = self._updates.wanted(now) if self._updates else {}
        if self._events:
            wanted["xid_events"] = self._events
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

    def _facts_only(self, fault):
        """The GPUs known before they fell silent, without the values nobody knows now."""
        if self._last_gpus is None:
            return "null"
        known = [
            dict({name: value for name, value in gpu.items() if name in _LASTING}, fault=fault)
            for gpu in json.loads(self._last_gpus)
        ]
        return devices.encode(known)


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
