"""A Snapshot as a table a person can read in a terminal."""

import json
import shutil
import sys
import time

_GREEN, _YELLOW, _RED, _GREY, _BOLD = "32", "33", "31", "90", "1"
_UNKNOWN = "–"
_BAR = 10


class Table:
    """Draws what `line` gives, a Snapshot as JSON; a live table is drawn over the last one on a terminal."""

    def __init__(self, line, live):
        self._line = line
        self._terminal = sys.stdout.isatty()
        self._live = live and self._terminal
        self._encoding = sys.stdout.encoding or "ascii"
        self._previous = None

    def render(self):
        snapshot = json.loads(self._line().decode("ascii"))
        size = shutil.get_terminal_size((120, 50))
        text = draw(snapshot, self._previous, size.columns, colour=self._terminal)
        if self._live:
            first = "\x1b[2J" if self._previous is None else ""
            lines = text.split("\n")[: size.lines - 1]
            text = first + "\x1b[H" + "".join(line + "\x1b[K\n" for line in lines) + "\x1b[J"
        else:
            text += "\n"
        self._previous = snapshot
        return text.encode(self._encoding, "replace")


def draw(snapshot, previous, width, colour):
    """The table as text, at most `width` columns wide. `previous` is the snapshot before, for CPU rates."""
    paint = _paint if colour else lambda text, *_codes: text
    lines = [_headline(snapshot, paint)]
    lines += _host(snapshot.get("host", {}), (previous or {}).get("host", {}), paint)
    lines.append("")
    lines += _gpus(snapshot, paint)
    if snapshot.get("processes"):
        lines.append("")
        lines += _processes(snapshot, width, paint)
    for report in snapshot.get("reports", ()):
        lines.append(paint("! %s: %s" % (report["collector"], report["message"]), _RED))
    return "\n".join(_cut(line, width) for line in lines)


def _headline(snapshot, paint):
    host = snapshot.get("host", {})
    parts = [paint(snapshot.get("node") or _UNKNOWN, _BOLD)]
    parts += [host[name] for name in ("os", "kernel") if name in host]
    if "uptime_seconds" in host:
        parts.append("up " + duration(host["uptime_seconds"]))
    parts.append(time.strftime("%H:%M:%S", time.localtime(snapshot.get("time", 0))))
    return paint(" · ", _GREY).join(parts)


def _host(host, before, paint):
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
    lines = ["  ".join(first)] if first else []
    memory = []
    if "memory_total_bytes" in host:
        memory.append("MEM  " + _filled(host.get("memory_used_bytes"), host["memory_total_bytes"], paint))
    if host.get("swap_total_bytes"):
        memory.append("SWAP " + _filled(host.get("swap_used_bytes"), host["swap_total_bytes"], paint))
    if memory:
        lines.append("   ".join(memory))
    for disk in host.get("disks", ()):
        used = _filled(disk.get("used_bytes"), disk.get("total_bytes"), paint)
        lines.append("DISK %s  %s  %s" % (used, disk["mount"], paint(disk.get("kind", ""), _GREY)))
    for network in host.get("networks", ()):
        if network.get("addresses"):
            lines.append("NET  %s  %s" % (network["interface"], ", ".join(network["addresses"])))
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


