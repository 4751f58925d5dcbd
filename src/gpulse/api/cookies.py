"""The cookie of a signed-in browser, and that of one that is away to sign in elsewhere."""

from collections.abc import Mapping

# A cookie is as old as its session may become at most; the hub decides when it ends.
_DAY_SECONDS = 86400


class Cookies:
    """Named after the hub: browsers do not tell the ports of one machine apart."""

    def __init__(self, hub_id: str, base_path: str, session_days: float):
        self.name = f"gpulse_{hub_id[:8]}"
        self.trip = f"{self.name}_sso"
        # No narrower one for a trip: a proxy may put a path before ours, of which nobody tells us.
        self._path = base_path + "/"
        self._seconds = int(session_days * _DAY_SECONDS)

    def read(self, headers: Mapping[str, str]) -> str | None:
        """The session's; where there are several of its name, the first."""
        return _value(headers.get("cookie", ""), self.name)

    def read_trip(self, headers: Mapping[str, str]) -> str | None:
        return _value(headers.get("cookie", ""), self.trip)

    def set(self, value: str, secure: bool) -> str:
        return _line(self.name, value, self._path, self._seconds, secure)

    def clear(self, secure: bool) -> str:
        return _line(self.name, "", self._path, 0, secure)

    def set_trip(self, value: str, seconds: int, secure: bool) -> str:
        return _line(self.trip, value, self._path, seconds, secure)

    def clear_trip(self, secure: bool) -> str:
        return _line(self.trip, "", self._path, 0, secure)


def _line(name: str, value: str, path: str, seconds: int, secure: bool) -> str:
    # Lax: it comes along when somebody follows a link to the hub, and with nothing else of another site.
    words = [f"{name}={value}", f"Path={path}", f"Max-Age={seconds}", "HttpOnly", "SameSite=Lax"]
    return "; ".join([*words, "Secure"] if secure else words)


def _value(header: str, name: str) -> str | None:
    for part in header.split(";"):
        key, equals, value = part.strip().partition("=")
        if equals and key == name:
            return value.strip().strip('"')
    return None
