"""Prints a list of the hub as a table, once or again and again."""

import math
import os
import shutil
import sys
import time
from collections.abc import Callable
from typing import TypeVar

import typer

from gpulse.cli import figures
from gpulse.cli.client import Hub, Page
from gpulse.cli.tables import Table, draw
from gpulse.errors import GpulseError, HubSilent

_CLEAR, _HOME, _REST_OF_LINE, _REST_OF_SCREEN = "\x1b[2J", "\x1b[H", "\x1b[K", "\x1b[J"

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

    def told(page: Page, height: int | None = None) -> str:
        if as_json:
            return page.body.decode("utf-8", "replace")
        items = [hub.decode(item, kind) for item in page.items]
        return "\n".join(printed(_with_more(table(items), page), width, height))

    if watch is None:
        typer.echo(told(ask()))
    elif sys.stdout.isatty() and not as_json:
        _draw_over(ask, told, watch)
    else:
        _print_on(ask, told, watch)


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


def printed(table: Table, width: int | None, height: int | None = None) -> list[str]:
    """The lines of a table for standard output as it is: nothing is cut in a pipe."""
    if width is None and sys.stdout.isatty():
        width = shutil.get_terminal_size().columns
    return draw(table, width, coloured(), height)


def coloured() -> bool:
    """Colours are for terminals, and for people who want them: https://no-color.org."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _draw_over(ask: Callable[[], Page], told: Callable[[Page, int | None], str], seconds: float) -> None:
    """Draws over the last table. When the hub goes, its last word stays and the reason is said below it."""
    page, clear = ask(), _CLEAR
    trouble: list[str] = []
    while True:
        size = shutil.get_terminal_size()
        lines = told(page, size.lines - 1 - len(trouble)).split("\n") + [line[: size.columns] for line in trouble]
        sys.stdout.write(clear + _HOME + "".join(f"{line}{_REST_OF_LINE}\n" for line in lines) + _REST_OF_SCREEN)
        sys.stdout.flush()
        clear = ""
        time.sleep(seconds)
        try:
            page, trouble = ask(), []
        except HubSilent as error:
            trouble = trouble or [f"since {time.strftime('%H:%M:%S')}: {error}"]


def _print_on(ask: Callable[[], Page], told: Callable[[Page], str], seconds: float) -> None:
    """One table or one JSON document after the other, for a pipe or a file."""
    page: Page | None = ask()
    while True:
        if page is not None:
            typer.echo(told(page))
        sys.stdout.flush()
        time.sleep(seconds)
        try:
            page = ask()
        except HubSilent as error:
            typer.echo(f"gpulse: {error}", err=True)
            page = None
