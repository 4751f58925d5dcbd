"""Links that sign somebody in once: whoever opens one first, soon enough."""

import hmac
import time
from collections.abc import Callable

from sqlalchemy import Connection

from gpulse.auth import changing, secret_text
from gpulse.auth.known import Known, Rows
from gpulse.auth.noting import THE_HUB, Actor, note
from gpulse.auth.pace import Pace
from gpulse.errors import SignInRefused
from gpulse.store import links as table
from gpulse.store.accounts import Account
from gpulse.store.links import LinkRow

_PREFIX = "gpl"


class Links:
    """All in the database: of two who redeem one link, in whichever processes, one is let in."""

    def __init__(self, known: Known, clock: Callable[[], float] = time.time, pace: Pace | None = None) -> None:
        self._known = known
        self._clock = clock
        self._pace = pace or Pace()

    async def make(self, account: str, seconds: float = 3600.0, *, alone: bool = False, by: Actor = THE_HUB) -> str:
        """Return the code for a new link, which is nowhere else. `alone` ends the account's other links."""
        self._pace.take(account)
        text, parts = secret_text.make(_PREFIX)

        def work(connection: Connection) -> tuple[None, Rows]:
            name, now = changing.live(connection, account).name, self._clock()
            if alone:
                table.remove_of(connection, account)
            table.add(connection, LinkRow(parts.id, account, parts.digest, now + seconds))
            note(connection, now, by, "link.make", name, seconds=seconds)
            return None, Rows()

        await self._known.write(work)
        return text

    async def redeem(self, code: str) -> Account:
        """Whose link it was; it is none any more. The session that begins is noted. SignInRefused where it was none."""
        parts = secret_text.read(code)
        if parts is None or parts.prefix != _PREFIX:
            raise _refusal()

        def found(connection: Connection) -> LinkRow:
            row = table.by_id(connection, parts.id)
            same = hmac.compare_digest(secret_text.NO_DIGEST if row is None else row.digest, parts.digest)
            if row is None or not same or row.expires_at <= self._clock():
                raise _refusal()
            return row

        def work(connection: Connection) -> tuple[Account, Rows]:
            row = found(connection)
            account = changing.live(connection, row.account)
            table.remove(connection, row.id)
            return account, Rows([account])

        # Anybody may come with codes, and as often as they like: what is none makes nobody wait for the disk.
        await self._known.read(found)
        return await self._known.write(work)


def _refusal() -> SignInRefused:
    return SignInRefused(
        401,
        "link_bad",
        "this link was used already, is too old, or not all of it was copied",
        "make another with: gpulse user link NAME",
    )
