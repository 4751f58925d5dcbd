"""Names as people say them: short names of GPU models, and the natural order of node names."""

import re
from collections.abc import Mapping
from functools import lru_cache

# Words that say nothing beside a model's name.
_NOISE = re.compile(r"\b(NVIDIA|AMD|Intel|GeForce|Tesla|Quadro|Radeon|Corporation|Generation)\b|\(R\)|\(TM\)")
_FORM = re.compile(r"[- ](SXM\d?|PCIE|PCIe|HBM\d\w*|NVL|OAM)\b")
# Not from within a number: a row of digits would be read again from each of them.
_SIZE = re.compile(r"[- ]?(?<!\d)(\d++) ?GB\b")
# Of models there are few, and GPUs many; a node that lies may tell of many.
_MOST_KEPT = 1000
_DIGITS = re.compile(r"([0-9]+)")


def short_model(name: str, settings: Mapping[str, str] | None = None) -> str:
    """ "NVIDIA H100 80GB HBM3" is "H100 80G", "NVIDIA GeForce RTX 3090" is "RTX 3090"."""
    if settings and name in settings:
        return settings[name]
    base, mig, profile = name.partition(" MIG ")
    text = _FORM.sub("", _NOISE.sub("", base))
    text = _SIZE.sub(r" \1G", text)
    text = " ".join(text.replace("-", " ").split()) or name
    return f"{text} {profile}" if mig else text


def natural(name: str) -> list[tuple[int, int, str]]:
    """A key that sorts gpu2 before gpu10; any text has one."""
    # Split by its digits, every second part is a number. The longer is the larger; int() refuses what is very long.
    return [
        (0, len(digits := part.lstrip("0")), digits) if place % 2 else (1, 0, part)
        for place, part in enumerate(_DIGITS.split(name))
        if part
    ]


@lru_cache(maxsize=_MOST_KEPT)
def is_model(wanted: str, *names: str | None) -> bool:
    """Whether all words of `wanted` are words of a card's names: "A10" is not "A100", "rtx3090" is "RTX 3090"."""
    listed = [_words(name) for name in names if name]
    words = _words(wanted)
    if not words:
        return False
    return set(words) <= set().union(*listed) or any("".join(words) == "".join(each) for each in listed)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
