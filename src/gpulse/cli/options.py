"""What the commands against a running hub have in common: their options, and how they end."""

import getpass
import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from gpulse.cli import terminal
from gpulse.cli.hub_url import DEFAULT_HUB
from gpulse.errors import ConfigError, GpulseError

FAILED = 2
INTERRUPTED = 130
_WATCH_SECONDS = "2"

Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="FILTER", help="Show only what matches all of these: free user:ann 'mem>40G'."),
]
Query = Annotated[str | None, typer.Option("--filter", "-q", metavar="TEXT", help="The same in one text.")]
HubUrl = Annotated[
    str, typer.Option("--hub", envvar="GPULSE_HUB", metavar="URL", help="Address of the hub.", show_default=True)
]
Fingerprint = Annotated[
    str | None,
    typer.Option(
        "--fingerprint",
        envvar="GPULSE_FINGERPRINT",
        metavar="TEXT",
        help="The hub's key at https (sha256:…), instead of trusting certificates.",
    ),
]
HubData = Annotated[
    Path | None,
    typer.Option(
        "--data",
        envvar="GPULSE_DATA",
        metavar="DIR",
        help="Data folder of a hub of yours on this machine: it needs no key (default: as of gpulse up).",
        show_envvar=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the JSON of the API instead of a table.")]
Width = Annotated[
    int | None,
    typer.Option("--width", min=20, metavar="COLUMNS", help="Cut at so many columns (default: the terminal's)."),
]
Watch = Annotated[
    float | None,
    typer.Option(
        "--watch", min=0.1, max=86400, metavar="[SECONDS]", help="Ask and draw again, every 2 seconds if not told."
    ),
]

HUB = DEFAULT_HUB


class HubCommand(TyperCommand):
    """Ends with 2 and one sentence when the hub cannot be asked, with 130 on Ctrl-C."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, _with_seconds(args))

    def invoke(self, ctx: Any) -> Any:
        # What a node tells may hold characters that the terminal's encoding lacks.
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")
        try:
            return super().invoke(ctx)
        except GpulseError as error:
            terminal.warn(*(error.problems if isinstance(error, ConfigError) else [str(error)]))
            raise typer.Exit(FAILED) from None
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None


def filter_of(query: str | None, words: list[str] | None) -> dict[str, str]:
    """The filter as a parameter of the API."""
    text = " ".join(part for part in (query, *(words or [])) if part)
    # Who asks matters to `mine` alone; without it the hub has one answer for all.
    me = {"me": getpass.getuser()} if "mine" in text.casefold() else {}
    return {"q": text, **me} if text else {}


def _with_seconds(arguments: list[str]) -> list[str]:
    """Gives a bare --watch its seconds, so that the word after it stays a word of the filter."""
    told: list[str] = []
    for at, argument in enumerate(arguments):
        if argument == "--":
            return told + arguments[at:]
        told.append(argument)
        if argument == "--watch" and not _is_number(arguments[at + 1 : at + 2]):
            told.append(_WATCH_SECONDS)
    return told


def _is_number(following: list[str]) -> bool:
    return bool(following) and re.fullmatch(r"\d+(\.\d*)?|\.\d+", following[0], re.ASCII) is not None
