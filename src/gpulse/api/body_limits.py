"""What is too long, too much or too little in a body, in words: msgspec says it in terms of types."""

import re

import msgspec

_LIMIT = re.compile(r"Expected `(\w+)` (of length )?([<>]=?) (\S+) - at `\$\.([\w.\[\]]+)`")
_TEXT = {"<=": "is longer than {} characters", ">=": "is shorter than {} characters"}
_MANY = {"<=": "has more than {} entries", ">=": "has fewer than {} entries"}
_NUMBER = {"<=": "is more than {}", "<": "is not less than {}", ">=": "is less than {}", ">": "is not more than {}"}


def beyond(error: msgspec.MsgspecError) -> tuple[str, str] | None:
    """Which field is beyond which limit, and what to do; None where it is about something else."""
    found = _LIMIT.fullmatch(str(error))
    if found is None:
        return None
    kind, length, sign, limit, path = found.groups()
    words = (_TEXT if kind == "str" else _MANY) if length else _NUMBER
    if sign not in words:
        return None
    # A field of the body itself is called by its name: the comment.
    field = f"the {path}" if kind == "str" and path.isidentifier() else f'"{path}"'
    what = "is empty" if length and (sign, limit) == (">=", "1") else words[sign].format(limit)
    return f"{field} {what}", "shorten it" if words is _TEXT and sign == "<=" else "see api/docs"
