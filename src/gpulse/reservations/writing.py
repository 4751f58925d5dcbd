"""Reservations made and changed: what happens in the database, in one transaction each."""

import secrets
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import msgspec
from sqlalchemy import Connection

from gpulse.errors import ReservationError
from gpulse.reservations import rules
from gpulse.reservations.model import (
    Change,
    Changes,
    Origin,
    Place,
    Reservation,
    Wanted,
    in_order,
    storable,
    wanted_places,
)
from gpulse.reservations.rules import By
from gpulse.store import hub
from gpulse.store import reservations as table
from gpulse.store.reservations import ChangeRow, Kept, OriginRow, ReservationRow

Action = Literal["made", "changed", "ended", "cancelled", "released", "imported"]
# Who ends what nobody asked to end.
ITSELF = "gpulse"


class Choose(NamedTuple):
    """So many GPUs, and which: of all there are, once it is known what is booked, and what of that is held for it."""

    n: int
    among: Callable[[Sequence[Reservation], Sequence[Reservation]], Sequence[Place]]


def make(
    connection: Connection, wanted: Wanted, by: By, now: float, choose: Choose | None = None, dry_run: bool = False
) -> list[Reservation]:
    """One that nobody else has anything of, and what was held for it; or ReservationError, and nothing has changed."""
    if choose is not None:
        # Before it is looked what is free: what they may not have at all, they need not wait for.
        own = _others(connection, _new(_settled(wanted, now), by, now), by, now)
        held = rules.held_for(wanted, own, by, now)
        rules.check_asked(wanted, choose.n, [one for one in own if one not in held], by, now)
        booked = read_all(table.holding(connection, rules.begun(wanted.start, now), float("inf")))
        chosen = choose.among(booked, rules.held_for(wanted, booked, by, now))
        wanted = msgspec.structs.replace(wanted, places=tuple(chosen))
    wanted = _settled(wanted, now)
    made = _new(wanted, by, now)
    others = _others(connection, made, by, now)
    held = rules.taken_over(wanted, others, by, now)
    rules.check_new(wanted, [other for other in others if other not in held], by, now)
    if dry_run:
        return [made]
    ended = [_ended(connection, hold, by, now) for hold in held]
    return [_added(connection, made, by, now, wanted.origins), *ended]


def make_many(
    connection: Connection, wanted: Sequence[Wanted], by: By, now: float, dry_run: bool = False
) -> list[Reservation | ReservationError]:
    """Each by itself, in this order: what became of it."""
    outcomes: list[Reservation | ReservationError] = []
    # In a dry run those before it are not in the database.
    before = _Unwritten()
    for one in wanted:
        settled = _settled(one, now)
        made = _new(settled, by, now)
        limited = by.limits_for(made.person) != rules.NO_LIMITS
        try:
            rules.check_new(settled, _others(connection, made, by, now) + before.near(made, limited), by, now)
        except ReservationError as error:
            outcomes.append(error)
            continue
        outcomes.append(made if dry_run else _added(connection, made, by, now, settled.origins))
        if dry_run:
            before.add(made)
    return outcomes


class _Unwritten:
    """Reservations of a dry run, by what the rules ask for."""

    def __init__(self) -> None:
        self._by_node: dict[str, list[Reservation]] = {}
        self._by_person: dict[str, list[Reservation]] = {}

    def add(self, made: Reservation) -> None:
        for node in {place.node for place in made.places}:
            self._by_node.setdefault(node, []).append(made)
        self._by_person.setdefault(made.person, []).append(made)

    def near(self, made: Reservation, limited: bool) -> list[Reservation]:
        """Return those on its nodes and, where limits count, its person's; each once."""
        found = [one for node in {place.node for place in made.places} for one in self._by_node.get(node, ())]
        own = self._by_person.get(made.person, ()) if limited else ()
        # None of them has an id yet.
        return list({id(one): one for one in (*found, *own)}.values())


def change(
    connection: Connection,
    identity: str,
    changes: Changes,
    by: By,
    now: float,
    revision: int | None = None,
    dry_run: bool = False,
) -> Reservation:
    """How it is afterwards; or ReservationError, and nothing has changed."""
    before = known(connection, identity)
    if revision is not None and revision != before.revision and rules.may_change(before, by):
        raise ReservationError(
            409, "changed_meanwhile", "somebody has changed this reservation meanwhile", "look at it again"
        )
    after = changed(before, changes, now)
    rules.check_change(before, after, _others(connection, after, by, now), by, now)
    return after if dry_run or after == before else _replaced(connection, before, after, "changed", by.name, now)


def stop(connection: Connection, identity: str, by: By, now: float) -> Reservation:
    """Ended where it has begun, else cancelled."""
    before = known(connection, identity)
    rules.check_stop(before, by, now)
    return _ended(connection, before, by, now)


def release(connection: Connection, identity: str, revision: int, now: float) -> Reservation | None:
    """Ended by gpulse itself as nobody came; None where it is over, has not begun, or was changed since `revision`."""
    before = known(connection, identity)
    if before.state(now) != "now" or before.revision != revision:
        return None
    after = msgspec.structs.replace(before, ended_at=now, ending="no_show")
    return _replaced(connection, before, after, "released", ITSELF, now)


