"""Network interfaces, from /proc/net/dev, /sys/class/net and the kernel's list of addresses (netlink)."""

import socket
import struct

from gpulse_probe.aside import Aside
from gpulse_probe.child import Child

INTERFACES = "/sys/class/net"
SLOW_SECONDS = 10.0

# What container engines, virtual machines and tunnels make; an interface named by people does not begin so.
VIRTUAL = (
    *("veth", "docker", "br-", "virbr", "cni", "cali", "flannel", "vxlan", "geneve", "genev_", "cilium", "lxc", "lxd"),
    *("podman", "nerdctl", "weave", "kube-", "nodelocaldns", "antrea", "ovs-", "vnet", "vmnet", "macvtap", "tap"),
    *("dummy", "ifb", "tunl", "gre0", "gretap", "erspan", "sit0", "ip6tnl", "ip6gre", "ip_vti", "ip6_vti", "teql"),
)

# Numbers of the kernel's interface (linux/netlink.h, rtnetlink.h, if_addr.h, if.h).
NEW_ADDRESS = 20
ATTRIBUTE_ADDRESS, ATTRIBUTE_LOCAL = 1, 2
SCOPE_LINK = 253
FLAG_RUNNING = 0x40
MESSAGE_HEAD = struct.Struct("=LHHLL")
ADDRESS_HEAD = struct.Struct("=BBBBL")
ATTRIBUTE_HEAD = struct.Struct("=HH")
FAMILIES = {socket.AF_INET: 4, socket.AF_INET6: 16}

# Places of the eight counters for each direction in a line of /proc/net/dev.
COUNTERS = (
    ("received_bytes_total", 0),
    ("sent_bytes_total", 8),
    ("received_errors_total", 2),
    ("sent_errors_total", 10),
)


class Networks:
    """Addresses and speeds wait for a lock that a driver in trouble may hold: so they are read in a child.

    The counters do not. `close()` ends a child that has not answered yet.
    """

    name = "networks"

    def __init__(self, system, start_child=Child):
        self._system = system
        self._aside = Aside(self._read, "the kernel's list of interfaces", stays=False, start_child=start_child)
        self._read_at = None

    def collect(self, now, report):
        lines = self._system.read_bytes("/proc/net/dev").split(b"\n")
        due = self._read_at is None or now - self._read_at >= SLOW_SECONDS
        if due:
            self._read_at = now
        self._aside.collect(now, report, ask=due)
        interfaces, trouble = self._aside.answer or ({}, None)
        if trouble:
            report(trouble)
        return {"networks": parse_counters(lines, interfaces)} if self._aside.answer else None

    def close(self):
        self._aside.close()

    def _read(self, _now):
        """In the child: what changes seldom, by the name of the interface, and what is wrong."""
        names = parse_names(self._system.read_bytes("/proc/net/dev").split(b"\n"))
        trouble = addresses = None
        try:
            addresses = parse_addresses(self._system.address_dump())
        except OSError as error:
            trouble = f"the kernel does not tell the addresses of the interfaces: {error.strerror or error}"
        interfaces = {}
        for name in sorted(map(_readable, names)):
            if name == "lo" or name.startswith(VIRTUAL):
                continue
            interface = self._read_interface(name, addresses)
            if interface is not None:
                interfaces[name] = interface
        return interfaces, trouble

    def _read_interface(self, name, addresses):
        folder = f"{INTERFACES}/{name}"
        index = parse_number(self._system.read_line(folder + "/ifindex") or "")
        own_addresses = None if addresses is None or index is None else addresses.get(index, [])
        if own_addresses == [] and self._belongs_to_others(folder):
            return None
        interface = {"interface": name}
        if own_addresses is not None:
            interface["addresses"] = own_addresses
        up = self._is_up(folder)
        if up is not None:
            interface["up"] = up
        megabits = parse_number(self._system.read_line(folder + "/speed") or "")
        # Drivers that do not know say -1, some of them without its sign.
        if megabits and megabits != 0xFFFFFFFF:
            interface["speed_bits_per_second"] = megabits * 1000000
        return interface

    def _belongs_to_others(self, folder):
        """Without an address, a bridge is for virtual machines, and so is a virtual function of an adapter."""
        return self._system.exists(folder + "/bridge") or self._system.exists(folder + "/device/physfn")

    def _is_up(self, folder):
        state = self._system.read_line(folder + "/operstate")
        if state != "unknown":
            return None if state is None else state == "up"
        # Many virtual drivers never set the state; the carrier cannot be read while the interface is down.
        carrier = self._system.read_line(folder + "/carrier")
        if carrier is not None:
            return carrier == "1"
        flags = self._system.read_line(folder + "/flags") or ""
        try:
            return bool(int(flags, 16) & FLAG_RUNNING)
        except ValueError:
            return None


def parse_number(text):
    """A number of /sys, None where it is none or negative."""
    try:
        number = int(text)
    except ValueError:
        return None
    return number if number >= 0 else None


def _readable(raw):
    return raw.decode("utf-8", "backslashreplace")


def parse_names(lines):
    """The interfaces of /proc/net/dev, below its two lines of heading."""
    names = (line.rpartition(b":")[0].strip() for line in lines[2:])
    return [name for name in names if name]


def parse_counters(lines, interfaces):
    """The interfaces that /proc/net/dev has, in the order given, each with its counters."""
    found = {}
    for line in lines[2:]:
        # Old kernels leave no space after the colon.
        name, _, rest = line.rpartition(b":")
        name = _readable(name.strip())
        if name not in interfaces:
            continue
        fields = rest.split()
        interface = found[name] = dict(interfaces[name])
        for field, place in COUNTERS:
            if place < len(fields) and len(fields[place]) <= 20 and fields[place].isdigit():
                interface[field] = int(fields[place])
    return [found[name] for name in interfaces if name in found]


def parse_addresses(messages):
    """The addresses of each interface by its index, without those of the link and the host alone."""
    addresses = {}
    offset = 0
    while offset + MESSAGE_HEAD.size <= len(messages):
        length, kind = MESSAGE_HEAD.unpack_from(messages, offset)[:2]
        if length < MESSAGE_HEAD.size:
            break
        if kind == NEW_ADDRESS:
            index, address = _read_address(messages[offset + MESSAGE_HEAD.size : offset + length])
            if address and address not in addresses.setdefault(index, []):
                addresses[index].append(address)
        offset += _aligned(length)
    return addresses


def _read_address(message):
    if len(message) < ADDRESS_HEAD.size:
        return None, None
    family, _, _, scope, index = ADDRESS_HEAD.unpack_from(message)
    size = FAMILIES.get(family)
    if size is None or scope >= SCOPE_LINK:
        return index, None
    attributes = {}
    offset = ADDRESS_HEAD.size
    while offset + ATTRIBUTE_HEAD.size <= len(message):
        length, kind = ATTRIBUTE_HEAD.unpack_from(message, offset)
        if length < ATTRIBUTE_HEAD.size:
            break
        attributes[kind] = message[offset + ATTRIBUTE_HEAD.size : offset + length]
        offset += _aligned(length)
    # On a point-to-point link "address" is the other end.
    raw = attributes.get(ATTRIBUTE_LOCAL) or attributes.get(ATTRIBUTE_ADDRESS) or b""
    if len(raw) != size:
        return index, None
    text = socket.inet_ntop(family, raw)
    # People may give link-local addresses a wider scope, for the service processor among others.
    return index, None if text.startswith(("169.254.", "fe80:")) else text


def _aligned(length):
    return (length + 3) & ~3
