"""The address of a hub, as people write it."""

import ipaddress
from urllib.parse import urlsplit

from gpulse.errors import HubError

DEFAULT_HUB = "http://127.0.0.1:7070"


def checked(url: str) -> str:
    wanted = f"--hub {url!r} is not an address; write it like {DEFAULT_HUB}"
    address = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        raise HubError(wanted) from None
    plain = all("!" <= one <= "~" for one in address)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment or not plain:
        raise HubError(wanted)
    return address.rstrip("/")


def is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
