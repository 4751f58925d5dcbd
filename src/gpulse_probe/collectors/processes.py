"""Processes on GPUs: the pids and memory come from the driver, all the rest from /proc/PID.

Each tick reads one file of each process, /proc/PID/stat. What hardly changes is read when a process is first
seen, then now and then, and is kept for when the process is gone while the driver still lists it.
"""

from gpulse_probe.printable import printable
from gpulse_probe.proc_pid import (
    COMMAND_BYTES,
    parse_boot_time,
    parse_cgroup,
    parse_command,
    parse_name,
    parse_stat,
    parse_uid,
)
from gpulse_probe.shortening import fitted
from gpulse_probe.survivors import Survivors

_REFRESH_SECONDS = 30.0
_USER_SECONDS = 600.0
_KEEP_SECONDS = 60.0
_KEEP_PROCESSES = 4096
_KEEP_USERS = 4096


class _Known:
    """What is known of one process, told from others that had its pid by its start."""

    __slots__ = ("children", "due", "facts", "listed", "lived", "missed", "name", "renamed", "start_ticks")

    def __init__(self, start_ticks, pid):
        self.start_ticks = start_ticks
        self.facts = {"pid": pid}
        self.children = {}
        self.name = None
        self.renamed = False
        self.due = 0.0
        self.listed = 0.0
        self.lived = None
        self.missed = None


