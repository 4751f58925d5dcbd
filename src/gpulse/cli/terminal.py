"""The only way from a command to the terminal. Whatever is printed is cleaned here: it may come from anywhere."""

import os
import shutil
import sys
from collections.abc import Sequence

import msgspec
import typer

from gpulse.clean_text import clean, clean_json
from gpulse.cli.tables import Table, draw

_CLEAR, _HOME, _REST_OF_LINE, _REST_OF_SCREEN = "\x1b[2J", "\x1b[H", "\x1b[K", "\x1b[J"


def tell(*lines: str, err: bool = False) -> None:
    """Print lines; a newline within one of them starts no other."""
    typer.echo("\n".join(map(clean, lines)), err=err)


def warn(sentence: str, *more: str) -> None:
    """Print a sentence of gpulse on standard error, and more lines below it."""
    tell(f"gpulse: {sentence}", *more, err=True)


def tell_json(body: bytes) -> None:
    """Print JSON as it came, with escapes for what a terminal would obey."""
    # As bytes: JSON is UTF-8 whatever the terminal speaks.
    typer.echo(clean_json(body.decode("utf-8", "replace")).encode())


def tell_record(value: object) -> None:
    """Print a value as JSON for people: indented."""
    tell_json(msgspec.json.format(msgspec.json.encode(value), indent=2))


def show(table: Table, width: int | None) -> None:
    """Print a table as wide as there is room."""
    typer.echo("\n".join(drawn(table, width)))


def drawn(table: Table, width: int | None, height: int | None = None) -> list[str]:
    """The lines of a table for standard output as it is: nothing is cut in a pipe."""
    if width is None and sys.stdout.isatty():
        width = shutil.get_terminal_size().columns
    return draw(table, width, coloured(), height)


def coloured() -> bool:
    """Colors are for terminals, and for people who want them: https://no-color.org."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class Screen:
    """A table that is drawn over the last one."""

    def __init__(self) -> None:
        self._clear = _CLEAR

    def show(self, table: Table, width: int | None, trouble: Sequence[str]) -> None:
        """Draw the table, and below it what is wrong."""
        size = shutil.get_terminal_size()
        lines = drawn(table, width, size.lines - 1 - len(trouble))
        lines += [clean(line)[: size.columns] for line in trouble]
        text = self._clear + _HOME + "".join(f"{line}{_REST_OF_LINE}\n" for line in lines) + _REST_OF_SCREEN
        sys.stdout.write(text)
        sys.stdout.flush()
        self._clear = ""
