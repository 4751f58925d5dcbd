"""gpulse who: the people on the GPUs, a line each."""

from typing import Annotated

import typer

from gpulse.cli import figures, options
from gpulse.cli.client import Hub
from gpulse.cli.listing import show
from gpulse.cli.tables import UNKNOWN, Column, Span, Table
from gpulse.fleet.views import PersonView

_COLUMNS = (
    Column("PERSON"),
    Column("GPUS", right=True),
    Column("BUSY", right=True),
    Column("MEMORY GiB", right=True, spare=1),
    Column("PROCESSES", right=True, spare=2),
    Column("NODES"),
)


def who(
    name: Annotated[str | None, typer.Argument(help="Only people whose name has this in it.")] = None,
    *,
    query: options.Query = None,
    hub: options.HubUrl = options.HUB,
    fingerprint: options.Fingerprint = None,
    data: options.HubData = None,
    as_json: options.AsJson = False,
    width: options.Width = None,
    watch: options.Watch = None,
) -> None:
    """Show who holds which GPUs now, how many of them are busy, and where."""
    text = " ".join(part for part in (query, name) if part)
    wanted = {"q": text} if text else {}
    empty = "nobody matches the filter" if wanted else "nobody is on any GPU"

    def built(found: list[PersonView]) -> Table:
        return table(found, empty)

    show(Hub(hub, fingerprint, data), "/users", wanted, PersonView, built, as_json=as_json, width=width, watch=watch)


def table(found: list[PersonView], empty: str = "") -> Table:
    rows = [
        (
            Span(person.person, "bold"),
            str(person.gpus),
            # Held and not at work is what others wait for.
            Span(str(person.busy_gpus), "yellow" if person.busy_gpus < person.gpus else ""),
            figures.gibibytes(person.memory_bytes),
            str(person.processes),
            ", ".join(person.nodes),
        )
        for person in found
    ]
    # GPUs are not summed: people share them.
    known = [person.memory_bytes for person in found if person.memory_bytes is not None]
    held = figures.memory(sum(known)) if known else f"memory {UNKNOWN}"
    processes = figures.amount(sum(person.processes for person in found), "process", "processes")
    sums = [f"{figures.amount(len(found), 'person', 'people')} · {held} · {processes}"] if found else []
    return Table(_COLUMNS, rows, sums, empty)
