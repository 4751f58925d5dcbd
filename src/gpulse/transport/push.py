"""Nodes that push: who may, who does, and who has fallen silent."""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec

from gpulse.errors import BadLine, RequestError
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.places import Place
from gpulse.transport.limits import LONGEST_INTERVAL_SECONDS, TOO_MUCH_WORDS, Budget, Tally
from gpulse.transport.pushed import (
    MALFORMED,
    OTHER_WAY,
    REVOKED,
    SILENT,
    TAKEN_OVER,
    Connection,
    Line,
    OtherNode,
    Token,
    checked_head,
)
from gpulse.transport.sink import Sink
from gpulse_probe import __version__

__all__ = ["MALFORMED", "OTHER_WAY", "REVOKED", "SILENT", "TAKEN_OVER", "Connection", "Push"]

# So many nodes a second may come back without the hub falling behind: each takes it a millisecond.
CONNECTS_A_SECOND = 500
MOST_CONNECTS_A_SECOND = 700
# Who comes with tokens that are none: past this, they are not even looked for in the database.
MOST_REFUSALS_A_SECOND = 200
SHORTEST_SPREAD_SECONDS = 1.0
# A node that posts now and then, by curl, says no interval: it is stale after three of these.
POST_INTERVAL_SECONDS = 20.0
# Until an agent has had its time to connect, a node is new and not down; its own pauses are up to 60 s and a quarter.
PATIENCE_SECONDS = 90.0
WAITING = "waiting for its agent to connect"
NOT_CONNECTED = "its agent is not connected; on the node: gpulse agent status"


class _Hello(msgspec.Struct, frozen=True):
    gpulse: str
    node: str
    spread_seconds: float


