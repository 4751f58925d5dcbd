"""Sessions: browsers in which somebody has signed in, known by a cookie and the key of its page."""

import hmac
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sqlalchemy import Connection

from gpulse.auth import changing, secret_text
from gpulse.auth.identity import ALL_SCOPES, Identity
from gpulse.auth.known import Known, Rows
from gpulse.auth.noting import THE_HUB, Actor, note
from gpulse.auth.roles import role_of
from gpulse.auth.views import SessionView
from gpulse.store import accounts as account_table
from gpulse.store import sessions as table
from gpulse.store.hub import next_revision
from gpulse.store.sessions import SessionRow

_PREFIX, _PAGE_PREFIX = "gps", "gpp"
_DAY = 86400.0
# When one was last seen is kept to the minute.
SEEN_SECONDS = 60.0
_MOST = 100
_LONGEST_TEXT = 200
_LINK_SECONDS = 900.0


class Begun(NamedTuple):
    """The two secrets of a new session, told once: neither is anybody without the other.

    Browsers send a cookie to every port of its host, so to whatever else listens there. What a page keeps for itself
    is not for pages of other ports.
    """

    cookie: str
    page_key: str


class Sessions:
    """A session ends when it is ended, is not used for some days, or is old; each sign-in begins another.

    `seen` has those whose last use is not in the database yet.
    """

    def __init__(
        self,
        known: Known,
        clock: Callable[[], float] = time.time,
        idle_seconds: float = 14 * _DAY,
        session_seconds: float = 90 * _DAY,
    ) -> None:
        self._known = known
        self._clock = clock
        self._idle_seconds = idle_seconds
        self._session_seconds = session_seconds
        self.seen: dict[str, float] = {}

    async def begin(self, account: str, address: str, browser: str, *, way: str = "") -> Begun:
        """Always a new one; SignInRefused where the account was disabled meanwhile."""
        cookie, parts = secret_text.make(_PREFIX)
        page_key, page_parts = secret_text.make(_PAGE_PREFIX, parts.id)

        def work(connection: Connection) -> tuple[None, Rows]:
            name = changing.live(connection, account).name
            now, revision = self._clock(), next_revision(connection)
            note(connection, now, Actor(name, "session", address), "session.begin", name, by=way)
            surplus = table.standing(connection, account)[_MOST - 1 :]
            row = SessionRow(
                id=parts.id,
                account=account,
                digest=parts.digest,
                page_digest=page_parts.digest,
                address=_short(address),
                browser=_short(browser),
                by_link=way == "link",
                created_at=now,
                seen_at=now,
                ended_at=None,
                revision=revision,
            )
            table.add(connection, row)
            changed = account_table.change(connection, account, revision, signed_in_at=now)
            return None, Rows([changed], [row, *table.end(connection, surplus, now, revision)])

        await self._known.write(work)
        return Begun(cookie, page_key)

    def check(self, cookie: str, page_key: str) -> Identity | None:
        """Who has signed in there; None where nobody has, or no longer, or where the two do not belong together."""
        row, told = self._of_cookie(cookie), secret_text.read(page_key)
        if told is None or told.prefix != _PAGE_PREFIX:
            return None
        same = hmac.compare_digest(secret_text.NO_DIGEST if row is None else row.page_digest, told.digest)
        return self.current(row.id) if row is not None and same else None

    def goes_on(self, cookie: str) -> bool:
        """Whether a cookie is that of a live session. It is no use of it: the cookie alone signs nobody in."""
        row = self._of_cookie(cookie)
        return row is not None and self.live(row, self._clock()) and self._known.live(row.account) is not None

    def _of_cookie(self, cookie: str) -> SessionRow | None:
        parts = secret_text.read(cookie)
        if parts is None or parts.prefix != _PREFIX:
            return None
        row = self._known.sessions.get(parts.id)
        same = hmac.compare_digest(secret_text.NO_DIGEST if row is None else row.digest, parts.digest)
        return row if same else None

    def current(self, session: str) -> Identity | None:
        """Who it is now, of a session that was checked once; that it is asked for is a use of it."""
        row, now = self._known.sessions.get(session), self._clock()
        account = None if row is None else self._known.live(row.account)
        if row is None or account is None or not self.live(row, now):
            return None
        if now - row.seen_at >= SEEN_SECONDS:
            self._known.sessions[row.id] = row._replace(seen_at=now)
            self.seen[row.id] = now
        return Identity(account.name, role_of(account.role), account.id, "session", ALL_SCOPES, row.id)

    def came_by_link(self, session: str) -> bool:
        """Whether it began by a link just now: who had one made for them may have forgotten the password."""
        row = self._known.sessions.get(session)
        return row is not None and row.by_link and self._clock() < row.created_at + _LINK_SECONDS

    def live(self, row: SessionRow, now: float) -> bool:
        return row.ended_at is None and now < self.ends_at(row)

    def ends_at(self, row: SessionRow) -> float:
        """When it is, or was, over if nobody uses it any more."""
        limit = min(row.seen_at + self._idle_seconds, row.created_at + self._session_seconds)
        return limit if row.ended_at is None else min(limit, row.ended_at)

    async def end(self, session: str, account: str | None = None, *, by: Actor = THE_HUB) -> bool:
        """Whether there was such a session to end, of that account where one is given."""

        def work(connection: Connection) -> tuple[bool, Rows]:
            row = table.by_id(connection, session)
            if row is None or row.ended_at is not None or account not in (None, row.account):
                return False, Rows()
            now = self._clock()
            note(connection, now, by, "session.end", session)
            return True, Rows(sessions=table.end(connection, [row], now, next_revision(connection)))

        return await self._known.write(work)

    async def end_all(self, account: str, keep: str = "", *, by: Actor = THE_HUB) -> int:
        """Signs an account out everywhere, but for one session; how many there were."""

        def work(connection: Connection) -> tuple[int, Rows]:
            name, now = changing.found(connection, account).name, self._clock()
            rows = [row for row in table.standing(connection, account) if row.id != keep]
            count = sum(self.live(row, now) for row in rows)
            note(connection, now, by, "session.end_all", name, sessions=count)
            return count, Rows(sessions=table.end(connection, rows, now, next_revision(connection)))

        return await self._known.write(work)

    def list(self, account: str) -> Sequence[SessionView]:
        """Those that are live, the last seen first."""
        now = self._clock()
        rows = [row for row in self._known.sessions.values() if row.account == account and self.live(row, now)]
        return [self._view(row) for row in sorted(rows, key=lambda row: -row.seen_at)]

    def _view(self, row: SessionRow) -> SessionView:
        return SessionView(
            id=row.id,
            address=row.address,
            browser=row.browser,
            created_at=row.created_at,
            seen_at=row.seen_at,
            expires_at=self.ends_at(row),
        )


def _short(text: str) -> str:
    """What others sent, for a list."""
    return "".join(one if one.isprintable() else " " for one in text[:_LONGEST_TEXT])
