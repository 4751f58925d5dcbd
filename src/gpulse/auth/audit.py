"""The audit log: who changed what, when and from where. Never a secret."""

import time
from collections.abc import Callable

import msgspec
from sqlalchemy import Connection

from gpulse.auth import noting
from gpulse.auth.identity import Identity
from gpulse.auth.known import Known, Rows
from gpulse.auth.noting import Detail
from gpulse.store import audit as table
from gpulse.store.audit import AuditRow


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Something that somebody did; `at` is in seconds since 1970."""

    id: int
    at: float
    # An account's name, "local: USER" for who works in the data folder, "anonymous" for nobody known.
    who: str
    way: str
    address: str
    # Thing and deed: "account.add".
    action: str
    target: str
    detail: dict[str, Detail]


class Audit:
    """Changes note themselves, as they happen; `note` is for what changes nothing here, such as a refusal."""

    def __init__(self, known: Known, clock: Callable[[], float] = time.time) -> None:
        self._known = known
        self._clock = clock

    async def note(self, who: Identity | str, address: str, action: str, target: str = "", **detail: Detail) -> None:
        """Has reached the disk when it returns. Of what a person typed as a name write only names of accounts."""
        by, at = noting.actor(who, address), self._clock()

        def work(connection: Connection) -> tuple[None, Rows]:
            noting.note(connection, at, by, action, target, **detail)
            return None, Rows()

        await self._known.write(work)

    async def entries(
        self, before: int | None = None, limit: int = 100, since: float | None = None
    ) -> list[AuditEntry]:
        """The newest first: those with a lower id than `before`, not older than `since`."""
        return [_entry(row) for row in await self._known.read(lambda one: table.newest(one, before, since, limit))]


def _entry(row: AuditRow) -> AuditEntry:
    return AuditEntry(**row._asdict() | {"detail": msgspec.json.decode(row.detail)})
