"""Accounts and all that signs them in, read together, so that a change of one is seen with those that go with it."""

import time
from collections.abc import Callable

from sqlalchemy import Connection

from gpulse.auth.accounts import Accounts
from gpulse.auth.audit import Audit
from gpulse.auth.feeds import Feeds
from gpulse.auth.identity import ALL_SCOPES, Identity, Way
from gpulse.auth.keys import Keys
from gpulse.auth.known import Known, Rows
from gpulse.auth.links import Links
from gpulse.auth.pace import Pace
from gpulse.auth.passwords import Passwords
from gpulse.auth.refused_links import RefusedLinks
from gpulse.auth.roles import role_of
from gpulse.auth.sessions import SEEN_SECONDS, Sessions
from gpulse.errors import StoreError
from gpulse.steady_clock import SteadyClock
from gpulse.store import Records
from gpulse.store import audit as audit_table
from gpulse.store import keys as key_table
from gpulse.store import links as link_table
from gpulse.store import sessions as session_table
from gpulse.store.hub import hub_id

_DAY = 86400.0
_TIDY_SECONDS = 3600.0
# How long what is at its end stays in the database.
_SESSION_KEPT, _KEY_KEPT, _AUDIT_KEPT = 7 * _DAY, 90 * _DAY, 2 * 366 * _DAY


class Directory:
    """One thread's view. A running hub refreshes it every second, so that it follows other processes."""

    def __init__(
        self,
        records: Records,
        clock: Callable[[], float] = time.time,
        *,
        idle_seconds: float = 14 * _DAY,
        session_seconds: float = 90 * _DAY,
        passwords: Passwords | None = None,
        for_deleting: Callable[[], float | None] | None = None,
    ) -> None:
        """`for_deleting` tells the time by which old things may go, and None while the clock is not to be trusted."""
        self._clock = clock
        self._known = Known(records)
        if for_deleting is None:
            guarded = clock if isinstance(clock, SteadyClock) else SteadyClock(clock)
            guarded.compare(records.read(audit_table.last_at).result() or clock())
            for_deleting = guarded.for_deleting
        self._for_deleting = for_deleting
        self._noted_at = self._tidied_at = clock()
        self.hub_id = records.read(hub_id).result()
        self.sessions = Sessions(self._known, clock, idle_seconds, session_seconds)
        # One for all that an account makes: each leaves rows and entries that are kept for long.
        pace = Pace()
        self.keys = Keys(self._known, clock, pace)
        self.accounts = Accounts(self._known, self.sessions, passwords or Passwords(), clock)
        self.links = Links(self._known, clock, pace)
        self.feeds = Feeds(self._known, clock, pace)
        self.audit = Audit(self._known, clock)
        self.refused_links = RefusedLinks(self.audit, clock)

    def identity_of(self, account: str, way: Way) -> Identity | None:
        """For whom something else vouches; None where the account is disabled or there is none."""
        found = self._known.live(account)
        return None if found is None else Identity(found.name, role_of(found.role), found.id, way, ALL_SCOPES)

    def current(self, identity: Identity) -> Identity | None:
        """The same person as they are now, for what stays open; None where they are no longer signed in."""
        if identity.way == "anonymous":
            return identity
        if identity.way == "session":
            return self.sessions.current(identity.credential)
        if identity.way == "key":
            return self.keys.current(identity.credential)
        return self.identity_of(identity.account or "", identity.way)

    def needs_old_password(self, who: Identity) -> bool:
        """For a new one: not where there is none, nor just after a link, which one gets who has forgotten it."""
        account = self._known.live(who.account or "")
        by_link = who.way == "session" and self.sessions.came_by_link(who.credential)
        return account is not None and account.has_password and not by_link

    async def refresh(self) -> str:
        """Reads what other processes wrote; what the database could not do, in words."""
        trouble = ""
        try:
            await self._known.look()
        except StoreError as error:
            trouble = f"{error}; accounts are as they were last read"
        # Asked each time, so that no jump of the clock goes unnoticed.
        now, old_by = self._clock(), self._for_deleting()
        try:
            await self.refused_links.settle()
            if now - self._noted_at >= SEEN_SECONDS:
                await self.note_uses()
            if old_by is not None and abs(old_by - self._tidied_at) >= _TIDY_SECONDS:
                await self._tidy(old_by)
        except StoreError as error:
            trouble = trouble or f"{error}; until then it is not kept who was seen when, nor which links were refused"
        return trouble

    async def note_uses(self) -> None:
        """When sessions and keys were last used, for after a restart."""
        self._noted_at = self._clock()
        seen, used = dict(self.sessions.seen), dict(self.keys.used)

        def work(connection: Connection) -> tuple[None, Rows]:
            session_table.mark_seen(connection, seen)
            key_table.mark_used(connection, used)
            return None, Rows()

        if seen or used:
            await self._known.write(work)
        _forget(self.sessions.seen, seen)
        _forget(self.keys.used, used)

    async def _tidy(self, now: float) -> None:
        self._tidied_at = now
        sessions = [row.id for row in self._known.sessions.values() if self.sessions.ends_at(row) < now - _SESSION_KEPT]
        keys = [row.id for row in self._known.keys.values() if _ended_at(row) < now - _KEY_KEPT]

        def work(connection: Connection) -> tuple[None, Rows]:
            session_table.remove(connection, sessions, now - _SESSION_KEPT)
            key_table.remove(connection, keys)
            link_table.remove_expired(connection, now)
            audit_table.remove_before(connection, now - _AUDIT_KEPT)
            return None, Rows()

        await self._known.write(work)
        for one in sessions:
            del self._known.sessions[one]
        for one in keys:
            del self._known.keys[one]


def _ended_at(row: key_table.KeyRow) -> float:
    return min(one for one in (row.ended_at, row.expires_at, float("inf")) if one is not None)


def _forget(pending: dict[str, float], noted: dict[str, float]) -> None:
    """But for those used once more meanwhile."""
    for one, moment in noted.items():
        if pending.get(one) == moment:
            del pending[one]