def _gpus(snapshot, paint):
    gpus = snapshot.get("gpus")
    if gpus is None:
        return [paint("The GPUs cannot be read at the moment.", _RED)]
    if not gpus:
        return ["No GPU found on this machine."]
    people = _people(snapshot)
    names = [_name(gpu) for gpu in gpus]
    widest = max(len(name) for name in names)
    title = "GPU  %s  UTIL  %s  TEMP  POWER        FAN  USED BY" % ("MODEL".ljust(widest), "MEMORY".ljust(_BAR + 18))
    lines = [paint(title, _GREY)]
    for gpu, name in zip(gpus, names):
        lines.append(
            "%3s  %s  %s  %s  %s  %s  %s  %s"
            % (
                "" if "parent_uuid" in gpu else gpu["index"],
                name.ljust(widest),
                _percent(gpu.get("utilization_ratio")),
                _filled(gpu.get("memory_used_bytes"), gpu.get("memory_total_bytes"), paint),
                _temperature(gpu, paint),
                _power(gpu),
                _percent(gpu.get("fan_ratio")),
                paint(gpu["fault"], _RED) if "fault" in gpu else people.get(gpu.get("uuid"), ""),
            )
        )
    return lines


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
            people = held.setdefault(use["uuid"], {})
            people[user] = people.get(user, 0) + use.get("memory_bytes", 0)
    return {
        uuid: ", ".join("%s %s" % (user, size(held)) for user, held in sorted(people.items(), key=lambda one: -one[1]))
        for uuid, people in held.items()
    }


def _processes(snapshot, width, paint):
    indexes = {gpu.get("uuid"): gpu["index"] for gpu in snapshot.get("gpus") or ()}
    users = [_user(process) for process in snapshot["processes"]]
    widest = max([4] + [len(user) for user in users])
    lines = [paint("    PID  %s  GPU   MEMORY   SM   RUNNING  COMMAND" % "USER".ljust(widest), _GREY)]
    for process, user in zip(snapshot["processes"], users):
        for use in process.get("gpus", ()):
            started = process.get("start_time")
            line = "%7d  %s  %3s  %7s  %s  %s  %s" % (
                process["pid"],
                user.ljust(widest),
                indexes.get(use["uuid"], _UNKNOWN),
                size(use.get("memory_bytes")),
                _percent(use.get("sm_ratio")),
                (duration(snapshot["time"] - started) if started else _UNKNOWN).rjust(7),
                process.get("command") or process.get("name") or _UNKNOWN,
            )
            code = _RED if process.get("vanished") else _GREY if process.get("nice", 0) > 0 else None
            lines.append(paint(_cut(line, width), code) if code else line)
    return lines


def _user(process):
    return "(dead)" if process.get("vanished") and "user" not in process else process.get("user", _UNKNOWN)


def _filled(used, total, paint):
    """A bar with used and total; green, yellow from 60 %, red from 90 %."""
    if not total:
        return "%s %s" % ("░" * _BAR, _UNKNOWN.rjust(17))
    text = "%7s / %7s" % (size(used), size(total))
    if used is None:
        return "%s %s" % ("░" * _BAR, text)
    share = min(1.0, used / total)
    full = round(share * _BAR)
    colour = _RED if share > 0.9 else _YELLOW if share > 0.6 else _GREEN
    return "%s%s %s" % (paint("█" * full, colour), paint("░" * (_BAR - full), _GREY), text)


def _percent(ratio):
    return "%3d%%" % round(100 * ratio) if ratio is not None else _UNKNOWN.rjust(4)


def _temperature(gpu, paint):
    celsius = gpu.get("temperature_celsius")
    if celsius is None:
        return _UNKNOWN.rjust(4)
    hot = celsius >= gpu.get("temperature_slowdown_celsius", 90) - 5
    text = "%2d°C" % celsius
    return paint(text, _RED) if hot else text


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


def _paint(text, *codes):
    return "\x1b[%sm%s\x1b[0m" % (";".join(codes), text) if text else text


def _cut(line, width):
    """At most so many columns; colour codes take none."""
    if len(line) <= width:
        return line
    shown, position = 0, 0
    while position < len(line):
        if line[position] == "\x1b":
            position = line.find("m", position) + 1
            continue
        if shown == width - 1 and len(line) - position > 1:
            rest = line[position:]
            return line[:position] + ("…" if _visible(rest) > 1 else rest) + ("\x1b[0m" if "\x1b" in line else "")
        shown += 1
        position += 1
    return line


def _visible(text):
    shown, position = 0, 0
    while position < len(text):
        if text[position] == "\x1b":
            position = text.find("m", position) + 1
            continue
        shown += 1
        position += 1
    return shown
