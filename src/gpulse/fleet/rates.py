"""Counters become rates here, and only here; pure."""

from collections.abc import Sequence

from gpulse.fleet.model import InfinibandPort, Network


def rate(before: float | None, after: float | None, seconds: float) -> float | None:
    """What a counter grew by a second; None where it is unknown, or began anew in between."""
    if before is None or after is None or seconds <= 0 or after < before:
        return None
    try:
        return (after - before) / seconds
    except OverflowError:
        # A number no counter reaches.
        return None


def cpu_ratio(before: Sequence[float | None], after: Sequence[float | None]) -> float | None:
    """Share of CPU time spent working. The times are user, nice, system, irq, steal, then idle and iowait."""
    if None in before or None in after:
        return None
    spent = [(later or 0.0) - (earlier or 0.0) for earlier, later in zip(before, after, strict=True)]
    if min(spent) < 0 or sum(spent) <= 0:
        return None
    return sum(spent[:-2]) / sum(spent)


def total(
    links: Sequence[Network] | Sequence[InfinibandPort] | None,
    field: str,
) -> float | None:
    """A counter summed up over interfaces."""
    values = [value for link in links or () if (value := getattr(link, field)) is not None]
    return sum(values) if values else None
