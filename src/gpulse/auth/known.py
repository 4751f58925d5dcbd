"""Accounts, sessions and keys in memory, as they were last read: a request asks no database."""

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from sqlalchemy import Connection

from gpulse.store import Records
from gpulse.store import accounts as account_table
from gpulse.store import keys as key_table
from gpulse.store import sessions as session_table
from gpulse.store.accounts import Account
from gpulse.store.keys import KeyRow
from gpulse.store.sessions import SessionRow

T = TypeVar("T")


class Rows(NamedTuple):
    """Those that a transaction changed, or that were read."""

    accounts: Sequence[Account] = ()
    sessions: Sequence[SessionRow] = ()
    keys: Sequence[KeyRow] = ()


class Known:
    """One thread's view. `write` does something in a transaction of its own and takes what it changed."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._looking = asyncio.Lock()
        self.accounts: dict[str, Account] = {}
        # Ids by name without its case, and by issuer and subject.
        self.names: dict[str, str] = {}
        self.subjects: dict[tuple[str, str], str] = {}
        self.sessions: dict[str, SessionRow] = {}
        self.keys: dict[str, KeyRow] = {}
        self._version = records.version().result()
        self._revision = 0
        self._read(records.read(lambda one: _since(one, 0)).result())

    def live(self, account: str) -> Account | None:
        found = self.accounts.get(account)
        return found if found is not None and found.live else None

    async def look(self) -> None:
        """Reads what other processes wrote."""
        async with self._looking:
            version = await asyncio.wrap_future(self._records.version())
            if version == self._version:
                return
            seen = self._revision
            self._read(await asyncio.wrap_future(self._records.read(lambda one: _since(one, seen))))
            self._version = version

    async def read(self, work: Callable[[Connection], T]) -> T:
        return await asyncio.wrap_future(self._records.read(work))

    async def write(self, work: Callable[[Connection], tuple[T, Rows]]) -> T:
        # Who asked may go meanwhile: what reached the disk is taken all the same.
        return await asyncio.shield(self._written(work))

    def take(self, rows: Rows) -> None:
        for account in rows.accounts:
            known = self.accounts.get(account.id)
            if known is None or known.revision < account.revision:
                if known is not None and known.issuer is not None and known.subject is not None:
                    # Who was connected to somebody else meanwhile is no longer that one.
                    self.subjects.pop((known.issuer, known.subject), None)
                self.accounts[account.id] = account
                self.names[account.folded] = account.id
                if account.issuer is not None and account.subject is not None:
                    self.subjects[account.issuer, account.subject] = account.id
        for session in rows.sessions:
            had = self.sessions.get(session.id)
            if had is None or had.revision < session.revision:
                # When it was seen is known here before it is in the database.
                seen_at = session.seen_at if had is None else max(had.seen_at, session.seen_at)
                self.sessions[session.id] = session._replace(seen_at=seen_at)
        for key in rows.keys:
            used = self.keys.get(key.id)
            if used is None or used.revision < key.revision:
                self.keys[key.id] = key if used is None or used.used_at is None else key._replace(used_at=used.used_at)

    async def _written(self, work: Callable[[Connection], tuple[T, Rows]]) -> T:
        made, rows = await asyncio.wrap_future(self._records.write(work))
        self.take(rows)
        return made

    def _read(self, read: tuple[int, Rows]) -> None:
        # Rows of our own are taken earlier, but only here it is sure that there is none of others before them.
        self._revision, rows = read
        self.take(rows)


def _since(connection: Connection, revision: int) -> tuple[int, Rows]:
    """All that was written after a revision, and the newest there is."""
    rows = Rows(
        account_table.since(connection, revision),
        session_table.since(connection, revision),
        key_table.since(connection, revision),
    )
    return max((row.revision for part in rows for row in part), default=revision), rows
