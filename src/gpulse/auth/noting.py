"""Entries of the audit log, written in the transaction of what they tell of: there is no change without its entry."""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec
from sqlalchemy import Connection

from gpulse.auth.identity import Identity
from gpulse.auth.secret_text import without_secrets
from gpulse.store import audit as table

Detail = str | int | float | bool | None | list[str]
_LONGEST = 200
_MOST_NAMED = 100


class Actor(NamedTuple):
    """Who does something, how they are known, and where they do it from."""

    name: str
    way: str
    address: str = ""


# For what nobody asked for.
THE_HUB = Actor("the hub", "local")


class Entry(NamedTuple):
    by: Actor
    # Thing and deed: "account.add".
    action: str
    target: str
    detail: dict[str, Detail]


def actor(who: Identity | str, address: str = "") -> Actor:
    """A text is somebody who works in the data folder: "local: USER"."""
    if isinstance(who, str):
        return Actor(who, "local", address)
    return Actor(who.name or "anonymous", who.way, address)


def note(connection: Connection, at: float, by: Actor, action: str, target: str = "", /, **detail: Detail) -> None:
    note_all(connection, at, [Entry(by, action, target, detail)])


def note_all(connection: Connection, at: float, entries: Iterable[Entry]) -> None:
    table.add(connection, [_row(at, entry) for entry in entries])


def _row(at: float, entry: Entry) -> dict[str, str | float]:
    told = msgspec.json.encode({_clean(key): _cleaned(value) for key, value in entry.detail.items()})
    return {
        "at": at,
        "who": _clean(entry.by.name),
        "way": entry.by.way,
        "address": _clean(entry.by.address),
        "action": _clean(entry.action),
        "target": _clean(entry.target),
        "detail": told.decode("utf-8"),
    }


def _cleaned(value: Detail) -> Detail:
    if isinstance(value, list):
        return [_clean(one) for one in value[:_MOST_NAMED]]
    return _clean(value) if isinstance(value, str) else value


def _clean(text: str) -> str:
    """One line that fits, without secrets: what others sent may be anything."""
    told = "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in without_secrets(text))
    return told if len(told) <= _LONGEST else told[: _LONGEST - 1] + "…"
