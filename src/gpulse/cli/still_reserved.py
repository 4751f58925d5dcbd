"""What somebody who is shut out has reserved still: others cannot have it until somebody lets go of it."""

import time
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import Connection

from gpulse.cli import booked
from gpulse.cli.places import Gpu, text_of
from gpulse.config import Config, database_url
from gpulse.errors import GpulseError
from gpulse.store import Records
from gpulse.store import reservations as table
from gpulse.store.reservations import Kept

_MOST_TOLD = 5


def lines(settings: Config, data: Path | None, names: Sequence[str]) -> list[str]:
    """In words; none where they have nothing. Nothing fails by it: what was to be done has been done."""

    def read(connection: Connection) -> list[list[Kept]]:
        return [table.standing(connection, name, time.time()) for name in names]

    try:
        with Records(data or settings.hub.data, database_url(settings.store)) as records:
            found = records.read(read).result()
    except GpulseError as error:
        return [f"what they have reserved still could not be read: {error}"]
    return [line for kept in found for line in _told(kept)]


def _told(kept: Sequence[Kept]) -> list[str]:
    told = [
        f"{row.person} still has {text_of([Gpu(*place) for place in places])} from {booked.moment(row.start_at)}"
        f" until {booked.moment(row.last_at)}; gpulse cancel {row.id} lets go of them"
        for row, places in sorted(kept, key=lambda one: one[0].start_at)
    ]
    rest = len(told) - _MOST_TOLD
    return told[:_MOST_TOLD] + ([f"and {rest} more: gpulse reservations lists them"] if rest > 0 else [])
