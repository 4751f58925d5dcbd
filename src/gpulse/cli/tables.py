"""Tables in a terminal or a pipe: aligned, coloured by meaning, as wide as there is room.

rich draws tables too, at a millisecond a row: two minutes for 100,000 GPUs.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from rich.cells import cell_len

from gpulse.clean_text import clean

UNKNOWN = "–"
_GAP = "  "
_LAST_AT_LEAST = 12
_CODES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "violet": "35",
}


class Span(NamedTuple):
    """Text of one colour; a style is a name of _CODES or empty."""

    text: str
    style: str = ""


Cell = str | Span | Sequence[Span]


class Column(NamedTuple):
    title: str
    right: bool = False
    # Where space is short, columns go in this order, the highest first; 0 stays.
    spare: int = 0


class Table(NamedTuple):
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    # Lines below the rows.
    sums: Sequence[str] = ()
    # Said instead of a table without rows.
    empty: str = ""


def draw(table: Table, width: int | None, colour: bool, height: int | None = None) -> list[str]:
    """The lines of a table. Without a width nothing is cut; with a height the rows in the middle give way."""
    if not table.rows:
        return [clean(line) for line in ([table.empty, *table.sums] if table.empty else table.sums)]
    columns = [column._replace(title=clean(column.title)) for column in table.columns]
    rows, more = [[_spans(cell) for cell in row] for row in table.rows], 0
    below = ["", *map(clean, table.sums)] if table.sums else []
    if height is not None and len(rows) + 1 + len(below) > height:
        kept = max(1, height - 2 - len(below))
        rows, more = rows[:kept], len(rows) - kept
    widths = [_widest(column, (row[at] for row in rows)) for at, column in enumerate(columns)]
    for at in _in_the_way(columns, widths, width):
        del columns[at], widths[at]
        for row in rows:
            del row[at]
    title = [[Span(column.title, "dim")] for column in columns]
    lines = [_line(row, columns, widths, width, colour) for row in [title, *rows]]
    if more:
        lines.append(f"… {more} more")
    return lines + [_cut_text(line, width) for line in below]


def _spans(cell: Cell) -> list[Span]:
    if isinstance(cell, str):
        return [Span(clean(cell))]
    if isinstance(cell, Span):
        return [Span(clean(cell.text), cell.style)]
    return [Span(clean(span.text), span.style) for span in cell]


def _length(spans: Iterable[Span]) -> int:
    return sum(_cells(span.text) for span in spans)


def _cells(text: str) -> int:
    return len(text) if text.isascii() else cell_len(text)


def _widest(column: Column, cells: Iterable[list[Span]]) -> int:
    return max(_cells(column.title), *(_length(cell) for cell in cells))


def _in_the_way(columns: Sequence[Column], widths: Sequence[int], width: int | None) -> list[int]:
    """Columns to leave out so that the others fit, from the last to the first. The last column can be cut instead."""
    if width is None:
        return []
    least = [*widths[:-1], min(widths[-1], _LAST_AT_LEAST)]
    needed = sum(least) + len(_GAP) * (len(least) - 1)
    gone = []
    for at in sorted(range(len(columns)), key=lambda at: -columns[at].spare):
        if needed <= width or not columns[at].spare:
            break
        gone.append(at)
        needed -= least[at] + len(_GAP)
    return sorted(gone, reverse=True)


def _line(
    row: Sequence[list[Span]], columns: Sequence[Column], widths: Sequence[int], width: int | None, colour: bool
) -> str:
    paint: Callable[[Span], str] = _painted if colour else lambda span: span.text
    spans: list[Span] = []
    for at, cell in enumerate(row):
        padding = Span(" " * (widths[at] - _length(cell)))
        if at:
            spans.append(Span(_GAP))
        spans += [padding, *cell] if columns[at].right else [*cell, padding]
    while spans and not spans[-1].text.strip(" "):
        spans.pop()
    return "".join(paint(span) for span in _cut(spans, width)).rstrip(" ")


def _painted(span: Span) -> str:
    return f"\x1b[{_CODES[span.style]}m{span.text}\x1b[0m" if span.style and span.text else span.text


def _cut(spans: list[Span], width: int | None) -> list[Span]:
    if width is None or _length(spans) <= width:
        return spans
    kept: list[Span] = []
    room = width - 1
    for span in spans:
        if _cells(span.text) > room:
            return [*kept, Span(_first_cells(span.text, room) + "…", span.style)]
        kept.append(span)
        room -= _cells(span.text)
    return kept


def _cut_text(text: str, width: int | None) -> str:
    return "".join(span.text for span in _cut([Span(text)], width))


def _first_cells(text: str, room: int) -> str:
    """As many characters as fit; some take two cells."""
    taken = 0
    for at, one in enumerate(text):
        taken += _cells(one)
        if taken > room:
            return text[:at]
    return text
