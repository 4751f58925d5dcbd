"""Amounts of memory as people write them: "40GB", "256 MiB", "1.5T"."""

import re

_UNITS = {"k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_SIZE = re.compile(r"\s*([0-9]{1,18}(?:\.[0-9]{1,9})?)\s*(?:([kmgtp])(i?)b?|b)\s*", re.IGNORECASE)


def size(text: str) -> int | None:
    """Bytes; None where the text is no size with its unit. GB is a thousand million, GiB is 2**30."""
    match = _SIZE.fullmatch(text)
    if match is None:
        return None
    number, unit, binary = match.groups()
    factor = (1024 if binary else 1000) ** _UNITS[unit.lower()] if unit else 1
    # Whole numbers stay whole: a float has no room for the last bytes of a large one.
    return int(number) * factor if number.isdigit() else int(float(number) * factor)
