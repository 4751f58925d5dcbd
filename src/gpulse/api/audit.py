"""The audit log, for admins: a page of JSON, or a line of JSON for each entry."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gpulse.api.bodies import Incoming
from gpulse.api.endpoint import Endpoint
from gpulse.api.hub import Hub
from gpulse.api.queries import Limit
from gpulse.auth.audit import AuditEntry

LINES = "application/x-ndjson"


class AuditQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which entries, the newest first."""

    before: (
        Annotated[int, Meta(ge=1, le=2**53, description="Older than this; `next` of the page before.")] | UnsetType
    ) = UNSET
    since: Annotated[int, Meta(ge=0, le=2**53, description="Not older: seconds since 1970.")] | UnsetType = UNSET
    limit: Limit = 100


class AuditLine(AuditEntry, frozen=True, kw_only=True):
    """Something that somebody did."""

    detail: dict[str, Any]


class AuditPage(msgspec.Struct, kw_only=True):
    """Some of the entries, the newest first."""

    items: list[AuditLine]
    # `before` of the next page; null: this is the last.
    next: int | None


async def get_audit(hub: Hub, query: AuditQuery, path: Mapping[str, str], incoming: Incoming) -> AuditPage | str:
    del path
    entries = await hub.access.directory.audit.entries(
        None if isinstance(query.before, UnsetType) else query.before,
        query.limit,
        None if isinstance(query.since, UnsetType) else query.since,
    )
    if incoming.media == LINES:
        return "".join(msgspec.json.encode(entry).decode() + "\n" for entry in entries)
    items = [msgspec.convert(entry, AuditLine, from_attributes=True) for entry in entries]
    return AuditPage(items=items, next=entries[-1].id if len(entries) == query.limit else None)


ENDPOINTS = (
    Endpoint(
        path="/api/v1/audit",
        name="getAudit",
        summary="Who changed what, when and from where, the newest first.",
        answer=AuditPage,
        handle=get_audit,
        may="admin",
        query=AuditQuery,
        other_media=(LINES,),
        errors=(400, 406, 503),
    ),
)
