"""The tables of reservations, of their GPUs, their history and their origins, and what is asked of them."""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Double,
    ForeignKey,
    Index,
    Integer,
    Select,
    String,
    Table,
    Text,
    and_,
    delete,
    insert,
    or_,
    select,
    update,
)

from gpulse.store.metadata import METADATA

# Fewer than the parameters a statement may have.
_AT_ONCE = 500

reservations = Table(
    "reservations",
    METADATA,
    Column("id", String(12), primary_key=True),
    # Names, not accounts: people have reservations before they have ever signed in.
    Column("person", Text, nullable=False),
    Column("maker", Text, nullable=False),
    Column("start_at", Double, nullable=False),
    Column("end_at", Double, nullable=False),
    # Until when it really holds its GPUs: the end, or when it was ended before.
    Column("last_at", Double, nullable=False, index=True),
    Column("comment", Text, nullable=False),
    Column("hold", Boolean, nullable=False),
    Column("imported", Boolean, nullable=False),
    Column("made_at", Double, nullable=False),
    Column("changed_at", Double),
    Column("ended_at", Double),
    Column("ending", String(9)),
    Column("revision", Integer, nullable=False, index=True),
    Index(None, "person", "last_at"),
)

places = Table(
    "reservation_places",
    METADATA,
    Column("reservation", ForeignKey("reservations.id"), primary_key=True),
    Column("node", Text, primary_key=True),
    # "0", of a MIG instance "0.2".
    Column("index", Text, primary_key=True),
    Index(None, "node", "index"),
)

changes = Table(
    "reservation_changes",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("reservation", ForeignKey("reservations.id"), nullable=False, index=True),
    Column("at", Double, nullable=False),
    Column("by", Text, nullable=False),
    Column("action", String(9), nullable=False),
    # The whole reservation as JSON; before there was none, null.
    Column("before", Text),
    Column("after", Text, nullable=False),
)

