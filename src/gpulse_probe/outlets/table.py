"""A Snapshot as a table a person can read in a terminal."""

import json
import os
import sys
import time

from gpulse_probe.outlets.cells import Line, columns, in_ascii, left

_GREEN, _YELLOW, _RED, _GREY, _BOLD = "32", "33", "31", "90", "1"
_UNKNOWN = "–"
_BAR = 10
# GPU data older than this are said to be.
_OLD_SECONDS = 2.0
_USUAL_SIZE = (120, 50)


class Table:
    """Draws what `line` gives, a Snapshot as JSON; a live table is drawn over the last one on a terminal."""

    def __init__(self, line, live, output):
        self._line = line
        self._output = output
        self._terminal = os.isatty(output)
        self._live = live and self._terminal
        self._encoding = sys.stdout.encoding or "ascii"
        self._previous = None

    def render(self):
        snapshot = json.loads(self._line().decode("ascii"))
        width, height = terminal_size(self._output)
        text = draw(snapshot, self._previous, width, colour=self._terminal)
        if self._live:
            first = "\x1b[2J" if self._previous is None else ""
            lines = text.split("\n")[: max(1, height - 1)]
            text = first + "\x1b[H" + "".join(line + "\x1b[K\n" for line in lines) + "\x1b[J"
        else:
            text += "\n"
        self._previous = snapshot
        try:
            return text.encode(self._encoding)
        except UnicodeEncodeError:
            return in_ascii(text).encode(self._encoding, "replace")


def terminal_size(output):
    """Columns and lines: COLUMNS and LINES where they are set, else the terminal's, else what is usual."""
    try:
        found = os.get_terminal_size(output)
    except OSError:
        found = _USUAL_SIZE
    told = [os.environ.get(name, "") for name in ("COLUMNS", "LINES")]
    sizes = [int(word) if word.isdigit() else 0 for word in told]
    return tuple(size or real or usual for size, real, usual in zip(sizes, found, _USUAL_SIZE))


def draw(snapshot, previous, width, colour):
    """The table as text, at most `width` columns wide. `previous` is the snapshot before, for CPU rates."""
    lines = [_headline(snapshot)]
    lines += _host(snapshot.get("host", {}), (previous or {}).get("host", {}))
    lines.append(Line())
    lines += _gpus(snapshot)
    if snapshot.get("processes"):
        lines.append(Line())
        lines += _processes(snapshot)
    elif "processes" not in snapshot and snapshot.get("gpus"):
        lines.append(Line().add("The processes on the GPUs are unknown.", _YELLOW))
    for report in snapshot.get("reports", ()):
        lines.append(Line().add("! %s: %s" % (report["collector"], report["message"]), _RED))
    return "\n".join(line.drawn(width, colour) for line in lines)


def _headline(snapshot):
    host = snapshot.get("host", {})
    line = Line().add(snapshot.get("node") or _UNKNOWN, _BOLD)
    parts = [host[name] for name in ("os", "kernel") if name in host]
    if "uptime_seconds" in host:
        parts.append("up " + duration(host["uptime_seconds"]))
    parts.append(time.strftime("%H:%M:%S", time.localtime(snapshot.get("time", 0))))
    for part in parts:
        line.add(" · ", _GREY).add(part)
    return line


