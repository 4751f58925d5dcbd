"""Reservations in the audit log: their entries are written in the transactions of the changes themselves."""

from collections.abc import Sequence

from sqlalchemy import Connection

from gpulse.auth.noting import Actor, Detail, Entry, note, note_all
from gpulse.reservations.model import Reservation
from gpulse.reservations.table import Witness


def noted(by: Actor, deed: str) -> Witness:
    """An entry for each reservation; `deed` is what was done, such as "make"; what never began was cancelled."""

    def witness(connection: Connection, at: float, written: Sequence[Reservation]) -> None:
        note_all(connection, at, [_entry(by, deed, one) for one in written])

    return witness


def noted_as_imported(by: Actor, file: str) -> Witness:
    """One entry for the whole file."""

    def witness(connection: Connection, at: float, written: Sequence[Reservation]) -> None:
        gpus = [str(place) for one in written for place in one.places]
        note(connection, at, by, "reservation.import", file, reserved=len(written), gpus=gpus)

    return witness


def _entry(by: Actor, deed: str, one: Reservation) -> Entry:
    gpus = [str(place) for place in one.places]
    told: dict[str, Detail] = {"person": one.person, "gpus": gpus, "start": one.start, "end": one.last}
    deed = "cancel" if one.ending == "cancelled" else deed
    return Entry(by, f"reservation.{deed}", one.id, told)
