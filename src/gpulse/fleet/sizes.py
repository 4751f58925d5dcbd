"""Amounts of memory as people write and read them: G and GB are 10^9 bytes, GiB is 2^30."""

import re

# A card sold as 40 GB has at least 40e9 bytes, but rarely 40 * 2^30: decimal G finds it.
_UNITS = {
    "": 10**9,
    "m": 10**6,
    "mb": 10**6,
    "mib": 2**20,
    "g": 10**9,
    "gb": 10**9,
    "gib": 2**30,
    "t": 10**12,
    "tb": 10**12,
    "tib": 2**40,
}
_SIZE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?) ?([a-z]*)", re.ASCII)


def parse_size(text: str) -> int | None:
    """Bytes of "40G", "40 GB", "40GiB", "512M"; a bare number is GB; None is not understood."""
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None or match[2] not in _UNITS:
        return None
    return round(float(match[1]) * _UNITS[match[2]])


def gibibytes(size: int) -> str:
    """As nvidia-smi counts, with one digit: "79.6 GiB"."""
    return f"{size / 2**30:.1f} GiB"