class Processes:
    name = "processes"

    def __init__(self, system, mark=None):
        self._system = system
        self._mark = mark or (lambda _text: True)
        self._known = {}
        self._users = {}
        self._survivors = Survivors(system)
        self._boot_time = None
        self._boot_time_asked = False
        self._tick_seconds = 1.0 / system.clock_ticks()
        self._page_bytes = system.page_size()

    def collect(self, now, report, uses, listed_at=None):
        """One record for each process the driver lists.

        listed_at: when the driver listed them, where that was before now. A process that was seen alive after it
        and is gone has simply ended, and is left out. One that is gone has vanished only when the driver lists it
        once more after that: between its list and our look it may have ended like any other.
        """
        listed_at = now if listed_at is None else listed_at
        records = []
        gone = {}
        hidden = foreign = 0
        for pid, (devices, driver_name) in sorted(_by_pid(uses).items()):
            record, exists = self._record(pid, now)
            known = self._known.get(pid)
            if record is None and exists is False:
                if known and known.lived is not None and known.lived > listed_at:
                    continue
                if known is None:
                    known = self._known[pid] = _Known(None, pid)
                record = dict(known.facts)
                if known.missed is None:
                    known.missed = now
                elif listed_at > known.missed:
                    record["vanished"] = True
                    gone[pid] = known.children
            elif record is None:
                hidden += exists is True
                foreign += exists is None
                record = dict(self._owner(pid, now) if exists else (), pid=pid)
            if driver_name and "name" not in record:
                record["name"] = parse_name(driver_name)
            if known:
                known.listed = now
            record["gpus"] = devices
            records.append(record)
        self._add_children(now, records, gone)
        self._forget(now)
        _report_unreadable(report, hidden, foreign)
        return fitted(records, report)

    def _record(self, pid, now):
        """The record of a process that can be read, or None and whether the kernel has it."""
        try:
            stat = parse_stat(self._system.read_bytes("/proc/%d/stat" % pid))
        except OSError:
            stat = None
        if stat is None:
            # In a container the driver may give 0 for a process it cannot name there.
            return None, (self._system.process_exists(pid) if pid > 0 else None)
        known = self._known.get(pid)
        if known is None or known.start_ticks != stat.start_ticks:
            known = self._known[pid] = _Known(stat.start_ticks, pid)
            boot_time = self._booted()
            if boot_time is not None:
                known.facts["start_time"] = round(boot_time + stat.start_ticks * self._tick_seconds, 2)
        if stat.name != known.name:
            known.name = stat.name
            known.renamed = True
            known.facts["name"] = parse_name(stat.name.decode("utf-8", "surrogateescape"))
        if now >= known.due:
            # Spread over some seconds, so that the processes of one job are not all read again in one tick.
            known.due = now + _REFRESH_SECONDS + pid % 8
            self._refresh(pid, known, now)
        known.lived = now
        known.missed = None
        record = dict(known.facts)
        record["parent_pid"] = stat.parent
        record["nice"] = stat.nice
        record["state"] = stat.state
        record["cpu_seconds_total"] = round(stat.cpu_ticks * self._tick_seconds, 3)
        record["memory_bytes"] = stat.resident_pages * self._page_bytes
        return record, True

    def _refresh(self, pid, known, now):
        """What may change in a process's life, but seldom does. What cannot be read now stays as it was."""
        facts = known.facts
        uid = self._uid(pid)
        if uid is not None:
            facts["uid"] = uid
            facts["user"] = self._user(uid, now)
        cgroup = self._parsed(parse_cgroup, "/proc/%d/cgroup" % pid)
        if cgroup is not None:
            facts["cgroup"] = cgroup
        # A new name is the sign of a new program in the same process.
        if known.renamed or "command" not in facts:
            known.renamed = False
            command = self._command(pid)
            if command is not None:
                facts["command"] = command
        known.children = self._survivors.remember(pid, known.children)

    def _uid(self, pid):
        """The files of a process that must not be traced belong to root, so that its owner comes second."""
        uid = self._parsed(parse_uid, "/proc/%d/status" % pid)
        if uid is not None:
            return uid
        try:
            return self._system.owner("/proc/%d" % pid)
        except OSError:
            return None

    def _owner(self, pid, now):
        """Whose a process is of which nothing can be read: with hidepid=1 its folder is still there."""
        try:
            uid = self._system.owner("/proc/%d" % pid)
        except OSError:
            return {}
        return {"uid": uid, "user": self._user(uid, now)}

    def _user(self, uid, now):
        name, until = self._users.get(uid, (None, now))
        if now >= until:
            if len(self._users) >= _KEEP_USERS:
                self._users.clear()
            found = self._system.user_name(uid) if self._may("looking up uid %d" % uid) else None
            name = printable(found) if found else str(uid)
            self._users[uid] = (name, now + _USER_SECONDS)
        return name

    def _command(self, pid):
        path = "/proc/%d/cmdline" % pid
        if not self._may("reading " + path):
            return None
        try:
            data = self._system.read_bytes(path, COMMAND_BYTES)
        except OSError:
            return None
        return parse_command(data[:COMMAND_BYTES], len(data) >= COMMAND_BYTES)

    def _may(self, text):
        """Note what is about to be done, as it may hang; not where it hung before."""
        return self._mark(text) is not False

    def _parsed(self, parse, path):
        try:
            return parse(self._system.read_bytes(path))
        except OSError:
            return None

    def _booted(self):
        if not self._boot_time_asked:
            self._boot_time_asked = True
            self._boot_time = self._parsed(parse_boot_time, "/proc/stat")
        return self._boot_time

    def _add_children(self, now, records, gone):
        if not gone:
            return
        self._survivors.find(now, gone)
        for record in records:
            children = gone.get(record["pid"])
            if children:
                record["children"] = sorted(children)

    def _forget(self, now):
        """Processes the driver lists no more; kept a while, as a driver may miss one in a tick."""
        if len(self._known) > _KEEP_PROCESSES:
            self._known = {pid: known for pid, known in self._known.items() if known.listed == now}
        for pid in [pid for pid, known in self._known.items() if now - known.listed > _KEEP_SECONDS]:
            del self._known[pid]


def _by_pid(uses):
    """{pid: ([GpuUse], the driver's name)}; a device named twice for a pid is one use of several kinds."""
    found = {}
    for use in uses:
        devices, driver_name = found.get(use["pid"], ([], None))
        found[use["pid"]] = devices, driver_name or use.get("name")
        for device in devices:
            if device["uuid"] == use["uuid"]:
                device["kinds"] += [kind for kind in use.get("kinds", ()) if kind not in device["kinds"]]
                break
        else:
            device = {"uuid": use["uuid"], "kinds": list(use.get("kinds", ()))}
            devices.append(device)
        # The driver counts the same memory under each kind.
        for field in ("memory_bytes", "sm_ratio"):
            value = use.get(field)
            if value is not None and value >= device.get(field, value):
                device[field] = value
    return found


def _report_unreadable(report, hidden, foreign):
    if hidden:
        what = "1 process of another user is" if hidden == 1 else "%d processes of other users are" % hidden
        report(
            "%s hidden (/proc is mounted with hidepid); run the probe as root or in the group that may see them" % what
        )
    elif foreign:
        what = "1 process is" if foreign == 1 else "%d processes are" % foreign
        report("%s outside the probe's container; start it with the host's pids (docker run --pid=host)" % what)
