"""How many files and connections the hub may have open, how many it needs, and what to do about the difference."""

import resource
from pathlib import Path

# The listening socket, the loop, databases, logs, libraries, one for each list that is followed, and some who watch.
OWN = 64
# A node takes one connection; of some that come back the old one is still there, and a jump host is another.
PER_NODE = 1.25
# Connections never take the last ones: whoever is served needs some for files, modules and databases.
_KEPT = 32
_KEPT_SHARE = 8


def raise_limit() -> int:
    """Take as many as the machine allows without asking anybody; gives how many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return allowed()


def allowed() -> int:
    """As things are now."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    # The kernel has its own limit where the process has none.
    return soft if soft != resource.RLIM_INFINITY else 1 << 30


def is_last(number: int) -> bool:
    """Whether a new connection with this descriptor would leave too few: the lowest free number is always taken."""
    may = allowed()
    return number >= may - min(_KEPT, may // _KEPT_SHARE)


def open_now() -> int:
    # Listing them opens one.
    return sum(1 for _ in Path("/proc/self/fd").iterdir()) - 1


def needed(nodes: int) -> int:
    """For so many nodes, with room for all to come back at once."""
    return OWN + int(PER_NODE * nodes)


def shortage(nodes: int) -> str | None:
    """What is to be done where there are too few, in a sentence; None where there are enough."""
    may, needs = allowed(), needed(nodes)
    if may >= needs:
        return None
    return (
        f"The hub may open {may:,} files and connections, and {nodes:,} nodes can take {needs:,}; "
        f'raise the limit: "ulimit -n {needs}" as root before "gpulse up", or LimitNOFILE={needs} in its systemd unit'
    )
