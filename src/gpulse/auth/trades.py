"""Join tokens traded for tokens of nodes: a wave of thousands shares its transactions."""

import asyncio
from collections.abc import Callable, Mapping
from typing import NamedTuple

from sqlalchemy import Connection

from gpulse.auth.making import new_token
from gpulse.auth.noting import Actor, Entry, note_all
from gpulse.auth.verdicts import already_joined, not_in_set, out_of_set, refusal
from gpulse.errors import TokenRefused
from gpulse.store import Records
from gpulse.store import tokens as table
from gpulse.store.tokens import NODE, REPLACED, TokenRow

# Others may write in between.
_MOST_AT_ONCE = 1000


class Trade(NamedTuple):
    """What a node asks for."""

    join_id: str
    node: str
    # Where it asks from.
    address: str = ""


class _Known(NamedTuple):
    """Of nodes by name: the token each has, and the revision in which a person last revoked one."""

    standing: dict[str, TokenRow]
    revoked: dict[str, int]


class Trades:
    """While one transaction reaches the disk the next ones gather.

    `take` gets the rows that changed, before the answers go out. `uses` has the tokens whose first use is not yet noted
    in the database, by id, with the time.
    """

    def __init__(
        self,
        records: Records,
        take: Callable[[list[TokenRow]], None],
        uses: Mapping[str, float],
        clock: Callable[[], float],
    ) -> None:
        self._records = records
        self._take = take
        self._uses = uses
        self._clock = clock
        self._waiting: list[tuple[Trade, asyncio.Future[str]]] = []
        self._running: asyncio.Task[None] | None = None
        # Used by the store's thread alone.
        self._members: dict[str, frozenset[str]] = {}

    async def trade(self, trade: Trade) -> str:
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting.append((trade, answer))
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        return await answer

    async def _run(self) -> None:
        try:
            while self._waiting:
                some, self._waiting = self._waiting[:_MOST_AT_ONCE], self._waiting[_MOST_AT_ONCE:]
                await self._settle(some)
        finally:
            self._running = None

    async def _settle(self, some: list[tuple[Trade, "asyncio.Future[str]"]]) -> None:
        asked, uses = [trade for trade, _ in some], dict(self._uses)
        try:
            told, changed = await asyncio.wrap_future(self._records.write(lambda one: self._decide(one, asked, uses)))
        except Exception as error:  # noqa: BLE001 - everybody who asked is told
            told, changed = [error] * len(some), []
        self._take(changed)
        for (_, answer), one in zip(some, told, strict=True):
            # Who asked may have gone.
            if not answer.done():
                answer.set_result(one) if isinstance(one, str) else answer.set_exception(one)

    def _decide(
        self, connection: Connection, asked: list[Trade], uses: Mapping[str, float]
    ) -> tuple[list[str | Exception], list[TokenRow]]:
        """A token or a refusal for each, and all rows that changed."""
        now, revision = self._clock(), table.next_revision(connection)
        table.mark_used(connection, uses)
        joins = {one: self._join(connection, one, now) for one in {trade.join_id for trade in asked}}
        names = {trade.node for trade in asked}
        known = _Known(table.standing(connection, names), table.last_revoked(connection, names))
        made: dict[str, TokenRow] = {}
        entries: list[Entry] = []
        told: list[str | Exception] = []
        for trade in asked:
            join = joins[trade.join_id]
            if isinstance(join, TokenRefused):
                told.append(join)
                continue
            refused = self._against(join, trade.node, known, trade.node in made, now)
            if refused is not None:
                told.append(refused)
                continue
            text, made[trade.node] = new_token(NODE, trade.node, now, revision, joined_by=join.id)
            told.append(text)
            by = Actor(f"join token {join.id}", "token", trade.address)
            had = trade.node in known.standing
            entries.append(Entry(by, "token.join", trade.node, {"id": made[trade.node].id, "replaced": had}))
        replaced = [known.standing[node] for node in made if node in known.standing]
        ended = table.end(connection, replaced, REPLACED, now, revision)
        table.add(connection, list(made.values()))
        note_all(connection, now, entries)
        return told, ended + list(made.values())

    def _join(self, connection: Connection, identity: str, now: float) -> TokenRow | TokenRefused:
        """The join token as it is now: it may have been revoked since it was checked."""
        row = table.by_id(connection, identity)
        refused = refusal(row, now)
        if row is None or refused is not None:
            self._members.pop(identity, None)
            return refused or refusal(None, now)
        if identity not in self._members:
            self._members[identity] = table.members(connection, identity)
        return row

    def _against(self, join: TokenRow, node: str, known: _Known, just_made: bool, now: float) -> TokenRefused | None:
        """Why the node does not get a token, if so."""
        if node not in self._members[join.id]:
            return not_in_set(join, node)
        if known.revoked.get(node, 0) > join.revision:
            return out_of_set(node)
        standing = known.standing.get(node)
        if just_made:
            return already_joined(node)
        if standing is None or join.replaces or not standing.live(now):
            return None
        # Of a token that nobody has used yet the answer may have been lost on its way.
        lost = standing.joined_by == join.id and standing.used_at is None
        return None if lost else already_joined(node)
