"""Moving in: the reservations of another monitor's comments.json, and what became of each entry."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from gpulse.api import notices
from gpulse.api.bodies import Incoming, decode
from gpulse.api.endpoint import Endpoint
from gpulse.api.hub import Hub
from gpulse.api.logins import Logins
from gpulse.api.me import BODY_ERRORS
from gpulse.api.noted_reservations import noted_as_imported
from gpulse.api.reservation_views import by_of, ids_by_index
from gpulse.api.reservations import desk_of
from gpulse.api.reserving import Times, Zone
from gpulse.api.turns import Turn
from gpulse.auth.noting import actor
from gpulse.reservations import comments
from gpulse.reservations.model import Wanted
from gpulse.reservations.moving_in import Outcome, Step, done, done_together, grouped, plan, wanted_together
from gpulse.reservations.origins import SAME_SECONDS, Whose

MOST_BYTES = 1 << 20
# Reservations that are written, and then looked at, in one go: others who reserve, and the loop, wait for no longer.
_WRITTEN_AT_ONCE = 200
_encode = msgspec.json.Encoder().encode


class CommentsFile(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A comments.json."""

    text: Annotated[str, Meta(max_length=MOST_BYTES, description="What is in the file; // comments may be in it.")]
    zone: Zone | None = None
    # Nothing is changed; the answer is what would be.
    dry_run: bool = False


class ImportedEntry(msgspec.Struct, kw_only=True):
    """What became of an entry of the file."""

    # Of the file, from one on.
    line: int
    # As they are in the file; "" where it does not say.
    node: str
    index: str
    person: str
    until: str
    comment: str
    outcome: Outcome
    # Until when, or why not.
    message: str
    # When it ends: seconds since 1970; null where the date was not understood or there is none.
    end: float | None
    # The reservation made, there already or in the way; null: none.
    reservation: str | None


class Imported(msgspec.Struct, kw_only=True):
    """What became of each entry, in the order of the file, and how many had which outcome."""

    dry_run: bool
    entries: list[ImportedEntry]
    counts: dict[str, int]


async def import_comments(hub: Hub, query: object, path: Mapping[str, str], incoming: Incoming) -> dict[str, object]:
    del query, path
    desk, wanted = desk_of(hub), decode(incoming.body, CommentsFile)
    times = Times(desk, wanted.zone)
    # A long file shall not hold the loop.
    entries = await asyncio.to_thread(comments.read, wanted.text)
    gpus: dict[str, list[str]] = {}
    turn = Turn()
    for name in hub.fleet.names():
        gpus[name] = list(ids_by_index(hub.fleet, name))
        await turn.give()
    # In the database: what was over a month ago is not in memory, nor what another hub has just written.
    imported = await desk.table.imported(times.now - SAME_SECONDS)
    names = {entry.person for entry in entries} | {origin.name for origin, _ in imported}
    people = await _people(hub, filter(None, names))
    await desk.table.refresh()
    known = desk.table.between(times.now, float("inf"))
    steps = await asyncio.to_thread(plan, entries, gpus, known, times.local(times.now), people, imported)
    by = by_of(desk.settings, incoming.who)
    asked = [step.wanted for step in steps if step.wanted is not None]
    # Each by itself first: where one is in the way of somebody, the others of its group are not.
    steps = await asyncio.to_thread(done, steps, await desk.table.make_many(asked, by, dry_run=True))
    if not wanted.dry_run:
        groups, one_each = await asyncio.to_thread(_together, steps)
        witness = noted_as_imported(actor(incoming.who, incoming.address), "comments.json")
        made = []
        for start in range(0, max(1, len(one_each)), _WRITTEN_AT_ONCE):
            some = one_each[start : start + _WRITTEN_AT_ONCE]
            made += await desk.table.make_many(some, by, witness=witness)
            desk.look()
        steps = await asyncio.to_thread(done_together, steps, groups, made)
    counts: Counter[str] = Counter(step.outcome for step in steps)
    return {"dry_run": wanted.dry_run, "entries": await _encoded(steps), "counts": dict(counts)}


def _together(steps: Sequence[Step]) -> tuple[list[list[int]], list[Wanted]]:
    groups = grouped(steps)
    return groups, [wanted_together(steps, group) for group in groups]


async def _encoded(steps: Sequence[Step]) -> list[msgspec.Raw]:
    """Encode them one by one: a file may have as many entries as would keep the loop."""
    turn, found = Turn(), []
    for step in steps:
        found.append(msgspec.Raw(_encode(_told(step))))
        await turn.give()
    return found


async def _people(hub: Hub, names: Iterable[str]) -> dict[str, Whose]:
    """Whose the reservations of these names are, as if somebody had made them here."""
    logins, turn = Logins(hub), Turn()
    found: dict[str, Whose] = {}
    for name in names:
        login = logins.of(name)
        other = f"{name!r} is known here as {login}" if login != name else None
        found[name] = Whose(login, other or notices.of_person(hub, login) or "")
        await turn.give()
    return found


def _told(step: Step) -> ImportedEntry:
    entry = step.entry
    return ImportedEntry(
        line=entry.line,
        node=entry.node,
        index=entry.index,
        person=entry.person,
        until=entry.until,
        comment=entry.comment,
        outcome=step.outcome,
        message=step.message,
        end=None if step.end is None else step.end.timestamp(),
        reservation=step.reservation,
    )


ENDPOINTS = (
    Endpoint(
        path="/api/v1/reservations/import",
        name="importReservations",
        summary="Reserves what a comments.json of another monitor has, and tells what became of each entry.",
        answer=Imported,
        handle=import_comments,
        may="admin",
        method="POST",
        body=CommentsFile,
        # As JSON a text may be longer than it is.
        most_bytes=2 * MOST_BYTES,
        errors=(*BODY_ERRORS, 404, 422),
    ),
)
