"""Asks a hub for everything that an exported site shows."""

import re
import time

import msgspec

from gpulse.cli.client import Hub, quoted
from gpulse.errors import HubRefused
from gpulse.export.site import Moment
from gpulse.fleet.sight import Level

# In full a node is some 20 kB: the hub shall not work on one answer for long.
_NODES_AT_ONCE = 200
# As many as the hub tells of at once.
_HISTORIES_AT_ONCE = 100
# The newest; a node that flaps has hundreds.
_LOG_ENTRIES = 20
# In a set of nodes other characters mean something.
_PLAIN = re.compile(r"[\w.-]+", re.ASCII)


class _Page(msgspec.Struct):
    """The hub's config.json."""

    title: str
    logo: str | None = None
    custom_css: bool = False


class _Named(msgspec.Struct):
    name: str


class _History(msgspec.Struct):
    step_seconds: int
    end: float
    gpus: list[msgspec.Raw]


def ask_moment(hub: Hub, sight: Level) -> Moment:
    page = hub.decode(hub.file("/config.json"), _Page)
    summary = hub.decode(hub.get("/summary"), msgspec.Raw)
    nodes = hub.pages("/nodes", {"detail": "true", "sight": sight}, _NODES_AT_ONCE).items
    people = hub.pages("/users", {"sight": sight})
    names = [hub.decode(node, _Named).name for node in nodes]
    return Moment(
        title=page.title,
        made=time.time(),
        summary=summary,
        nodes=nodes,
        people=people.items,
        others=people.others,
        history=_history(hub, names),
        logs={name: log for name in names if (log := _log(hub, name, sight))},
        logo=hub.file("/logo") if page.logo else None,
        custom_css=hub.file("/custom.css") if page.custom_css else None,
    )


def _history(hub: Hub, names: list[str]) -> dict[str, object] | None:
    """All GPUs in one, as if they had been asked for at once."""
    plain = [name for name in names if _PLAIN.fullmatch(name)]
    questions = [
        {"nodes": ",".join(plain[start : start + _HISTORIES_AT_ONCE])}
        for start in range(0, len(plain), _HISTORIES_AT_ONCE)
    ]
    questions += [{"node": name} for name in names if not _PLAIN.fullmatch(name)]
    gpus: list[msgspec.Raw] = []
    last: _History | None = None
    for question in questions:
        told = _unless_gone(hub, "/history", question)
        if told is not None:
            last = hub.decode(told, _History)
            gpus += last.gpus
    return None if last is None else {"node": None, "step_seconds": last.step_seconds, "end": last.end, "gpus": gpus}


def _log(hub: Hub, name: str, sight: Level) -> list[msgspec.Raw]:
    told = _unless_gone(hub, f"/nodes/{quoted(name)}/log", {"limit": str(_LOG_ENTRIES), "sight": sight})
    return [] if told is None else hub.decode(told, _Entries).items


class _Entries(msgspec.Struct):
    items: list[msgspec.Raw]


def _unless_gone(hub: Hub, path: str, query: dict[str, str]) -> bytes | None:
    """None where the node was taken away since it was listed."""
    try:
        return hub.get(path, query)
    except HubRefused as refusal:
        if refusal.code != "unknown_node":
            raise
        return None
