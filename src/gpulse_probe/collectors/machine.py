"""What the machine is: its name, distribution, kernel and time since boot, from the kernel and os-release."""

import re

OS_RELEASE = ("/etc/os-release", "/usr/lib/os-release")


class Machine:
    name = "machine"

    def __init__(self, system):
        self._system = system
        self._facts = None

    def collect(self, _now, _report):
        if self._facts is None:
            self._facts = self._read_facts()
        fields = dict(self._facts)
        try:
            uptime = parse_uptime(self._system.read_bytes("/proc/uptime"))
        except OSError:
            uptime = None
        if uptime is not None:
            fields["uptime_seconds"] = uptime
        return fields

    def _read_facts(self):
        system = self._system
        facts = {
            "hostname": system.hostname(),
            "os": self._distribution(),
            "kernel": system.read_line("/proc/sys/kernel/osrelease"),
            "architecture": system.architecture(),
        }
        return {field: value for field, value in facts.items() if value}

    def _distribution(self):
        for path in OS_RELEASE:
            try:
                name = parse_os_release(self._system.read_text(path))
            except OSError:
                continue
            if name:
                return name
        return None


def parse_os_release(text):
    """The distribution as people write it, None where the file does not tell."""
    values = {}
    for line in text.splitlines():
        key, _, value = line.strip().partition("=")
        values[key] = _unquote(value)
    name_and_version = " ".join(filter(None, (values.get("NAME"), values.get("VERSION"))))
    return values.get("PRETTY_NAME") or name_and_version or None


def _unquote(value):
    """The file is written for a shell: quotes around a value, and a backslash before ", $, ` and itself."""
    if len(value) > 1 and value[0] == value[-1] == "'":
        return value[1:-1].strip()
    if len(value) > 1 and value[0] == value[-1] == '"':
        value = value[1:-1]
    return re.sub(r'\\(["$`\\])', r"\1", value).strip()


def parse_uptime(data):
    """Seconds since boot, None where the text is none of the kernel's."""
    fields = data.split(None, 1)
    # bytes.isdigit() knows only 0-9, and a short row of them cannot be infinite.
    if fields and len(fields[0]) <= 20 and fields[0].replace(b".", b"", 1).isdigit():
        return float(fields[0])
    return None