origins = Table(
    "reservation_origins",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("reservation", ForeignKey("reservations.id"), nullable=False, index=True),
    # As the file had them; one reservation may be made of several entries.
    Column("host", Text, nullable=False),
    Column("index", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("end_at", Double, nullable=False, index=True),
)


class ReservationRow(NamedTuple):
    id: str
    person: str
    maker: str
    start_at: float
    end_at: float
    last_at: float
    comment: str
    hold: bool
    imported: bool
    made_at: float
    changed_at: float | None
    ended_at: float | None
    ending: str | None
    revision: int


class ChangeRow(NamedTuple):
    reservation: str
    at: float
    by: str
    action: str
    before: str | None
    after: str


class OriginRow(NamedTuple):
    reservation: str
    host: str
    index: str  # type: ignore[assignment]  # as of a place
    name: str
    end_at: float


# A reservation with the nodes and indexes of its GPUs.
Kept = tuple[ReservationRow, Sequence[tuple[str, str]]]


def _rows() -> Select[tuple[object, ...]]:
    return select(*(reservations.c[name] for name in ReservationRow._fields))


def by_id(connection: Connection, identity: str) -> Kept | None:
    return next(iter(_kept(connection, _rows().where(reservations.c.id == identity))), None)


def since(connection: Connection, revision: int, last_after: float) -> list[Kept]:
    """All that was written after a revision and holds GPUs, or did, after a moment."""
    query = _rows().where(reservations.c.revision > revision, reservations.c.last_at > last_after)
    return _kept(connection, query)


def holding(connection: Connection, start: float, end: float) -> list[Kept]:
    """Those that hold GPUs at some time from `start` until before `end`."""
    return _kept(connection, _rows().where(*_within(start, end)))


def in_the_way(connection: Connection, nodes: Iterable[str], start: float, end: float) -> list[Kept]:
    """Of those the ones on some nodes."""
    found: dict[str, Kept] = {}
    for some in _portions(sorted(set(nodes))):
        there = select(places.c.reservation).where(places.c.node.in_(some))
        query = _rows().where(*_within(start, end), reservations.c.id.in_(there))
        found.update((kept[0].id, kept) for kept in _kept(connection, query))
    return list(found.values())


def standing(connection: Connection, person: str, now: float) -> list[Kept]:
    """A person's that are not over yet."""
    return _kept(connection, _rows().where(reservations.c.person == person, reservations.c.last_at > now))


def listed(
    connection: Connection,
    start: float,
    end: float,
    *,
    node: str | None,
    person: str | None,
    before: tuple[float, str] | None,
    limit: int,
) -> list[Kept]:
    """Those planned for a span, also if they were cancelled; the last to start first, after `before` (start, id)."""
    query = _rows().where(reservations.c.start_at < end, reservations.c.end_at > start)
    if node is not None:
        query = query.where(reservations.c.id.in_(select(places.c.reservation).where(places.c.node == node)))
    if person is not None:
        query = query.where(reservations.c.person == person)
    if before is not None:
        moment, identity = before
        earlier = and_(reservations.c.start_at == moment, reservations.c.id < identity)
        query = query.where(or_(reservations.c.start_at < moment, earlier))
    return _kept(connection, query.order_by(reservations.c.start_at.desc(), reservations.c.id.desc()).limit(limit))


def add(connection: Connection, row: ReservationRow, where: Collection[tuple[str, str]]) -> None:
    connection.execute(insert(reservations), row._asdict())
    _put(connection, row.id, where)


def change(connection: Connection, row: ReservationRow, where: Collection[tuple[str, str]] | None) -> None:
    """Puts the row in the place of the one with its id; without `where` its GPUs stay."""
    fields = row._asdict()
    del fields["id"]
    connection.execute(update(reservations).where(reservations.c.id == row.id).values(**fields))
    if where is not None:
        connection.execute(delete(places).where(places.c.reservation == row.id))
        _put(connection, row.id, where)


def note(connection: Connection, row: ChangeRow) -> None:
    connection.execute(insert(changes), row._asdict())


def history(connection: Connection, identity: str) -> list[ChangeRow]:
    """The oldest first."""
    query = select(*(changes.c[name] for name in ChangeRow._fields)).where(changes.c.reservation == identity)
    return [ChangeRow._make(row) for row in connection.execute(query.order_by(changes.c.id))]


def add_origins(connection: Connection, rows: Sequence[OriginRow]) -> None:
    if rows:
        connection.execute(insert(origins), [row._asdict() for row in rows])


def imported(connection: Connection, end_after: float) -> list[tuple[OriginRow, Kept]]:
    """Entries of files that ended after a moment there, and what was made of them, however it is now."""
    later = origins.c.end_at > end_after
    of_them = select(origins.c.reservation).where(later)
    made = {kept[0].id: kept for kept in _kept(connection, _rows().where(reservations.c.id.in_(of_them)))}
    query = select(*(origins.c[name] for name in OriginRow._fields)).where(later).order_by(origins.c.id)
    rows = [OriginRow._make(row) for row in connection.execute(query)]
    return [(row, made[row.reservation]) for row in rows]


def _within(start: float, end: float) -> tuple[ColumnElement[bool], ...]:
    # The last one says that it holds GPUs at all: it was not cancelled before it began.
    own = reservations.c
    return (own.start_at < end, own.last_at > start, own.last_at > own.start_at)


def _put(connection: Connection, identity: str, where: Collection[tuple[str, str]]) -> None:
    rows = [{"reservation": identity, "node": node, "index": index} for node, index in where]
    if rows:
        connection.execute(insert(places), rows)


def _kept(connection: Connection, query: Select[tuple[object, ...]]) -> list[Kept]:
    rows = [ReservationRow._make(row) for row in connection.execute(query)]
    where: dict[str, list[tuple[str, str]]] = {row.id: [] for row in rows}
    for some in _portions(list(where)):
        asked = select(places.c.reservation, places.c.node, places.c["index"]).where(places.c.reservation.in_(some))
        for identity, node, index in connection.execute(asked):
            where[identity].append((node, index))
    return [(row, where[row.id]) for row in rows]


def _portions(names: Sequence[str]) -> Iterable[Sequence[str]]:
    return (names[at : at + _AT_ONCE] for at in range(0, len(names), _AT_ONCE))
