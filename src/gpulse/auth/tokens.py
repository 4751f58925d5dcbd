"""The tokens of nodes, and those to join with: all in memory, so that a check asks no database."""

import asyncio
import hmac
import time
from collections.abc import Callable, Collection, Iterable
from heapq import heappop, heappush
from typing import NamedTuple, TypeVar

from sqlalchemy import Connection

from gpulse.auth import making, revoking, token_text
from gpulse.auth.listing import TokenView, view, views
from gpulse.auth.node_names import names_of
from gpulse.auth.noting import THE_HUB, Actor
from gpulse.auth.pace import Pace
from gpulse.auth.trades import Trade, Trades
from gpulse.auth.verdicts import refusal
from gpulse.errors import StoreError, TokenError, TokenRefused
from gpulse.store import Records
from gpulse.store import tokens as table
from gpulse.store.tokens import NODE, TokenRow

T = TypeVar("T")
# What an unknown token is compared with, so that it takes as long as any other.
_NO_DIGEST = bytes(32)


class NodeToken(NamedTuple):
    """Its holder is the node."""

    id: str
    node: str


class JoinToken(NamedTuple):
    """Its holder may trade it for the token of a node of the set."""

    id: str
    nodes: str


class Changes(NamedTuple):
    """Nodes that got a token, got another one, or have none any more: it was revoked, or came to its end."""

    added: frozenset[str]
    replaced: frozenset[str]
    revoked: frozenset[str]
    expired: frozenset[str] = frozenset()
    # What the database could not do meanwhile, in words.
    trouble: str = ""


