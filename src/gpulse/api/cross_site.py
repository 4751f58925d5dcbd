"""Tells the hub's own pages from those of other sites, which must change nothing in a visitor's name."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from gpulse.api import page_key
from gpulse.api.security import as_origin
from gpulse.errors import RequestError


def is_own_site(headers: Mapping[str, str]) -> bool:
    """Whether the page that asks came from here; also where nothing says that a page asks at all."""
    origin = headers.get("origin")
    return origin is None or _same(origin, headers.get("host", ""))


def check_own_site(headers: Mapping[str, str], origins: frozenset[str]) -> None:
    """RequestError unless a page from here, or of a site in `origins`, asks for a change."""
    origin = headers.get("origin")
    if origin is None or not page_key.is_from_page(headers):
        missing = "Origin" if origin is None else "X-Gpulse"
        raise RequestError(
            403,
            "cross_site",
            f"a change needs the header {missing}, so that no other site can ask for it",
            "programs had better send a key: Authorization: Bearer gpk_…",
        )
    if not _same(origin, headers.get("host", "")) and as_origin(origin) not in origins:
        raise RequestError(
            403,
            "cross_site",
            f'a page of "{origin[:100]}" may change nothing here',
            "behind a reverse proxy, let it pass on the header Host",
        )


def _same(origin: str, host: str) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    # Both as browsers write them: Host may or may not have the port that is usual.
    return parts.scheme in ("http", "https") and as_origin(origin) == as_origin(f"{parts.scheme}://{host}")