def _host(host, before):
    first = []
    if "cpu_threads" in host:
        shape = "%d×%dC/%dT" % (
            host.get("cpu_sockets", 1),
            host.get("cpu_cores", host["cpu_threads"]) // max(1, host.get("cpu_sockets", 1)),
            host["cpu_threads"],
        )
        first.append("CPU  %s  %s" % (host.get("cpu_model", ""), shape))
    busy = _cpu_share(host, before)
    if busy is not None:
        first.append("%3d %%" % round(100 * busy))
    if "load_1m" in host:
        first.append("load %.2f" % host["load_1m"])
    lines = [Line("  ".join(first))] if first else []
    memory = Line()
    if "memory_total_bytes" in host:
        memory.add("MEM  ").extend(_filled(host.get("memory_used_bytes"), host["memory_total_bytes"]))
    if host.get("swap_total_bytes"):
        memory.add("   SWAP ").extend(_filled(host.get("swap_used_bytes"), host["swap_total_bytes"]))
    lines.append(memory)
    for disk in host.get("disks", ()):
        line = Line("DISK ").extend(_filled(disk.get("used_bytes"), disk.get("total_bytes")))
        lines.append(line.add("  %s  " % disk["mount"]).add(disk.get("kind", ""), _GREY))
    for network in host.get("networks", ()):
        if network.get("addresses"):
            lines.append(Line("NET  %s  %s" % (network["interface"], ", ".join(network["addresses"]))))
    return lines


def _cpu_share(host, before):
    """Share of CPU time spent working since the snapshot before."""
    names = [name for name in host if name.startswith("cpu_") and name.endswith("_seconds_total")]
    if not before or not names:
        return None
    spent = {name: host[name] - before.get(name, host[name]) for name in names}
    total = sum(spent.values())
    idle = spent.get("cpu_idle_seconds_total", 0) + spent.get("cpu_iowait_seconds_total", 0)
    return (total - idle) / total if total > 0 else None


def _gpus(snapshot):
    gpus = snapshot.get("gpus")
    if gpus is None:
        return [Line().add("The GPUs cannot be read at the moment.", _RED)]
    if not gpus:
        return [Line("No GPU found on this machine.")]
    people = _people(snapshot)
    names = [_name(gpu) for gpu in gpus]
    widest = max(columns(left(name, 0)) for name in names)
    title = "GPU  %s  UTIL  %s  TEMP  POWER        FAN  USED BY" % ("MODEL".ljust(widest), "MEMORY".ljust(_BAR + 18))
    lines = [Line().add(title, _GREY)]
    age = snapshot.get("devices_age_seconds", 0.0)
    if age >= _OLD_SECONDS:
        lines[0].add("  (read %d s ago)" % age, _YELLOW)
    for gpu, name in zip(gpus, names):
        index = "" if "parent_uuid" in gpu else gpu["index"]
        line = Line("%3s  %s  %s  " % (index, left(name, widest), _percent(gpu.get("utilization_ratio"))))
        line.extend(_filled(gpu.get("memory_used_bytes"), gpu.get("memory_total_bytes"))).add("  ")
        line.add(*_temperature(gpu)).add("  %s  %s  " % (_power(gpu), _percent(gpu.get("fan_ratio"))))
        if "fault" in gpu:
            line.add(gpu["fault"], _RED)
        else:
            line.add(people.get(gpu.get("uuid"), ""))
            _add_unknown(line, gpu)
        lines.append(line)
    return lines


def _add_unknown(line, gpu):
    """Say what is unknown about a GPU, so that nobody takes it for free."""
    gap = "" if line.ends_blank() else "  "
    if gpu.get("failed_fields"):
        text = "unknown: %s (%s)" % (", ".join(gpu["failed_fields"]), gpu.get("failed_reason", _UNKNOWN))
        if "age_seconds" in gpu:
            text += ", read %d s ago" % gpu["age_seconds"]
        line.add(gap + text, _YELLOW)
    elif gpu.get("processes_listed") is False:
        line.add(gap + "processes are not listed", _GREY)


def _name(gpu):
    if "parent_uuid" in gpu:
        return "└ " + gpu.get("mig_profile", "MIG %s" % gpu.get("mig_index", ""))
    return gpu.get("name", _UNKNOWN)


