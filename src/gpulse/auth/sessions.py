"""Sessions: browsers in which somebody has signed in, known by a cookie."""

import hmac
import time
from collections.abc import Callable, Sequence

from sqlalchemy import Connection

from gpulse.auth import changing, secret_text
from gpulse.auth.identity import ALL_SCOPES, Identity
from gpulse.auth.known import Known, Rows
from gpulse.auth.roles import role_of
from gpulse.auth.views import SessionView
from gpulse.store import accounts as account_table
from gpulse.store import sessions as table
from gpulse.store.hub import next_revision
from gpulse.store.sessions import SessionRow

_PREFIX = "gps"
_DAY = 86400.0
# When one was last seen is kept to the minute.
SEEN_SECONDS = 60.0
_MOST = 100
_LONGEST_TEXT = 200


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

    async def begin(self, account: str, address: str, browser: str) -> str:
        """The cookie's text, always a new one; SignInRefused where the account was disabled meanwhile."""
        text, parts = secret_text.make(_PREFIX)

        def work(connection: Connection) -> tuple[None, Rows]:
            changing.live(connection, account)
            now, revision = self._clock(), next_revision(connection)
            surplus = table.standing(connection, account)[_MOST - 1 :]
            row = SessionRow(
                id=parts.id,
                account=account,
                digest=parts.digest,
                address=_short(address),
                browser=_short(browser),
                created_at=now,
                seen_at=now,
                ended_at=None,
                revision=revision,
            )
            table.add(connection, row)
            changed = account_table.change(connection, account, revision, signed_in_at=now)
            return None, Rows([changed], [row, *table.end(connection, surplus, now, revision)])

        await self._known.write(work)
        return text

    def check(self, cookie: str) -> Identity | None:
        """Who has signed in there; None where nobody has, or no longer."""
        parts = secret_text.read(cookie)
        if parts is None or parts.prefix != _PREFIX:
            return None
        row = self._known.sessions.get(parts.id)
        same = hmac.compare_digest(secret_text.NO_DIGEST if row is None else row.digest, parts.digest)
        return self.current(parts.id) if same else None

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

    def live(self, row: SessionRow, now: float) -> bool:
        return row.ended_at is None and now < self.ends_at(row)

    def ends_at(self, row: SessionRow) -> float:
        """When it is, or was, over if nobody uses it any more."""
        limit = min(row.seen_at + self._idle_seconds, row.created_at + self._session_seconds)
        return limit if row.ended_at is None else min(limit, row.ended_at)

    async def end(self, session: str, account: str | None = None) -> bool:
        """Whether there was such a session to end, of that account where one is given."""

        def work(connection: Connection) -> tuple[bool, Rows]:
            row = table.by_id(connection, session)
            if row is None or row.ended_at is not None or account not in (None, row.account):
                return False, Rows()
            return True, Rows(sessions=table.end(connection, [row], self._clock(), next_revision(connection)))

        return await self._known.write(work)

    async def end_all(self, account: str, keep: str = "") -> int:
        """Signs an account out everywhere, but for one session; how many there were."""

        def work(connection: Connection) -> tuple[int, Rows]:
            rows = [row for row in table.standing(connection, account) if row.id != keep]
            ended = table.end(connection, rows, self._clock(), next_revision(connection))
            return sum(self.live(row, self._clock()) for row in rows), Rows(sessions=ended)

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