class Tokens:
    """One thread's view of the tokens. `check`, `live` and `nodes` tell what was last read; `refresh` reads again.

    `create…` and `revoke` wait for the disk: they are for commands. A running hub trades, and refreshes every second.
    """

    def __init__(self, records: Records, clock: Callable[[], float] = time.time) -> None:
        self._records = records
        self._clock = clock
        self._looking = asyncio.Lock()
        self._known: dict[str, TokenRow] = {}
        # By node, the id of its live token; and those of them that have an end, the next to end first.
        self._live: dict[str, str] = {}
        self._ends: list[tuple[float, str]] = []
        # The nodes whose token changed since the last refresh, with the id they had then.
        self._before: dict[str, str | None] = {}
        self._names: frozenset[str] | None = None
        # By id, tokens whose first use is not in the database yet.
        self._uses: dict[str, float] = {}
        self._pace = Pace(10, 60.0)
        self._trades = Trades(records, self._take, self._uses, clock)
        self._version = records.version().result()
        self._revision = 0
        self._read(records.read(lambda one: table.since(one, 0)).result())
        self._expire()
        self._before.clear()

    def check(self, text: str) -> NodeToken | JoinToken:
        """Whose token it is; TokenRefused where it is none, or no longer one."""
        parts = token_text.read(text)
        row = self._known.get(parts.id)
        same = hmac.compare_digest(_NO_DIGEST if row is None else row.digest, parts.digest)
        if row is None or not same or row.kind != parts.kind:
            # Also where only the secret is wrong: who has no token learns nothing of those there are.
            raise refusal(None, 0)
        now = self._clock()
        refused = refusal(row, now)
        if refused is not None:
            raise refused
        if row.used_at is None:
            self._uses.setdefault(row.id, now)
        return NodeToken(row.id, row.nodes) if row.kind == NODE else JoinToken(row.id, row.nodes)

    async def admit(self, text: str) -> NodeToken | JoinToken:
        """As `check`, and a token that was made this moment is known too."""
        try:
            return self.check(text)
        except TokenRefused as refused:
            if refused.code != "token_unknown":
                raise
        await self._look()
        return self.check(text)

    def live(self, token: NodeToken | JoinToken) -> bool:
        """Whether a token that was good once still is."""
        row = self._known.get(token.id)
        return row is not None and row.live(self._clock())

    def why_ended(self, token: NodeToken | JoinToken) -> TokenRefused | None:
        """Why a token that was good once is not any more; None where it still is."""
        return refusal(self._known.get(token.id), self._clock())

    def nodes(self) -> frozenset[str]:
        """The nodes that have a live token."""
        if self._names is None:
            self._names = frozenset(self._live)
        return self._names

    async def trade(self, join: JoinToken, node: str, address: str = "") -> str:
        """The text of a new token for the node; TokenRefused where the join token is not, or no longer, for it."""
        # Each leaves rows and entries that are kept for long.
        self._pace.take(f"{join.id} {node}")
        return await self._trades.trade(Trade(join.id, node, address))

    async def refresh(self) -> Changes:
        """What changed since the last time, whoever changed it; tokens come to their end whatever the database does."""
        trouble = ""
        try:
            await self._look()
        except StoreError as error:
            trouble = f"{error}; tokens are as they were last read"
        self._expire()
        try:
            await self._note_uses()
        except StoreError as error:
            trouble = trouble or f"{error}; until then it is not kept which tokens were used"
        before, self._before = self._before, {}
        now = {node: self._live.get(node) for node in before}
        gone = {node: had for node, had in before.items() if had is not None and now[node] is None}
        expired = frozenset(node for node, had in gone.items() if self._known[had].expired(self._clock()))
        return Changes(
            added=frozenset(node for node in before if before[node] is None and now[node] is not None),
            replaced=frozenset(
                node for node in before if None not in (before[node], now[node]) and before[node] != now[node]
            ),
            revoked=frozenset(gone) - expired,
            expired=expired,
            trouble=trouble,
        )

    def create_node(
        self, node: str, *, expires_at: float | None = None, replace: bool = False, by: Actor = THE_HUB
    ) -> str:
        """The text of the node's token. A node that has one already gets another only with `replace`."""
        if names_of(node) != [node]:
            raise TokenError(f"{node!r:.100} is no name of one node")
        return self.create_nodes([node], expires_at=expires_at, replace=replace, by=by)[node]

    def create_nodes(
        self, names: Collection[str], *, expires_at: float | None = None, replace: bool = False, by: Actor = THE_HUB
    ) -> dict[str, str]:
        """By name, a token for each, or none for any; the names are those of `names_of`."""
        return self._write(lambda one: making.create_nodes(one, names, expires_at, replace, self._clock(), by))

    def create_join(self, set_text: str, expires_at: float, replace: bool = False, *, by: Actor = THE_HUB) -> str:
        """The text of a token that nodes of the set can trade for their own; groups mean what they mean now."""
        names = names_of(set_text)
        return self._write(lambda one: making.create_join(one, set_text, names, expires_at, replace, self._clock(), by))

    def revoke(self, words: Iterable[str], joined: bool = False, *, by: Actor = THE_HUB) -> list[TokenView]:
        """By id, node, set of nodes or set of a join token; with `joined` also what was traded for those."""
        now, meant = self._clock(), list(words)
        rows = self._records.write(lambda one: revoking.revoke(one, meant, joined, now, by)).result()
        self._take(rows)
        return [view(row, now) for row in rows]

    def listing(self) -> list[TokenView]:
        return views(self._known.values(), self._clock())

    def _write(self, work: Callable[[Connection], tuple[T, list[TokenRow]]]) -> T:
        made, rows = self._records.write(work).result()
        self._take(rows)
        return made

    async def _look(self) -> None:
        """Reads what other processes wrote."""
        async with self._looking:
            version = await asyncio.wrap_future(self._records.version())
            if version == self._version:
                return
            seen = self._revision
            self._read(await asyncio.wrap_future(self._records.read(lambda one: table.since(one, seen))))
            self._version = version

    def _read(self, rows: list[TokenRow]) -> None:
        # Rows of our own are taken earlier, but only here it is sure that there is none of others before them.
        self._revision = max((row.revision for row in rows), default=self._revision)
        self._take(rows)

    def _take(self, rows: list[TokenRow]) -> None:
        for row in rows:
            known = self._known.get(row.id)
            if known is not None and known.revision >= row.revision:
                continue
            self._known[row.id] = row
            if row.kind != NODE:
                continue
            if row.ended_at is None:
                self._set_live(row.nodes, row.id)
                if row.expires_at is not None:
                    heappush(self._ends, (row.expires_at, row.id))
            elif self._live.get(row.nodes) == row.id:
                self._set_live(row.nodes, None)

    def _set_live(self, node: str, identity: str | None) -> None:
        self._before.setdefault(node, self._live.get(node))
        self._names = None
        if identity is None:
            del self._live[node]
        else:
            self._live[node] = identity

    def _expire(self) -> None:
        now = self._clock()
        while self._ends and self._ends[0][0] <= now:
            _, identity = heappop(self._ends)
            node = self._known[identity].nodes
            if self._live.get(node) == identity:
                self._set_live(node, None)

    async def _note_uses(self) -> None:
        uses = dict(self._uses)
        if uses:
            await asyncio.wrap_future(self._records.write(lambda one: table.mark_used(one, uses)))
        for identity, moment in uses.items():
            self._known[identity] = self._known[identity]._replace(used_at=moment)
            self._uses.pop(identity, None)
