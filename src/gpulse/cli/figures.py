"""How figures and states are written in a terminal. Unknown is a dash."""

import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence

from gpulse.cli.tables import UNKNOWN, Span
from gpulse.errors import GpulseError
from gpulse.fleet.views import GPU_STATES, GpuView

_GIB = 2**30
# A state is a word and a shape, for eyes and terminals without colours. Round is only what is free.
_STATES = {
    "free": ("●", "green"),
    "busy": ("■", "blue"),
    "idle": ("▨", "yellow"),
    "reserved": ("◇", "violet"),
    "unhealthy": ("▲", "red"),
    "unknown": ("□", "yellow"),
    "stale": ("░", "dim"),
    "down": ("✕", "red"),
    "up": ("✓", "green"),
    "new": ("…", "dim"),
    # A card split into MIG instances, which are counted in its stead.
    "split": ("┬", "dim"),
    # A GPU that another node of the same machine counts.
    "double": ("=", "dim"),
}
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


def state(word: str) -> Span:
    shape, style = _STATES.get(word, ("?", ""))
    return Span(f"{shape} {word}", style)


def strip(gpus: Iterable[GpuView]) -> list[Span]:
    """One shape per GPU."""
    return [Span(*_STATES.get(gpu.state or "", ("?", ""))) for gpu in gpus if gpu.counted]


def percent(ratio: float | None) -> str:
    return UNKNOWN if ratio is None else f"{100 * ratio:.0f} %"


def used_of(used: int | None, total: int | None, at_least: bool = False) -> str:
    """Gibibytes, as "71.2 / 79.6"; `at_least`: more may be used."""
    return UNKNOWN if total is None else f"{'≥ ' if at_least else ''}{gibibytes(used)} / {gibibytes(total)}"


def gibibytes(count: float | None) -> str:
    return UNKNOWN if count is None else f"{count / _GIB:.1f}"


def memory(count: float) -> str:
    """A sum, with its unit."""
    return f"{count / _GIB:.1f} GiB" if count < 1000 * _GIB else f"{count / _GIB / 1024:.1f} TiB"


def watts(now: float | None, limit: float | None) -> str:
    if now is None:
        return UNKNOWN
    return f"{now:.0f} / {limit:.0f}" if limit is not None else f"{now:.0f}"


def power(sum_of_watts: float) -> str:
    return f"{sum_of_watts:.0f} W" if sum_of_watts < 10_000 else f"{sum_of_watts / 1000:.1f} kW"


def age(seconds: float | None) -> str:
    """One unit is enough to see whether something is fresh."""
    if seconds is None:
        return UNKNOWN
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def clock(moment: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))


def duration(text: str) -> float:
    """Seconds of "90", "30s", "15m", "2h", "1h30m", "1d"."""
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*(s|min|m|h|d)?", text.strip())
    if not re.fullmatch(r"(?:\d+(?:\.\d+)?\s*(?:s|min|m|h|d)\s*)+|\d+(?:\.\d+)?", text.strip()):
        raise GpulseError(f"{text!r} is not a length of time; write seconds or 30s, 15m, 2h, 1h30m, 1d")
    return sum(float(count) * _SECONDS[unit or "s"] for count, unit in parts)


def amount(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def gpu_states(gpus: Iterable[GpuView]) -> str:
    """How many GPUs there are, and in which states: "320 GPUs: 41 free, 250 busy, 29 idle"."""
    counts = Counter(gpu.state for gpu in gpus if gpu.counted and gpu.state is not None)
    told = ", ".join(f"{counts[word]} {word}" for word in reversed(GPU_STATES) if counts[word])
    total = amount(counts.total(), "GPU", "GPUs")
    return f"{total}: {told}" if told else total


def gpu_index(gpu: GpuView) -> str:
    """The number on its node; of a MIG instance the card's and its own: "3.1"."""
    if gpu.index is None:
        return UNKNOWN
    return str(gpu.index) if gpu.parent_uuid is None or gpu.mig_index is None else f"{gpu.index}.{gpu.mig_index}"


def model(gpu: GpuView) -> str:
    return gpu.model or gpu.mig_profile or gpu.name or UNKNOWN


def people(gpus: Iterable[GpuView]) -> str:
    """Who is on the GPUs, those with the most memory first; "?" stands for those who are not known."""
    unknown = False
    held: Counter[str] = Counter()
    for gpu in gpus:
        for use in gpu.people or ():
            held[use.person] += use.memory_bytes or 0
        unknown = unknown or (gpu.counted and gpu.people is None)
    names = [person for person, _ in held.most_common()]
    return ", ".join([*names, "?"] if unknown else names)


def gpu_sums(gpus: Sequence[GpuView]) -> str:
    """Memory and power of all: "memory 71.2 GiB of 1.2 TiB · 5040 W"."""
    counted = [gpu for gpu in gpus if gpu.counted]
    used = [gpu.memory_used_bytes for gpu in counted if gpu.memory_used_bytes is not None]
    total = [gpu.memory_total_bytes for gpu in counted if gpu.memory_total_bytes is not None]
    # Of a split card only the card knows its power.
    split = {gpu.parent_uuid for gpu in counted}
    cards = [gpu for gpu in gpus if gpu.parent_uuid is None and (gpu.counted or gpu.uuid in split)]
    drawn = [gpu.power_watts for gpu in cards if gpu.power_watts is not None]
    memory_words = f"memory {memory(sum(used)) if used else UNKNOWN} of {memory(sum(total)) if total else UNKNOWN}"
    power_words = power(sum(drawn)) if drawn else f"power {UNKNOWN}"
    unknown = len(counted) - min(len(used), len(total))
    if used and unknown:
        memory_words += f" ({unknown} unknown)"
    if drawn and len(drawn) < len(cards):
        power_words += f" ({len(cards) - len(drawn)} unknown)"
    return f"{memory_words} · {power_words}"
