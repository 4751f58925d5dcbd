"""Changes JSON as JSON: what is changed byte by byte is hardly ever a document any more."""

import copy
import json
import random
from typing import Any

import atheris

# Numbers, texts and shapes at which decoders break.
STRANGE: tuple[Any, ...] = (
    *(None, True, False, "", "x", "\0", "\ud800", "é🚀", "-1", "9" * 30, [], {}, [None], [[]], [{}], {"": None}),
    *(
        0,
        -1,
        1,
        0.5,
        -0.0,
        1e308,
        -1e308,
        5e-324,
        2**31,
        2**53,
        2**63 - 1,
        2**63,
        2**64 - 1,
        2**64,
        -(2**63) - 1,
        10**40,
    ),
)


def change(data: bytes, largest: int, seed: int) -> bytes:
    """As libFuzzer asks for it: the data a little changed."""
    chance = random.Random(seed)
    lines = data.split(b"\n")
    place = chance.randrange(len(lines))
    try:
        document = json.loads(lines[place]) if chance.random() < 0.8 else None
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        return bytes(atheris.Mutate(data, len(data)))
    for _ in range(chance.randint(1, 3)):
        _change(document, chance)
    lines[place] = json.dumps(document, separators=(",", ":"), ensure_ascii=chance.random() < 0.5).encode(
        "utf-8", "surrogatepass"
    )
    if chance.random() < 0.2:
        lines.insert(chance.randrange(len(lines) + 1), chance.choice(lines))
    changed = b"\n".join(lines)
    return changed if len(changed) <= largest else bytes(atheris.Mutate(data, len(data)))


def _change(document: dict[str, Any], chance: random.Random) -> None:
    parts: list[Any] = [document]
    for part in parts:
        parts += [one for one in (part.values() if isinstance(part, dict) else part) if isinstance(one, dict | list)]
    part = chance.choice([one for one in parts if one] or [document])
    keys = list(part) if isinstance(part, dict) else list(range(len(part)))
    if not keys:
        return
    key = chance.choice(keys)
    # Always a copy: nothing may come to hold itself.
    if (what := chance.random()) < 0.6:
        part[key] = copy.deepcopy(chance.choice(STRANGE))
    elif what < 0.75:
        del part[key]
    elif what < 0.9:
        part[key] = copy.deepcopy(chance.choice(parts))
    elif isinstance(part, list):
        part.append(copy.deepcopy(part[key]))
    else:
        part[chance.choice(list(document))] = copy.deepcopy(part[key])
