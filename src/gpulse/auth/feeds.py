"""Addresses of calendars: whoever has one reads it with the eyes of the account that made it."""

import hmac
import time
from collections.abc import Callable

import msgspec
from sqlalchemy import Connection

from gpulse.auth import changing, secret_text
from gpulse.auth.keys import rests
from gpulse.auth.known import Known, Rows
from gpulse.auth.noting import THE_HUB, Actor, note
from gpulse.auth.pace import Pace
from gpulse.errors import AccountError
from gpulse.store import feeds as table
from gpulse.store.feeds import FeedRow

_PREFIX = "gpf"
MOST_FEEDS = 50


class FeedView(msgspec.Struct, frozen=True, kw_only=True):
    """A calendar's address; never its secret."""

    id: str
    # "mine", "fleet", or "node:" and a name.
    scope: str
    made_at: float


class Feeds:
    """All in the database: calendars ask a few times a day."""

    def __init__(self, known: Known, clock: Callable[[], float] = time.time, pace: Pace | None = None) -> None:
        self._known = known
        self._clock = clock
        self._pace = pace or Pace()

    async def make(self, account: str, scope: str, *, by: Actor = THE_HUB) -> str:
        """The secret for the address, which is nowhere else."""
        self._pace.take(account)
        text, parts = secret_text.make(_PREFIX)

        def work(connection: Connection) -> tuple[None, Rows]:
            changing.live(connection, account)
            if len(table.standing(connection, account)) >= MOST_FEEDS:
                raise AccountError(
                    409, "too_many_feeds", f"an account has {MOST_FEEDS} calendars at most", "end one of yours"
                )
            now = self._clock()
            table.add(connection, FeedRow(parts.id, account, scope, parts.digest, now, None))
            note(connection, now, by, "feed.make", parts.id, scope=scope)
            return None, Rows()

        await self._known.write(work)
        return text

    async def list(self, account: str) -> list[FeedView]:
        rows = await self._known.read(lambda one: table.standing(one, account))
        return [FeedView(id=row.id, scope=row.scope, made_at=row.made_at) for row in rows]

    async def revoke(self, feed: str, account: str, *, by: Actor = THE_HUB) -> None:
        """AccountError where it is none of theirs."""

        def work(connection: Connection) -> tuple[bool, Rows]:
            now = self._clock()
            revoked = table.revoke(connection, account, feed, now)
            if revoked:
                note(connection, now, by, "feed.revoke", feed)
            return revoked, Rows()

        if not await self._known.write(work):
            raise AccountError(
                404, "feed_unknown", f"there is no calendar {secret_text.quoted(feed)}", "list those there are"
            )

    async def read(self, text: str) -> FeedRow | None:
        """Return the one that a secret opens; None if there is none, or if it has ended or rests as keys do."""
        parts = secret_text.read(text)
        if parts is None or parts.prefix != _PREFIX:
            return None
        row = await self._known.read(lambda one: table.by_id(one, parts.id))
        same = hmac.compare_digest(secret_text.NO_DIGEST if row is None else row.digest, parts.digest)
        if row is None or not same or row.revoked_at is not None:
            return None
        owner = self._known.live(row.account)
        return None if owner is None or rests(owner, row.made_at, self._clock()) else row
