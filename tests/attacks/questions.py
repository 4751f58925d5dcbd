"""Hostile questions made by a grammar: long, repeated and nested; the same for the same seed."""

import json
from collections.abc import Iterator
from random import Random
from urllib.parse import quote

from tests.attacks.loop_time import Asked

_JSON = ((b"content-type", b"application/json"),)
_LISTS = ("nodes", "gpus", "free", "users", "history", "people")
_WORDS = (
    "python",
    "train",
    "a",
    "e",
    "gpu",
    "0",
    "h100",
    "user",
    "--",
    "nowhere",
    "İ",
    "ß",
    "somebody",
    "free",
    "mine",
)
_RANGES = ("[1-99999]", "[00001-12500]", "[1-9]", "[0-9][0-9]", "[1-9999/7]", "[1,2,3,5-900]", "[01-99]x[0-9]")
_SIGNS = (",", ",", ",", "!", "&", "^")
_SORTS = {
    "nodes": ("name", "-name", "age", "gpus", "-free"),
    "gpus": ("node", "-node", "utilization", "-free_memory", "idle", "-power"),
}
_MOMENTS = (
    "tomorrow",
    "friday",
    "18:00",
    "2d",
    "4h",
    "1 month",
    "next",
    "end of",
    "week",
    "in",
    "utc",
    "13",
    ",",
    "and",
)


def _nodes(dice: Random) -> str:
    text = ""
    for _ in range(dice.choice((1, 1, 2, 5, 20, 60))):
        text += (dice.choice(_SIGNS) if text else "") + dice.choice(("gpu", "a", "x1", "")) + dice.choice(_RANGES)
    return text


def _term(dice: Random) -> str:
    kind = dice.randrange(8)
    if kind == 0:
        return f"node:{_nodes(dice)}"
    if kind == 1:
        return "node:" + "".join(
            dice.choice(("*", "?", "g", "0", "[0-9]", "*u")) for _ in range(dice.choice((2, 30, 90)))
        )
    if kind == 2:
        return dice.choice(("user:", "job:", "reserved:", "model:", "rack:", "group:")) + dice.choice(_WORDS)
    if kind == 3:
        return dice.choice(("mem>", "free_mem<", "util>=", "temp<", "power>")) + str(dice.randrange(100))
    if kind == 4:
        return dice.choice(("flag:hot", "flag:hot,throttled,vanished,xid_program", "busy", "idle", "state:down"))
    if kind == 5:
        return f'"{dice.choice(_WORDS) * dice.choice((1, 3, 80))}"'
    return dice.choice(_WORDS) + str(dice.randrange(30))


def filter_text(dice: Random) -> str:
    terms: list[str] = []
    for _ in range(dice.choice((1, 1, 2, 4, 32, 120))):
        # Written again, or another one.
        term = dice.choice(terms) if terms and dice.random() < 0.3 else _term(dice)
        terms.append(dice.choice(("", "", "", "-")) + term)
    return " ".join(terms)[: dice.choice((500, 500, 500, 600))]


def _list(dice: Random) -> Asked:
    kind = dice.choice(_LISTS)
    if kind in ("users", "people"):
        return Asked("/api/v1/users", f"q={quote(dice.choice(_WORDS))}&limit={dice.choice((1, 1000))}")
    if kind == "history":
        what = dice.choice(("nodes", "nodes", "node", "gpu"))
        only = dice.choice(("", "&only=power"))
        named = _nodes(dice) if dice.random() < 0.6 else "gpu[00001-00100]"
        return Asked("/api/v1/history", f"{what}={quote(named * dice.choice((1, 1, 40)))}{only}")
    query = f"q={quote(filter_text(dice))}&me=alice"
    if kind == "free":
        return Asked("/api/v1/free", f"{query}&n={dice.choice((1, 64, 10000))}&model={dice.choice(_WORDS)}")
    query += f"&limit={dice.choice((1, 100, 1000))}&offset={dice.choice((0, 5000))}&sort={dice.choice(_SORTS[kind])}"
    if kind == "nodes" and dice.random() < 0.3:
        query += f"&detail=true&full={dice.choice(('true', 'false'))}"
    return Asked(f"/api/v1/{kind}", query)


