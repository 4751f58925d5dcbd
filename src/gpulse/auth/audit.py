"""The audit log: who changed what, when and from where. Never a secret."""

import time
from collections.abc import Callable

import msgspec
from sqlalchemy import Connection

from gpulse.auth.identity import Identity
from gpulse.auth.known import Known, Rows
from gpulse.auth.secret_text import without_secrets
from gpulse.store import audit as table
from gpulse.store.audit import AuditRow

Detail = str | int | float | bool | None | list[str]
_LONGEST = 200
_MOST_NAMED = 100


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
    def __init__(self, known: Known, clock: Callable[[], float] = time.time) -> None:
        self._known = known
        self._clock = clock

    async def note(self, who: Identity | str, address: str, action: str, target: str = "", **detail: Detail) -> None:
        """Has reached the disk when it returns. Of what a person typed as a name write only names of accounts."""
        name, way = (who, "local") if isinstance(who, str) else (who.name or "anonymous", who.way)
        told = msgspec.json.encode({_clean(key): _cleaned(value) for key, value in detail.items()}).decode("utf-8")
        at = self._clock()

        def work(connection: Connection) -> tuple[None, Rows]:
            table.add(
                connection,
                at=at,
                who=_clean(name),
                way=way,
                address=_clean(address),
                action=_clean(action),
                target=_clean(target),
                detail=told,
            )
            return None, Rows()

        await self._known.write(work)

    async def entries(
        self, before: int | None = None, limit: int = 100, since: float | None = None
    ) -> list[AuditEntry]:
        """The newest first: those with a lower id than `before`, not older than `since`."""
        return [_entry(row) for row in await self._known.read(lambda one: table.newest(one, before, since, limit))]


def _entry(row: AuditRow) -> AuditEntry:
    return AuditEntry(**row._asdict() | {"detail": msgspec.json.decode(row.detail)})


def _cleaned(value: Detail) -> Detail:
    if isinstance(value, list):
        return [_clean(one) for one in value[:_MOST_NAMED]]
    return _clean(value) if isinstance(value, str) else value


def _clean(text: str) -> str:
    """One line that fits, without secrets: what others sent may be anything."""
    told = "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in without_secrets(text))
    return told if len(told) <= _LONGEST else told[: _LONGEST - 1] + "…"
