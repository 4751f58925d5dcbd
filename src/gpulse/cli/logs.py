"""gpulse logs: what a node's connection and probe told."""

import sys
import time
from typing import Annotated

import msgspec
import typer

from gpulse.cli import figures, options, terminal
from gpulse.cli.client import Hub, Page, quoted
from gpulse.errors import HubSilent
from gpulse.fleet.views import LogEntry

_POLL_SECONDS = 1.0


def logs(
    node: Annotated[str, typer.Argument(metavar="NODE", help="Name of the node.", show_default=False)],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what comes, until Ctrl-C.")] = False,
    hub: options.HubUrl = options.HUB,
    fingerprint: options.Fingerprint = None,
    data: options.HubData = None,
    as_json: options.AsJson = False,
) -> None:
    """Show a node's log: the messages of its connection and its probe."""
    asked = Hub(hub, fingerprint, data)
    path = f"/nodes/{quoted(node)}/log"
    page = asked.pages(path, {})
    entries = _entries(asked, page)
    if as_json and not follow:
        terminal.tell_json(page.body)
        return
    if not entries and not follow:
        terminal.tell(f"nothing has been said about {node} yet", err=True)
    _print(entries, as_json)
    silent = False
    while follow:
        time.sleep(_POLL_SECONDS)
        try:
            later = _entries(asked, asked.pages(path, {}))
        except HubSilent as error:
            if not silent:
                terminal.warn(str(error))
            silent = True
            continue
        silent = False
        _print(added(entries, later), as_json)
        entries = later


def _entries(hub: Hub, page: Page) -> list[LogEntry]:
    """In the order people read; the hub tells the newest first."""
    return [hub.decode(item, LogEntry) for item in reversed(page.items)]


def added(before: list[LogEntry], now: list[LogEntry]) -> list[LogEntry]:
    """What `now` has beyond `before`; the hub drops the oldest lines of a long log."""
    for dropped in range(len(before) + 1):
        kept = before[dropped:]
        if now[: len(kept)] == kept:
            return now[len(kept) :]
    return now


def _print(entries: list[LogEntry], as_json: bool) -> None:
    for entry in entries:
        if as_json:
            terminal.tell_json(msgspec.json.encode(entry))
        else:
            terminal.tell(f"{figures.clock(entry.time)}  {entry.message}")
    sys.stdout.flush()
