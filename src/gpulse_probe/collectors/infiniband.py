"""InfiniBand and RoCE ports, from /sys/class/infiniband."""

ADAPTERS = "/sys/class/infiniband"
SLOW_SECONDS = 10.0

# The counters of data are in words of four bytes.
WORD = 4


class Infiniband:
    name = "infiniband"

    def __init__(self, system):
        self._system = system
        self._ports = []
        self._read_at = None

    def collect(self, now, _report):
        # The adapter's firmware is asked for every file: it must not be bothered at each tick for what seldom changes.
        if self._read_at is None or now - self._read_at >= SLOW_SECONDS:
            self._ports = self._read_ports()
            self._read_at = now
        if not self._ports:
            return None
        ports = []
        for folder, slow_fields in self._ports:
            port = dict(slow_fields)
            for field, file in (("received_bytes_total", "port_rcv_data"), ("sent_bytes_total", "port_xmit_data")):
                words = self._counter(folder, file)
                if words is not None:
                    port[field] = words * WORD
            ports.append(port)
        return {"infiniband": ports}

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