def _unknown(dice: Random) -> Asked:
    name = "".join(dice.choice("gpu0123456789") for _ in range(dice.choice((4, 8, 60, 199))))
    return Asked(f"/api/v1/nodes/{name}")


def _when(dice: Random) -> Asked:
    text = " ".join(dice.choice(_MOMENTS) for _ in range(dice.choice((1, 3, 40))))[:200]
    return Asked("/api/v1/when", f"text={quote(text)}&start={dice.choice(('0', '1800000000'))}")


def _file(dice: Random) -> str:
    size = dice.choice((1000, 40_000, 1_000_000))
    kind = dice.randrange(7)
    if kind == 0:
        return '{"gpu00001": ' + dice.choice(("/*", "//", '"', '\\"', "[", "{", " ", "\n", ",")) * (size // 2)
    if kind == 1:
        slots = [{"name": f"p{n % 50}", "date": "2030-01-01 18:00", "comment": "x"} for n in range(8)]
        nodes = {f"gpu{n + 1:05}": slots for n in range(size // 5000)}
        return json.dumps(nodes)
    if kind == 2:
        return json.dumps({f"gpu00001.d{n}": [{"name": "a", "date": "2030-01-01"}] for n in range(size // 60)})
    if kind == 3:
        return '{"gpu00001": [{' + ",".join(f'"k{n}": 1' for n in range(size // 12)) + ', "k0": 2}]}'
    if kind == 4:
        return json.dumps({"gpu00001": {str(n): {"name": f"n{n}", "date": f"{n} jan"} for n in range(size // 50)}})
    if kind == 5:
        return '{"gpu00001": {' + '"0": {"name": "a", "date": "2030-01-01"},' * (size // 45) + "}}"
    return "{" + "/* x */" * (size // 7) + "}"


def _import(dice: Random) -> Asked:
    body = json.dumps({"text": _file(dice), "dry_run": dice.random() < 0.5}).encode()
    return Asked("/api/v1/reservations/import", "", "POST", body, _JSON)


def questions(seed: int, count: int) -> Iterator[Asked]:
    dice = Random(seed)
    kinds = (_list, _list, _list, _list, _unknown, _when, _import)
    for _ in range(count):
        yield dice.choice(kinds)(dice)


def _zeros(count: int) -> Asked:
    body = json.dumps({"text": '{"gpu00001": [' + "0," * count + "]}", "dry_run": True}).encode()
    return Asked("/api/v1/reservations/import", f"{count}", "POST", body, _JSON)


# Those that were found by people.
KNOWN = (
    Asked("/api/v1/gpus", "q=" + quote(" ".join(["node:a[1-99999]"] * 31))),
    Asked("/api/v1/gpus", "q=" + quote(" ".join(f"node:a[1-{99999 - n}]" for n in range(30)))),
    Asked("/api/v1/history", "nodes=" + quote("a[1-99999]")),
    Asked("/api/v1/history", "nodes=" + quote(",".join(["a[1-99999]"] * 2000))),
    Asked("/api/v1/nodes", "limit=1000&detail=true"),
    Asked("/api/v1/gpus", "limit=1000&sort=-power"),
    Asked("/api/v1/free", "n=10000&model=h100&same_node=true"),
    Asked("/api/v1/users", "limit=1000"),
    Asked("/api/v1/summary"),
    Asked("/metrics"),
    Asked("/get-status"),
    Asked("/api/v1/nodes/" + "g" * 199),
    # The shortest entries: the answer was 113 MB long.
    _zeros(500_000),
    _zeros(49_999),
)
