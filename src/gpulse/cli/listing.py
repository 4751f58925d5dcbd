"""Prints a list of the hub as a table, once or again and again."""

import math
import sys
import time
from collections.abc import Callable
from typing import TypeVar

from gpulse.cli import figures, terminal
from gpulse.cli.client import Hub, Page
from gpulse.cli.tables import Table
from gpulse.errors import GpulseError, HubSilent

T = TypeVar("T")


def show(
    hub: Hub,
    path: str,
    query: dict[str, str],
    kind: type[T],
    table: Callable[[list[T]], Table],
    *,
    as_json: bool,
    width: int | None,
    watch: float | None,
) -> None:
    if watch is not None and not math.isfinite(watch):
        raise GpulseError("--watch takes a number of seconds")

    def ask() -> Page:
        return hub.pages(path, query)

    def drawn(page: Page) -> Table:
        items = [hub.decode(item, kind) for item in page.items]
        return _with_more(table(items), page)

    def tell(page: Page) -> None:
        if as_json:
            terminal.tell_json(page.body)
        else:
            terminal.show(drawn(page), width)

    if watch is None:
        tell(ask())
    elif sys.stdout.isatty() and not as_json:
        _draw_over(ask, drawn, width, watch)
    else:
        _print_on(ask, tell, watch)


def _with_more(table: Table, page: Page) -> Table:
    """The table with what the hub says of people who are not in it."""
    words = []
    if page.others:
        others = figures.amount(page.others, "other person", "other people")
        words.append(f"{others} on GPUs, whose names you do not see")
    if page.unknown_gpus:
        words.append(f"unknown who is on {figures.amount(page.unknown_gpus, 'more GPU', 'more GPUs')}")
    if not words:
        return table
    told = " · ".join(words)
    return table._replace(sums=[*table.sums, told] if table.rows else [], empty=told)


def _draw_over(ask: Callable[[], Page], drawn: Callable[[Page], Table], width: int | None, seconds: float) -> None:
    """Draw over the last table. When the hub goes, its last answer stays and the reason appears below it."""
    page, screen = ask(), terminal.Screen()
    trouble: list[str] = []
    while True:
        screen.show(drawn(page), width, trouble)
        time.sleep(seconds)
        try:
            page, trouble = ask(), []
        except HubSilent as error:
            trouble = trouble or [f"since {time.strftime('%H:%M:%S')}: {error}"]


def _print_on(ask: Callable[[], Page], tell: Callable[[Page], None], seconds: float) -> None:
    """One table or one JSON document after the other, for a pipe or a file."""
    page: Page | None = ask()
    while True:
        if page is not None:
            tell(page)
        sys.stdout.flush()
        time.sleep(seconds)
        try:
            page = ask()
        except HubSilent as error:
            terminal.warn(str(error))
            page = None
