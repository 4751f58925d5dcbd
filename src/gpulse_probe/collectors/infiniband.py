"""InfiniBand and RoCE ports, from /sys/class/infiniband."""

from gpulse_probe.aside import Aside
from gpulse_probe.child import Child

ADAPTERS = "/sys/class/infiniband"
SLOW_SECONDS = 10.0

# The counters of data are in words of four bytes.
WORD = 4


class Infiniband:
    """Every file asks the adapter's firmware, which may hang: so they are read in a child, where there are any.

    `close()` ends it.
    """

    name = "infiniband"

    def __init__(self, system, start_child=Child):
        self._system = system
        self._aside = Aside(self._read, "InfiniBand adapters", stays=True, start_child=start_child)
        self._present = False
        self._looked_at = None
        self._ports = []
        self._read_at = None

    def collect(self, now, report):
        if self._looked_at is None or now - self._looked_at >= SLOW_SECONDS:
            self._looked_at = now
            self._present = bool(self._system.names(ADAPTERS))
        if not self._present:
            self.close()
            return None
        self._aside.collect(now, report, ask=True)
        return {"infiniband": self._aside.answer} if self._aside.answer else None

    def close(self):
        self._aside.close()

    def _read(self, now):
        """In the child."""
        # It must not be bothered at each tick for what seldom changes.
        if self._read_at is None or now - self._read_at >= SLOW_SECONDS:
            self._ports = self._read_ports()
            self._read_at = now
        ports = []
        for folder, slow_fields in self._ports:
            port = dict(slow_fields)
            for field, file in (("received_bytes_total", "port_rcv_data"), ("sent_bytes_total", "port_xmit_data")):
                words = self._counter(folder, file)
                if words is not None:
                    port[field] = words * WORD
            ports.append(port)
        return ports

    def _read_ports(self):
        ports = []
        for device in self._system.names(ADAPTERS):
            folder = f"{ADAPTERS}/{device}/ports"
            for number in sorted(int(name) for name in self._system.names(folder) if _is_number(name)):
                ports.append((f"{folder}/{number}", self._read_port(device, number, f"{folder}/{number}")))
        return ports

    def _read_port(self, device, number, folder):
        errors = [self._counter(folder, file) for file in ("port_rcv_errors", "symbol_error")]
        known_errors = [count for count in errors if count is not None]
        port = {
            "device": device,
            "port": number,
            "link": self._system.read_line(folder + "/link_layer"),
            "state": parse_state(self._system.read_line(folder + "/state") or ""),
            "speed_bits_per_second": parse_rate(self._system.read_line(folder + "/rate") or ""),
            "errors_total": sum(known_errors) if known_errors else None,
            "link_downed_total": self._counter(folder, "link_downed"),
        }
        return {field: value for field, value in port.items() if value is not None}

    def _counter(self, folder, file):
        return parse_counter(self._system.read_line(f"{folder}/counters/{file}") or "")


def parse_counter(text):
    """A counter, None where the adapter has none: "N/A (no PMA)"."""
    text = text.strip()
    return int(text) if _is_number(text) else None


def parse_state(text):
    """ACTIVE of "4: ACTIVE"."""
    return text.rpartition(":")[2].strip() or None


def parse_rate(text):
    """Bits per second of "400 Gb/sec (4X NDR)"."""
    figure, _, unit = text.strip().partition(" ")
    if not unit.startswith("Gb/sec") or not _is_number(figure.replace(".", "", 1)):
        return None
    return round(float(figure) * 1e9) or None


def _is_number(text):
    # str.isdigit() alone knows digits of other scripts, and ² which int() does not take.
    return len(text) <= 20 and text.isdigit() and all("0" <= digit <= "9" for digit in text)
