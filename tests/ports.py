"""Ports that stay free until a test uses them, also between the end of a server and its next start there.

A port that the kernel gave away once (port 0) may be given to any connection that is made meanwhile, and who connects
to one where nobody listens may even reach themselves. These are below those, and each worker of pytest has its own.
"""

import itertools
import os
import random
import socket
from pathlib import Path

_EACH = 3000
_WORKERS = 4


def _own_ports() -> range:
    kernel_first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text("ascii").split()[0])
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _WORKERS
    first = kernel_first - (worker + 1) * _EACH
    return range(first, first + _EACH)


# Not from the first one on: the ports of a run that has just ended may still be in use.
_ports = itertools.cycle(random.sample(_own_ports(), _EACH))


def free_port() -> int:
    """Free for connections and for datagrams; none is given twice in a row of thousands."""
    for port in itertools.islice(_ports, _EACH):
        with socket.socket() as connections, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
            try:
                connections.bind(("127.0.0.1", port))
                datagrams.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")