class Push:
    """The nodes that are expected to push, and their connections: at most one each."""

    def __init__(
        self,
        fleet: Fleet,
        place_for: Callable[[str], Place],
        sink: Sink | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        """`place_for` gives the place of a node with a token; RequestError where it may not push.

        `sink` is where lines go, if not straight to the fleet.
        """
        self._fleet = fleet
        self._sink: Sink = sink or fleet
        self._place_for = place_for
        self._clock = clock
        self._places: dict[str, Place] = {}
        # Of nodes that post now and then: the interval that was seen, where it is longer than that of the place.
        self._paces: dict[str, float] = {}
        self._budgets: dict[str, Budget] = {}
        self._connections: dict[str, Connection] = {}
        # When a node last posted, and since when an expected one has not been heard of.
        self._posted: dict[str, float] = {}
        self._waiting: dict[str, float] = {}
        self._connects = Tally(clock)
        # Tokens that are none.
        self.refusals = Tally(clock)

    @property
    def connected(self) -> int:
        return len(self._connections)

    def names(self) -> frozenset[str]:
        return frozenset(self._places)

    # Which nodes there are.

    def set_nodes(self, places: Mapping[str, Place], why_gone: Callable[[str], tuple[int, str]]) -> None:
        """From now on these nodes. Others are disconnected and leave the fleet; `why_gone` has code and words."""
        for name in self._places.keys() - places.keys():
            self.forget(name, *why_gone(name))
        for place in places.values():
            self.expect(place)

    def expect(self, place: Place) -> None:
        """This node too, or at another place than before."""
        before = self._places.get(place.name)
        if before == place:
            return
        self._places[place.name] = place
        self._put(place)
        if before is None:
            self._waiting[place.name] = self._clock()
            self._fleet.connecting(place.name, WAITING)

    def forget(self, name: str, code: int, reason: str) -> None:
        """This node no more: it leaves the fleet."""
        del self._places[name]
        for kept in (self._waiting, self._posted, self._paces, self._budgets):
            kept.pop(name, None)
        connection = self._connections.pop(name, None)
        if connection is not None:
            connection.end(code, reason)
        self._fleet.remove(name)

    def _put(self, place: Place) -> None:
        interval = max(place.interval_seconds, self._paces.get(place.name, 0.0))
        self._fleet.place(msgspec.structs.replace(place, interval_seconds=interval))

    def disconnect(self, name: str, code: int, reason: str) -> None:
        """Its agent must go; the node stays in the fleet."""
        connection = self._connections.get(name)
        if connection is not None:
            connection.refuse(code, reason)

    def end_replaced(self, names: Collection[str], live: Callable[[Any], bool]) -> None:
        """These nodes got another token: who came with one that is not live any more must come again."""
        for name in names:
            connection = self._connections.get(name)
            if connection is not None and not live(connection.token):
                self.disconnect(name, REVOKED, f"the token of {name} was replaced by another")

    # What they send.

    def admit(self, name: str, instance: str) -> None:
        """Whether this agent may connect now; RequestError where not."""
        # Those that are refused below cost as much.
        if self._connects.add() > MOST_CONNECTS_A_SECOND:
            raise RequestError(503, "busy", "too many nodes connect at once", "try again in some seconds", 3)
        self._known(name)
        if (other := self._sending(name)) is not None and other.instance != instance:
            raise self._name_taken(name, other)

    def connect(self, token: Token, instance: str, peer: str, line: Line) -> Connection:
        """An admitted agent is there; what it sends goes to the connection."""
        name = token.node
        former = self._connections.pop(name, None)
        if former is not None:
            former.end(TAKEN_OVER, "another connection of this node took over")
        connection = self._connections[name] = Connection(
            token, instance, peer, line, self._sink, self._fleet.counters, self._budget(name), self._gone
        )
        self._waiting.pop(name, None)
        self._fleet.counters.connects += 1
        self._fleet.log(name, f"its agent connected from {peer}")
        line.send(msgspec.json.encode(_Hello(__version__, name, self._spread())).decode())
        return connection

    def afford(self, name: str, size: int) -> None:
        """Count in a POST of so many bytes before anything is made of it; RequestError where it is one too many."""
        self._check_poster(name)
        if not self._budget(name).spend(size, True):
            self._fleet.log(name, f"it posts {TOO_MUCH_WORDS}; one was refused")
            raise RequestError(429, "too_much", f"{name} sends {TOO_MUCH_WORDS}", "send less, or less often", 1)

    def post(self, name: str, data: bytes) -> None:
        """One full Snapshot by POST. RequestError where it is not taken, with the reason."""
        self._check_poster(name)
        try:
            told = checked_head(name, data)
            self._sink.line(name, data)
        except OtherNode as problem:
            raise RequestError(403, "other_node", str(problem)) from None
        except BadLine as problem:
            raise RequestError(422, "bad_snapshot", f"this is no snapshot of {name}: {problem}") from None
        self._pace(name, told)
        self._waiting.pop(name, None)

    def _check_poster(self, name: str) -> None:
        self._known(name)
        if (other := self._sending(name)) is not None:
            raise self._name_taken(name, other)

    def _known(self, name: str) -> None:
        if name not in self._places:
            self.expect(self._place_for(name))

    def _budget(self, name: str) -> Budget:
        """One for all the ways it may send."""
        budget = self._budgets.get(name)
        if budget is None:
            budget = self._budgets[name] = Budget(self._clock)
        return budget

    def _sending(self, name: str) -> Connection | None:
        """The node's connection, if it is alive."""
        connection = self._connections.get(name)
        return connection if connection is not None and connection.alive() else None

    def _name_taken(self, name: str, other: Connection) -> RequestError:
        words = f"another agent sends as {name} right now, from {other.peer}"
        self._fleet.log(name, f"{words}; a second one was refused")
        return RequestError(409, "name_taken", words, "stop one of them, or give one of the two another name and token")

    def _pace(self, name: str, told: float | None) -> None:
        """Who posts now and then is not stale in between: as patient as its pauses were long."""
        now = self._clock()
        before = self._posted.get(name)
        self._posted[name] = now
        place = self._places[name]
        known = max(place.interval_seconds, self._paces.get(name, 0.0))
        interval = max(known, POST_INTERVAL_SECONDS if told is None else 0.0)
        if before is not None:
            interval = min(max(interval, now - before), LONGEST_INTERVAL_SECONDS)
        if interval > known * 1.2:
            self._paces[name] = round(interval * 1.25, 1)
            self._put(place)

    def _spread(self) -> float:
        return max(SHORTEST_SPREAD_SECONDS, round(len(self._places) / CONNECTS_A_SECOND, 1))

    def _gone(self, connection: Connection, reason: str) -> None:
        if self._connections.get(connection.name) is connection:
            del self._connections[connection.name]
            self._sink.down(connection.name, reason)

    # Time passes.

    async def run(self) -> None:
        """Until it is cancelled: once a second, who is silent."""
        while True:
            await asyncio.sleep(1.0)
            self.look()

    def look(self) -> None:
        """Once a second."""
        for connection in tuple(self._connections.values()):
            connection.second()
        now = self._clock()
        for name in [name for name, since in self._waiting.items() if now - since > PATIENCE_SECONDS]:
            del self._waiting[name]
            self._sink.down(name, NOT_CONNECTED)
