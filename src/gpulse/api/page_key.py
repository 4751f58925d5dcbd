"""The page key: what a page of the hub sends beside the cookie, which browsers send to every port of its host."""

from collections.abc import Mapping

# Scripts of other sites may not send it, and their forms cannot.
HEADER = "x-gpulse"
# What a page sends for a change while it has no key: nobody has signed in, or a proxy says who asks.
NO_KEY = "1"
PREFIX = "gpp_"
# Scripts cannot send headers with a WebSocket; what they can name are the protocols they speak.
LIVE = "gpulse.live"
_KEY = "gpulse.key."


def read(headers: Mapping[str, str]) -> str | None:
    """The page key; None where none was sent."""
    named = (one.removeprefix(_KEY) for one in _protocols(headers) if one.startswith(_KEY))
    return next((key for key in (headers.get(HEADER, ""), *named) if key.startswith(PREFIX)), None)


def is_from_page(headers: Mapping[str, str]) -> bool:
    """Whether it was sent in a way that needs the browser's leave for a page of another site."""
    sent = headers.get(HEADER, "")
    return sent == NO_KEY or sent.startswith(PREFIX)


def protocol(headers: Mapping[str, str]) -> str | None:
    """What the live stream answers to the protocols that were named; a key is never said back."""
    return LIVE if LIVE in _protocols(headers) else None


def _protocols(headers: Mapping[str, str]) -> list[str]:
    return [one.strip() for one in headers.get("sec-websocket-protocol", "").split(",")]
