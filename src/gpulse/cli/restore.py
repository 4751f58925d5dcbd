"""gpulse restore: the records of a backup, where no hub runs."""

from pathlib import Path
from typing import Annotated

import typer

from gpulse.cli import terminal
from gpulse.cli.up import ConfigPath, Data, read_config
from gpulse.config import database_url


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What gpulse backup has written.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace records that are there already; they are kept aside.")
    ] = False,
    into_file: Annotated[
        bool, typer.Option("--file", help="Into the file in the data folder, whatever the settings say of a server.")
    ] = False,
    config: ConfigPath = None,
    data: Data = None,
) -> None:
    """Take the records of a backup. The hub must not run."""
    settings, _ = read_config(config)
    folder, url = data or settings.hub.data, None if into_file else database_url(settings.store)
    from gpulse.store.records import database_of
    from gpulse.store.restoring import restore as restored

    # First: who is refused must know what was meant, before anything is stopped or replaced for it.
    why = "" if url is None else ", as [store] or GPULSE_STORE_URL says; --file restores into the data folder instead"
    terminal.warn(f"restoring into {database_of(folder, url).name}{why}")
    aside = restored(file, folder, url, replace=replace)
    terminal.tell(f"restored from {file}")
    if aside is not None:
        terminal.tell(f"the records from before are in {aside}")
