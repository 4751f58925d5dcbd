"""Turn what TOML gave into frozen structs, and tell of every mistake on the way, not only of the first."""

import json
import types
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from gpulse.config import lines
from gpulse.config.kinds import Bytes
from gpulse.config.sizes import size

# Where a key stands, and what is wrong with it.
Tell = Callable[[lines.Path, str], None]

# Settings that stood elsewhere before.
_MOVED = {("hub", "base_path"): "web.base_path"}
_WORDS = {str: "text in quotes", bool: "true or false", int: "a whole number", float: "a number", Path: "a path"}


class Wrong:
    """The place of a value that was told of already."""


WRONG = Wrong()


def build(value: object, kind: Any, path: lines.Path, folder: Path, tell: Tell) -> Any:
    """The value as `kind`, or WRONG, once everything wrong in it was told."""
    plain = _choose(value, kind)
    if isinstance(plain, type) and issubclass(plain, msgspec.Struct):
        return _struct(value, plain, path, folder, tell)
    origin, inner = get_origin(plain), get_args(plain)
    if origin is dict and isinstance(value, dict):
        return {key: build(item, inner[1], (*path, key), folder, tell) for key, item in value.items()}
    if origin is tuple and isinstance(value, list):
        items = [build(item, inner[0], (*path, place), folder, tell) for place, item in enumerate(value)]
        return WRONG if WRONG in items else tuple(items)
    if kind == Bytes and isinstance(value, str):
        bytes_ = size(value)
        value = value if bytes_ is None else bytes_
    try:
        return msgspec.convert(value, plain, dec_hook=lambda _, given: _path(given, folder))
    except msgspec.ValidationError:
        tell(path, f"cannot be {shown(value)}; allowed: {_allowed(kind)}")
        return WRONG


def _struct(value: object, kind: type[msgspec.Struct], path: lines.Path, folder: Path, tell: Tell) -> Any:
    if not isinstance(value, dict):
        tell(path, f"cannot be {shown(value)}; allowed: {_allowed(kind)}")
        return WRONG
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    given = {}
    for key, item in value.items():
        if key in fields:
            given[key] = build(item, fields[key].type, (*path, key), folder, tell)
        elif (*path, key) in _MOVED:
            tell((*path, key), f"there is no such setting any more; it is called {_MOVED[*path, key]} now")
        else:
            tell((*path, key), unknown(key, fields))
    missing = [name for name, field in fields.items() if field.required and name not in value]
    for name in missing:
        tell(path, f'"{name}" is missing; allowed: {_allowed(fields[name].type)}')
    # A struct is made of what was right, so that checks that look at several keys can tell of theirs too.
    right = {key: item for key, item in given.items() if item is not WRONG}
    return WRONG if any(field.required and name not in right for name, field in fields.items()) else kind(**right)


def unknown(key: str, allowed: Iterable[str]) -> str:
    names = list(allowed)
    near = get_close_matches(key.lower(), names, 1, 0.6)
    hint = f'did you mean "{near[0]}"? ' if near else ""
    return f"there is no such setting; {hint}allowed: {', '.join(names)}"


def _path(given: object, folder: Path) -> Path:
    """A path in a file is seen from that file's folder."""
    if not isinstance(given, str) or not given or "\0" in given:
        raise ValueError("no path")
    try:
        return folder / Path(given).expanduser()
    except RuntimeError as error:
        raise ValueError("no such home") from error


def _choose(value: object, kind: Any) -> Any:
    """Of several kinds that of the value; null does not exist in TOML."""
    if get_origin(kind) not in (Union, types.UnionType):
        return kind
    kinds = [inner for inner in get_args(kind) if inner is not types.NoneType]
    fitting = [inner for inner in kinds if (get_origin(inner) is tuple) == isinstance(value, list)]
    return (fitting or kinds)[0]


def _allowed(kind: Any) -> str:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        meta = inner[1]
        return meta.description or _allowed(inner[0])
    if origin in (Union, types.UnionType):
        return " or ".join(_allowed(part) for part in inner if part is not types.NoneType)
    if origin is Literal:
        return " or ".join(f'"{word}"' for word in inner)
    if origin is tuple:
        return f"a list ({_allowed(inner[0])})"
    if origin is dict:
        return f"a table ({_allowed(inner[1])})"
    if issubclass(kind, msgspec.Struct):
        return "a table with " + ", ".join(field.name for field in msgspec.structs.fields(kind))
    return _WORDS[kind]


def shown(value: object) -> str:
    """A value as a person wrote it, on one line."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, bool | str):
        text = json.dumps(value, ensure_ascii=False)
    else:
        text = str(value) if not isinstance(value, int) or abs(value) < 10**40 else "so large a number"
    return text if len(text) <= 80 else text[:77] + "…"