def _people(snapshot):
    """Who holds how much of each GPU."""
    held = {}
    for process in snapshot.get("processes") or ():
        user = "(dead)" if process.get("vanished") else process.get("user", _UNKNOWN)
        for use in process.get("gpus", ()):
            held.setdefault(use["uuid"], {}).setdefault(user, []).append(use.get("memory_bytes"))
    return {
        uuid: ", ".join(
            "%s %s" % (user, _total(sizes)) for user, sizes in sorted(people.items(), key=lambda one: -_known(one[1]))
        )
        for uuid, people in held.items()
    }


def _known(sizes):
    return sum(size for size in sizes if size is not None)


def _total(sizes):
    """A sum as text; one without its unknown parts ends with a plus."""
    if None not in sizes:
        return size(_known(sizes))
    return size(_known(sizes)) + "+" if any(one is not None for one in sizes) else _UNKNOWN


def _processes(snapshot):
    indexes = {gpu.get("uuid"): gpu["index"] for gpu in snapshot.get("gpus") or ()}
    users = [_user(process) for process in snapshot["processes"]]
    widest = max([4] + [columns(left(user, 0)) for user in users])
    lines = [Line().add("    PID  %s  GPU   MEMORY   SM   RUNNING  COMMAND" % "USER".ljust(widest), _GREY)]
    for process, user in zip(snapshot["processes"], users):
        for use in process.get("gpus", ()):
            started = process.get("start_time")
            text = "%7d  %s  %3s  %7s  %s  %s  %s" % (
                process["pid"],
                left(user, widest),
                indexes.get(use["uuid"], _UNKNOWN),
                size(use.get("memory_bytes")),
                _percent(use.get("sm_ratio")),
                (duration(snapshot["time"] - started) if started else _UNKNOWN).rjust(7),
                process.get("command") or process.get("name") or _UNKNOWN,
            )
            lines.append(Line().add(text, _RED if process.get("vanished") else _GREY if _is_nice(process) else None))
    return lines


def _is_nice(process):
    return process.get("nice", 0) > 0


def _user(process):
    return "(dead)" if process.get("vanished") and "user" not in process else process.get("user", _UNKNOWN)


def _filled(used, total):
    """A bar with used and total; green, yellow from 60 %, red from 90 %."""
    text = " %7s / %7s" % (size(used), size(total)) if total else " " + _UNKNOWN.rjust(17)
    if not total or used is None:
        return Line("░" * _BAR + text)
    share = min(1.0, used / total)
    full = round(share * _BAR)
    colour = _RED if share > 0.9 else _YELLOW if share > 0.6 else _GREEN
    return Line().add("█" * full, colour).add("░" * (_BAR - full), _GREY).add(text)


def _percent(ratio):
    return "%3d%%" % round(100 * ratio) if ratio is not None else _UNKNOWN.rjust(4)


def _temperature(gpu):
    """The temperature as text, and its colour."""
    celsius = gpu.get("temperature_celsius")
    if celsius is None:
        return _UNKNOWN.rjust(4), None
    hot = celsius >= gpu.get("temperature_slowdown_celsius", 90) - 5
    return "%2d°C" % celsius, _RED if hot else None


def _power(gpu):
    if "power_watts" not in gpu:
        return _UNKNOWN.rjust(10)
    limit = gpu.get("power_limit_watts")
    return ("%.0f/%s W" % (gpu["power_watts"], "%.0f" % limit if limit else _UNKNOWN)).rjust(10)


def size(count):
    """Bytes in three digits or so, as people say them."""
    if count is None:
        return _UNKNOWN
    for unit in ("B", "K", "M", "G", "T"):
        if abs(count) < 1000:
            return ("%d%s" if count == int(count) or abs(count) >= 100 else "%.1f%s") % (count, unit)
        count /= 1024.0
    return "%.1fP" % count


def duration(seconds):
    """A time span by its two largest units."""
    seconds = max(0, int(seconds))
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    if days:
        return "%dd %02dh" % (days, hours)
    if hours:
        return "%dh %02dm" % (hours, minutes)
    return "%dm %02ds" % (minutes, seconds % 60)
