"""Under which names the hub may be asked, so that no other site reaches it by a name of its own (DNS rebinding)."""

import ipaddress
import socket
from collections.abc import Iterable
from pathlib import Path

from gpulse.errors import RequestError


class HostsAllowed:
    """Addresses, localhost, this machine's own names, and those of `access.hosts`.

    Addresses need no list: who rebinds a name to ours still sends that name.
    """

    def __init__(self, listed: Iterable[str], own: Iterable[str] | None = None):
        names = own_names(socket.gethostname()) if own is None else own
        self._names = frozenset(name.lower().rstrip(".") for name in (*listed, *names))

    def check(self, host: str | None) -> None:
        """RequestError where the Host header names nothing of ours."""
        name = name_of(host or "")
        if name is not None and (name in self._names or _is_localhost(name) or _is_address(name)):
            return
        raise RequestError(
            421,
            "unknown_host",
            f'this hub is not called "{host[:100]}"' if host else "the request does not say which host it is for",
            'if it is, name it in the hub\'s settings: access.hosts = ["gpus.example.org"]',
        )


def name_of(host: str) -> str | None:
    """What a Host header names, without its port; None where it is none."""
    if host.startswith("["):
        name, bracket, port = host[1:].partition("]")
        if not bracket or (port and not port.startswith(":")):
            return None
        port = port[1:]
    else:
        name, _, port = host.partition(":")
    if port and not (port.isascii() and port.isdigit() and len(port) <= 5):
        return None
    return name.lower().rstrip(".") or None


def own_names(hostname: str, resolver: Path = Path("/etc/resolv.conf")) -> list[str]:
    """The machine's name, short and with the domains it looks names up in; no name server is asked."""
    short = hostname.partition(".")[0]
    try:
        lines = [line.split() for line in resolver.read_text("utf-8", "replace").splitlines()]
    except OSError:
        # A machine without a resolver has no domains either.
        lines = []
    domains = [word for words in lines if words[:1] in (["search"], ["domain"]) for word in words[1:]]
    return [hostname, short, *(f"{short}.{domain.strip('.')}" for domain in domains)]


def _is_localhost(name: str) -> bool:
    return name == "localhost" or name.endswith(".localhost")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
