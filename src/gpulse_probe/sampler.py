"""Builds Snapshots: host collectors here, GPUs and their processes in a child that may hang."""

import json
import sys

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


class Sampler:
    def __init__(self, system, node=None, interval=None, deadline=None, collectors=HOST_COLLECTORS):
        self._system = system
        self._collectors = [collector(system) for collector in collectors]
        page = Page()
        self._watchdog = Watchdog(devices.answers(system, page), page, deadline or DEADLINE_SECONDS)
        self._patience = min(1.0, interval / 2.0) if interval else 0.0
        self._seq = 0
        self._last_gpus = None
        probe = {"version": __version__, "python": "%d.%d.%d" % sys.version_info[:3]}
        if interval:
            probe["interval_seconds"] = interval
        self._probe = probe
        self._fixed = {"schema": schema.SCHEMA, "node": node or system.hostname()}
        boot_id = system.read_line("/proc/sys/kernel/random/boot_id")
        if boot_id:
            self._fixed["boot_id"] = boot_id

    def line(self):
        """One Snapshot as a line of JSON, without its end."""
        self._watchdog.ask()
        now = self._system.monotonic()
        tick = Tick()
        host = {}
        for collector in self._collectors:
            host.update(tick.run(collector.name, collector.collect, now) or {})
        self._wait_for_devices()
        head, gpus, processes, reports, collectors = self._device_parts()
        snapshot = dict(self._fixed, time=round(self._system.time(), 3), seq=self._seq)
        self._seq += 1
        probe = dict(self._probe)
        if "gpu_source" in head:
            probe["gpu_source"] = head["gpu_source"]
        if head.get("age_seconds", 0.0) > _FRESH_SECONDS:
            snapshot["devices_age_seconds"] = round(head["age_seconds"], 1)
        parts = [
            devices.encode(snapshot)[:-1],
            ',"probe":%s,"collectors":%s}' % (devices.encode(probe)[:-1], _joined(tick.collectors, collectors)),
            ',"host":%s' % devices.encode(host),
        ]
        if gpus != "null":
            parts.append(',"gpus":%s' % gpus)
        if processes != "null":
            parts.append(',"processes":%s' % processes)
        parts.append(',"reports":%s}' % _joined(tick.reports, reports))
        return "".join(parts).encode("ascii")

    def close(self):
        self._watchdog.close()

    def _wait_for_devices(self):
        watchdog = self._watchdog
        if self._seq:
            watchdog.wait(self._patience)
            return
        # The first snapshot is worth waiting for, until a sample is there or something is wrong.
        while watchdog.sample is None and watchdog.complaint() is None:
            watchdog.wait(1.0)
            watchdog.ask()

    def _device_parts(self):
        """The head as a dictionary; gpus, processes, reports and collectors as JSON texts."""
        complaint = self._watchdog.complaint()
        if complaint is not None:
            report = {"collector": "devices", "message": complaint}
            outcome = {"name": "devices", "outcome": "failed", "duration_seconds": 0.0}
            return {}, self._facts_only(complaint), "null", devices.encode([report]), devices.encode([outcome])
        head, gpus, processes, reports, collectors = self._watchdog.sample.decode("ascii").split("\n")
        head = json.loads(head)
        head["age_seconds"] = head.get("age_seconds", 0.0) + self._system.monotonic() - self._watchdog.sample_asked_at
        if head.get("restart"):
            self._watchdog.restart()
        if gpus == "null":
            gpus = self._facts_only(json.loads(reports)[0]["message"])
        else:
            self._last_gpus = gpus
        return head, gpus, processes, reports, collectors

    def _facts_only(self, fault):
        """The GPUs known before they fell silent, without the values nobody knows now."""
        if self._last_gpus is None:
            return "null"
        known = [
            dict({name: value for name, value in gpu.items() if name in schema.GPU_FACTS}, fault=fault)
            for gpu in json.loads(self._last_gpus)
        ]
        return devices.encode(known)


def _joined(first, second):
    """Two JSON lists as one: the first as a list, the second as a text."""
    if not first:
        return second
    return "%s,%s" % (devices.encode(first)[:-1], second[1:]) if second != "[]" else devices.encode(first)
