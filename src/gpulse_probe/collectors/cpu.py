"""Processors, their time counters and the load, from /proc/stat, loadavg and cpuinfo, and /sys/devices/system/cpu."""

CPUS = "/sys/devices/system/cpu"

# /proc/cpuinfo has some 2 kB for each thread, and there are machines with thousands.
LARGEST_FILE = 8 << 20

# What the kernel calls "implementer" and "part" on ARM, where it gives no name (Arm's and the makers' manuals).
ARM_CORES = {
    (0x41, 0xD03): "Cortex-A53",
    (0x41, 0xD07): "Cortex-A57",
    (0x41, 0xD08): "Cortex-A72",
    (0x41, 0xD0B): "Cortex-A76",
    (0x41, 0xD0C): "Neoverse-N1",
    (0x41, 0xD40): "Neoverse-V1",
    (0x41, 0xD41): "Cortex-A78",
    (0x41, 0xD42): "Cortex-A78AE",
    (0x41, 0xD49): "Neoverse-N2",
    (0x41, 0xD4F): "Neoverse-V2",
    (0x41, 0xD83): "Neoverse-V3AE",
    (0x41, 0xD84): "Neoverse-V3",
    (0x41, 0xD85): "Cortex-X925",
    (0x41, 0xD87): "Cortex-A725",
    (0x41, 0xD8E): "Neoverse-N3",
    (0x43, 0x0A1): "ThunderX",
    (0x43, 0x0AF): "ThunderX2",
    (0x46, 0x001): "A64FX",
    (0x48, 0xD01): "Kunpeng-920",
    (0x4E, 0x003): "Denver 2",
    (0x4E, 0x004): "Carmel",
    (0x50, 0x000): "X-Gene",
    (0x51, 0xC00): "Falkor",
    (0xC0, 0xAC3): "Ampere-1",
    (0xC0, 0xAC4): "Ampere-1a",
    (0xC0, 0xAC5): "Ampere-1b",
}

TIMES = (
    "cpu_user_seconds_total",
    "cpu_nice_seconds_total",
    "cpu_system_seconds_total",
    "cpu_idle_seconds_total",
    "cpu_iowait_seconds_total",
    "cpu_irq_seconds_total",
    "cpu_steal_seconds_total",
)
LOADS = ("load_1m", "load_5m", "load_15m")


class Cpu:
    name = "cpu"

    def __init__(self, system):
        self._system = system
        self._facts = None
        self._ticks_per_second = system.clock_ticks()

    def collect(self, _now, _report):
        if self._facts is None:
            self._facts = self._read_facts()
        fields = dict(self._facts)
        fields.update(parse_stat(self._content("/proc/stat"), self._ticks_per_second))
        fields.update(parse_loadavg(self._content("/proc/loadavg")))
        return fields

    def _content(self, path):
        """A sandbox may hide any one of these files; what the others tell is worth having without it."""
        try:
            return self._system.read_bytes(path, LARGEST_FILE)
        except OSError:
            return b""

    def _read_facts(self):
        facts = parse_cpuinfo(self._content("/proc/cpuinfo"))
        if "cpu_model" not in facts:
            board = (self._system.read_line("/proc/device-tree/model") or "").strip("\0 ")
            if board:
                facts["cpu_model"] = board
        facts.update(self._topology())
        return facts

    def _topology(self):
        """Sockets, cores and threads that are online; nothing where /sys is hidden."""
        online = parse_cpu_list(self._system.read_line(CPUS + "/online") or "")
        if not online:
            return {}
        counts = {"cpu_threads": len(online)}
        sockets = self._groups(online, ("package_cpus_list", "core_siblings_list"))
        if sockets is not None:
            counts["cpu_sockets"] = sockets
        if self._system.read_line(CPUS + "/smt/active") == "0":
            counts["cpu_cores"] = len(online)
        else:
            cores = self._groups(online, ("core_cpus_list", "thread_siblings_list"))
            if cores is not None:
                counts["cpu_cores"] = cores
        return counts

    def _groups(self, online, files):
        """How many groups of CPUs there are, asking one CPU of each; the second file is its name in older kernels."""
        left = set(online)
        count = 0
        for cpu in online:
            if cpu not in left:
                continue
            for file in files:
                group = parse_cpu_list(self._system.read_line(f"{CPUS}/cpu{cpu}/topology/{file}") or "")
                if group:
                    break
            else:
                return None
            left.difference_update(group)
            left.discard(cpu)
            count += 1
        return count


def parse_cpu_list(text):
    """The numbers of a kernel list such as "0-3,8"; those it cannot read are left out."""
    cpus = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        try:
            start = int(first)
            end = int(last) if dash else start
        except ValueError:
            continue
        # No kernel has more CPUs than this; a longer range is no list of CPUs.
        if 0 <= start <= end < 1 << 16:
            cpus.extend(range(start, end + 1))
    return sorted(set(cpus))


def parse_stat(data, ticks_per_second):
    """The counters of the first line. Guest time, its last two fields, is contained in user and nice."""
    fields = data[: data.find(b"\n") + 1 or len(data)].split()
    if not fields or fields[0] != b"cpu":
        return {}
    ticks = []
    for field in fields[1:9]:
        if len(field) > 20 or not field.isdigit():
            break
        ticks.append(int(field))
    # The two kinds of interrupt are one field of ours; kernels before 2.6.11 end before the last ones.
    times = ticks[:5]
    if len(ticks) >= 7:
        times.append(ticks[5] + ticks[6])
    times += ticks[7:]
    return {TIMES[place]: ticks / ticks_per_second for place, ticks in enumerate(times)}


def parse_loadavg(data):
    """The load over one, five and fifteen minutes."""
    loads = {}
    for place, field in enumerate(data.split(None, 3)[:3]):
        # bytes.isdigit() knows only 0-9, and a short row of them cannot be infinite.
        if len(field) <= 20 and field.replace(b".", b"", 1).isdigit():
            loads[LOADS[place]] = float(field)
    return loads


def parse_cpuinfo(data):
    """Model and counts, as far as the text tells them: it differs from one architecture to the next."""
    threads = 0
    names, arm_cores, sockets, cores = [], [], set(), set()
    implementer = socket = None
    for line in data.decode("utf-8", "backslashreplace").split("\n"):
        key, colon, value = line.partition(":")
        if not colon:
            continue
        key = key.strip().lower()
        value = " ".join(value.split())
        if key == "processor" and value.isdigit():
            threads += 1
        elif key in ("model name", "cpu") and value and value not in names:
            names.append(value)
        elif key == "cpu implementer":
            implementer = value
        elif key == "cpu part":
            core = _arm_core(implementer, value)
            if core and core not in arm_cores:
                arm_cores.append(core)
        elif key == "physical id":
            socket = value
            sockets.add(value)
        elif key == "core id":
            cores.add((socket, value))
    # A chip of large and small cores has two names; ARM's own name for the core says more than "ARMv8 Processor".
    model = " + ".join(arm_cores) or (names[0] if names else "")
    facts = {"cpu_model": model, "cpu_sockets": len(sockets), "cpu_cores": len(cores), "cpu_threads": threads}
    return {field: value for field, value in facts.items() if value}


def _arm_core(implementer, part):
    try:
        return ARM_CORES.get((int(implementer or "", 16), int(part, 16)))
    except ValueError:
        return None
