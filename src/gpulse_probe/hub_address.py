"""Where the hub is, read from the URL that people give."""

from collections import namedtuple

from gpulse_probe.options import UsageError

API = "/api/v1/ingest"
_PORTS = {"http": 80, "https": 443}


class HubAddress(namedtuple("HubAddress", "secure host port path")):
    """host: a name or an address, without brackets; path: of the API's ingest, with the hub's own sub-path."""

    __slots__ = ()

    @property
    def authority(self):
        """For the Host header."""
        host = "[%s]" % self.host if ":" in self.host else self.host
        return host if self.port == _PORTS["https" if self.secure else "http"] else "%s:%d" % (host, self.port)

    def __str__(self):
        return "%s://%s%s" % ("https" if self.secure else "http", self.authority, self.path[: -len(API)])


def read(text):
    """The address in a URL; UsageError where it is none."""
    scheme, separator, rest = text.partition("://")
    scheme = scheme.lower()
    if not separator or scheme not in _PORTS:
        raise UsageError("--hub: %r does not begin with http:// or https://" % text)
    authority, slash, path = rest.partition("/")
    if "@" in authority:
        raise UsageError("--hub: a URL with a user or password is not understood; a token says who this node is")
    if any(character in text for character in "?#") or any(not "!" <= character <= "~" for character in text):
        raise UsageError("--hub: %r has characters that do not belong there (?, # or none of ASCII)" % text)
    host, port = _parted(authority, text)
    return HubAddress(scheme == "https", host, port or _PORTS[scheme], (slash + path).rstrip("/") + API)


def _parted(authority, text):
    if authority.startswith("["):
        host, bracket, rest = authority[1:].partition("]")
        colon, port = rest[:1], rest[1:]
        valid = bracket and colon in ("", ":")
    else:
        host, colon, port = authority.partition(":")
        valid = ":" not in port
    if not host or not valid or (colon and not (port.isdigit() and 0 < int(port) < 65536)):
        raise UsageError("--hub: %r has no host, or a port that is none" % text)
    return host, int(port or 0)
