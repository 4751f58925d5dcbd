"""Reservations in the audit log: their entries are written in the transactions of the changes themselves."""

from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy import Connection

from gpulse.auth.noting import Actor, Detail, Entry, note, note_all
from gpulse.reservations.model import Reservation
from gpulse.reservations.places_text import node_texts
from gpulse.reservations.table import Witness

_DEEDS = {"cancelled": "cancel", "ended": "end"}


def noted(by: Actor, deed: str) -> Witness:
    """An entry for each reservation; `deed` is what was done, such as "make".

    What never began was cancelled, and what was held for one that is made has ended.
    """

    def witness(connection: Connection, at: float, written: Sequence[Reservation]) -> None:
        note_all(connection, at, [_entry(by, deed, one) for one in written])

    return witness


def noted_as_imported(by: Actor, file: str) -> Witness:
    """One entry for all of the file that is written at once."""

    def witness(connection: Connection, at: float, written: Sequence[Reservation]) -> None:
        gpus = node_texts(place for one in written for place in one.places)
        note(connection, at, by, "reservation.import", file, reserved=len(written), gpus=gpus)

    return witness


def _entry(by: Actor, deed: str, one: Reservation) -> Entry:
    told: dict[str, Detail] = {
        "person": one.person,
        "gpus": node_texts(one.places),
        "start": _moment(one.start),
        "end": _moment(one.last),
    }
    deed = _DEEDS.get(one.ending or "", deed)
    return Entry(by, f"reservation.{deed}", one.id, told)


def _moment(seconds: float) -> str:
    """To the second: 2026-11-16T09:00:00Z. Logs are read by people, in whichever zone."""
    return f"{datetime.fromtimestamp(int(seconds), UTC):%Y-%m-%dT%H:%M:%SZ}"
