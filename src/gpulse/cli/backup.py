"""gpulse backup: all records in one file, while the hub runs."""

from pathlib import Path
from typing import Annotated

import typer

from gpulse.cli import figures, terminal
from gpulse.cli.up import ConfigPath, Data, read_config
from gpulse.config import database_url
from gpulse.errors import StoreError


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to; an older backup there is replaced.")],
    config: ConfigPath = None,
    data: Data = None,
) -> None:
    """Write all records into a file, while a hub runs or not."""
    settings, _ = read_config(config)
    folder, url = data or settings.hub.data, database_url(settings.store)
    from gpulse.store import Records
    from gpulse.store.backup import back_up
    from gpulse.store.sqlite import FILE

    # Opened, a wrong folder would have records from then on: none.
    if url is None and not (folder / FILE).exists():
        raise StoreError(f"there are no records in {folder}; name the hub's folder with --data")
    # Somebody who makes a backup before an upgrade wants what was there before.
    with Records(folder, url, upgrade=False) as records:
        terminal.warn(f"backing up {records.name}")
        count = back_up(records, file)
    terminal.tell(f"{figures.amount(count, 'row', 'rows')} in {file}")
