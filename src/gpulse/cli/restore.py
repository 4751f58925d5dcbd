"""gpulse restore: the records of a backup, where no hub runs."""

from pathlib import Path
from typing import Annotated

import typer

from gpulse.cli.up import ConfigPath, Data, read_config
from gpulse.config import database_url


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What gpulse backup has written.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace records that are there already; they are kept aside.")
    ] = False,
    config: ConfigPath = None,
    data: Data = None,
) -> None:
    """Take the records of a backup. The hub must not run."""
    settings, _ = read_config(config)
    from gpulse.store.restoring import restore as restored

    aside = restored(file, data or settings.hub.data, database_url(settings.store), replace=replace)
    typer.echo(f"restored from {file}")
    if aside is not None:
        typer.echo(f"the records from before are in {aside}")
