"""The nodes a token is for, as people type them."""

from gpulse.config.hosts import parse
from gpulse.errors import TokenError


def names_of(text: str) -> list[str]:
    """All names, each once, in the order of the text; HostsError or TokenError where it is no set of names."""
    names: dict[str, None] = {}
    for address in parse(text):
        if address.user is not None or address.port is not None:
            raise TokenError(f"{str(address)!r:.100}: a token is for a node's name, without a user and without a port")
        names[address.host] = None
    return list(names)