def known(connection: Connection, identity: str) -> Reservation:
    kept = table.by_id(connection, identity)
    if kept is None:
        raise ReservationError(404, "reservation_unknown", "there is no such reservation", "look them up again")
    return read(kept)


def changed(before: Reservation, changes: Changes, now: float) -> Reservation:
    """How it would be, whether that may be or not."""
    start = before.start if changes.start in (None, before.start) else rules.begun(changes.start, now)
    return msgspec.structs.replace(
        before,
        person=before.person if changes.person is None else storable(changes.person),
        places=before.places if changes.places is None else wanted_places(changes.places),
        start=start,
        end=(before.end if changes.end is None else changes.end) + changes.longer,
        comment=before.comment if changes.comment is None else storable(changes.comment),
    )


def history(connection: Connection, identity: str) -> list[Change]:
    """The oldest first."""
    known(connection, identity)
    return [
        msgspec.convert(
            {
                "at": row.at,
                "by": row.by,
                "action": row.action,
                "before": None if row.before is None else msgspec.json.decode(row.before),
                "after": msgspec.json.decode(row.after),
            },
            Change,
        )
        for row in table.history(connection, identity)
    ]


def since(connection: Connection, revision: int, last_after: float) -> tuple[int, list[Reservation]]:
    """What was written after a revision, and the newest revision there is."""
    newest = hub.revision(connection)
    return newest, read_all(table.since(connection, revision, last_after))


def imported(connection: Connection, end_after: float) -> list[tuple[Origin, Reservation]]:
    """Entries of files that ended after a moment there, and what was made of them."""
    found = table.imported(connection, end_after)
    return [(Origin(row.host, row.index, row.name, row.end_at), read(kept)) for row, kept in found]


def read(kept: Kept) -> Reservation:
    row, places = kept
    return Reservation(
        id=row.id,
        person=row.person,
        maker=row.maker,
        places=in_order(Place(node, index) for node, index in places),
        start=row.start_at,
        end=row.end_at,
        comment=row.comment,
        hold=row.hold,
        made_at=row.made_at,
        revision=row.revision,
        changed_at=row.changed_at,
        ended_at=row.ended_at,
        ending=row.ending,  # type: ignore[arg-type]  # only what a Reservation had gets there
        imported=row.imported,
    )


def read_all(kept: Sequence[Kept]) -> list[Reservation]:
    return [read(one) for one in kept]


def _settled(wanted: Wanted, now: float) -> Wanted:
    """As it can be kept."""
    return msgspec.structs.replace(
        wanted,
        person=storable(wanted.person),
        places=wanted_places(wanted.places),
        start=rules.begun(wanted.start, now),
        comment=storable(wanted.comment),
    )


def _new(wanted: Wanted, by: By, now: float) -> Reservation:
    return Reservation(
        id="",
        person=wanted.person,
        maker=by.name,
        places=wanted.places,
        start=wanted.start,
        end=wanted.end,
        comment=wanted.comment,
        hold=wanted.hold,
        made_at=now,
        revision=0,
        imported=wanted.imported,
    )


def _others(connection: Connection, one: Reservation, by: By, now: float) -> list[Reservation]:
    """All that the rules look at: what is in its way, and, where that matters, what else its person has."""
    near = table.in_the_way(connection, (place.node for place in one.places), one.start, one.end)
    own = [] if by.limits_for(one.person) == rules.NO_LIMITS else table.standing(connection, one.person, now)
    return read_all(list({kept[0].id: kept for kept in (*near, *own)}.values()))


def _added(connection: Connection, made: Reservation, by: By, now: float, origins: Sequence[Origin]) -> Reservation:
    made = msgspec.structs.replace(made, id=secrets.token_hex(6), revision=hub.next_revision(connection))
    table.add(connection, _row(made), made.places)
    table.add_origins(connection, [OriginRow(made.id, *origin) for origin in origins])
    _note(connection, None, made, "imported" if made.imported else "made", by.name, now)
    return made


def _ended(connection: Connection, before: Reservation, by: By, now: float) -> Reservation:
    ending: Literal["ended", "cancelled"] = "ended" if before.start <= now else "cancelled"
    after = msgspec.structs.replace(before, ended_at=now, ending=ending)
    return _replaced(connection, before, after, ending, by.name, now)


def _replaced(
    connection: Connection, before: Reservation, after: Reservation, action: Action, by: str, now: float
) -> Reservation:
    after = msgspec.structs.replace(after, revision=hub.next_revision(connection), changed_at=now)
    table.change(connection, _row(after), None if after.places == before.places else after.places)
    _note(connection, before, after, action, by, now)
    return after


def _note(
    connection: Connection, before: Reservation | None, after: Reservation, action: Action, by: str, now: float
) -> None:
    was = None if before is None else msgspec.json.encode(before).decode()
    table.note(connection, ChangeRow(after.id, now, by, action, was, msgspec.json.encode(after).decode()))


def _row(one: Reservation) -> ReservationRow:
    return ReservationRow(
        id=one.id,
        person=one.person,
        maker=one.maker,
        start_at=one.start,
        end_at=one.end,
        last_at=one.last,
        comment=one.comment,
        hold=one.hold,
        imported=one.imported,
        made_at=one.made_at,
        changed_at=one.changed_at,
        ended_at=one.ended_at,
        ending=one.ending,
        revision=one.revision,
    )
