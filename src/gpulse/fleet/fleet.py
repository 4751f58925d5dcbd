"""The fleet: takes the lines of all nodes and tells what is so now. The only truth about now."""

import time
from collections.abc import Callable, Mapping

import msgspec

from gpulse.clean_text import clean
from gpulse.errors import BadLine
from gpulse.fleet import state, taking, telling
from gpulse.fleet.booked import NOBODY_AFTER, NOTHING_BOOKED, Booked, Bookings, Spot
from gpulse.fleet.columns import GpuColumns, NodeColumns
from gpulse.fleet.counters import Counters
from gpulse.fleet.holdings import Holdings
from gpulse.fleet.identities import Identities
from gpulse.fleet.machines import Machines
from gpulse.fleet.models import Models
from gpulse.fleet.names import natural
from gpulse.fleet.node import Node
from gpulse.fleet.people import People
from gpulse.fleet.places import Place
from gpulse.fleet.recent import Recent
from gpulse.fleet.roster import Roster
from gpulse.fleet.sight import FULL, Sight
from gpulse.fleet.thresholds import Thresholds
from gpulse.fleet.views import GpuView, LogEntry, NodeView, PersonView, Summary

__all__ = ["BadLine", "Fleet", "FleetSettings"]

_LOOK_AGAIN_TICKS = 60


class FleetSettings(msgspec.Struct, frozen=True):
    """What people call things, and by which figures states are told."""

    thresholds: Thresholds = Thresholds()
    # Login name -> name to show.
    people: Mapping[str, str] = {}
    # GPU model as the driver says -> as people say.
    models: Mapping[str, str] = {}


class Fleet:
    """All nodes. It is fed by transports (connecting, line, down, log) and read by everything else."""

    def __init__(
        self,
        settings: FleetSettings | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ):
        self.settings = settings or FleetSettings()
        self.counters = Counters()
        self.clock = clock
        self.wall = wall
        self._nodes: dict[str, Node] = {}
        self._order: list[str] | None = None
        self._roster: tuple[int, Roster] | None = None
        self._logins: tuple[int, frozenset[str | None]] | None = None
        # As reservations are written, and with those under a second name of a machine also under the first.
        self._written: Bookings = NOTHING_BOOKED
        self.bookings: Bookings = NOTHING_BOOKED
        # By the place of a GPU under a name that is not counted, its place under the one that is.
        self.counted_places: Mapping[Spot, Spot] = {}
        self._placed_layout = 0
        # Grows when reservations change, or what is found about them; who watches then asks for them.
        self.reservations = 0
        self.identities = Identities()
        self.machines = Machines()
        self.models = Models(self.settings.models)
        self.people_names = People(self.settings.people)
        self.gpu_columns = GpuColumns()
        self.node_columns = NodeColumns()
        self.recent = Recent(wall())
        # Grows with every tick; what was read at one generation stays true until the next.
        self.generation = 0
        # Grows when nodes or GPUs come or go.
        self.layout = 0

    # Nodes come and go.

    def place(self, place: Place) -> None:
        """Add a node, or say anew where a known one stands."""
        node = self._nodes.get(place.name)
        if node is None:
            node = self._nodes[place.name] = Node(place, self.node_columns.take())
            self.node_columns.state[node.slot] = state.NEW
            self._order = None
        node.place = place
        taking.set_patience(self, node)
        self.new_layout(node)

    def remove(self, name: str) -> None:
        node = self._nodes.pop(name, None)
        if node is None:
            return
        self.recent.moved(node.start, node.ids, 0, [])
        self.identities.release(node)
        others = self.machines.release(node)
        self.people_names.release(node)
        self.gpu_columns.give_back(node.start, node.count)
        self.node_columns.give_back(node.slot)
        self._order = None
        self.layout += 1
        for other in others:
            taking.identify(self, other)

    # What transports tell.

    def connecting(self, name: str, detail: str) -> None:
        node = self._nodes.get(name)
        if node is not None:
            self._note(node, detail)
            if self.node_columns.state[node.slot] == state.NEW:
                node.reason = clean(detail)

    def line(self, name: str, data: bytes, age_seconds: float = 0.0) -> None:
        """One line of a node's probe: a Snapshot or an Update. BadLine where it is neither.

        `age_seconds`: how long ago it was told, by the hub's clock; what is too old does not make the node up.
        """
        node = self._nodes.get(name)
        if node is None:
            return
        try:
            taking.take(self, node, data)
        except BadLine:
            self.counters.bad_lines += 1
            raise
        self.counters.lines += 1
        self.counters.line_bytes += len(data)
        told = self.clock() - age_seconds
        node.clock_difference = node.time - self.wall() + age_seconds
        self.node_columns.last_line[node.slot] = told
        if self.node_columns.state[node.slot] != state.UP:
            old = age_seconds > self.node_columns.patience[node.slot]
            self.node_columns.state[node.slot] = state.STALE_NODE if old else state.UP
            node.reason = ""
            self._note(node, "what it told last is old" if old else "up")
            state.judge_age(self.node_columns, self.clock(), slice(node.slot, node.slot + 1))
            self._evaluate(node)

    def down(self, name: str, reason: str) -> None:
        node = self._nodes.get(name)
        # It may quote the node's standard error, or what answers in its place.
        reason = clean(reason)
        if node is not None:
            self.node_columns.state[node.slot] = state.DOWN_NODE
            self._evaluate(node)
            if node.reason != reason:
                self._note(node, reason)
            node.reason = reason

    def log(self, name: str, message: str) -> None:
        node = self._nodes.get(name)
        if node is not None:
            self._note(node, message)

    def book(
        self, now: Mapping[Spot, Booked], later: Mapping[Spot, Booked], after: Mapping[Spot, Booked] = NOBODY_AFTER
    ) -> None:
        """What is reserved now, by its place; of each place the next, and the first after it of another person."""
        self.rebook(Bookings.of(now, later, after))

    def rebook(self, bookings: Bookings) -> None:
        """All that is reserved is as it is here."""
        self._written = bookings
        self._rebook()

    def _rebook(self) -> None:
        before, self.bookings = self.bookings, self._written.also_at(self.counted_places)
        # Most are as they were.
        for name in {name for name, _ in before.now.keys() ^ self.bookings.now.keys()}:
            node = self._nodes.get(name)
            if node is not None:
                taking.mark_reserved(self, node)
                self._evaluate(node)

    def tick(self) -> None:
        """Once a second: who is stale, and the state of every GPU."""
        began = time.perf_counter()
        now = self.clock()
        state.judge_age(self.node_columns, now, slice(self.node_columns.used))
        self._find_counted_places()
        state.evaluate(self.gpu_columns, self.node_columns, self.settings.thresholds, now)
        self.recent.tick(self.gpu_columns, self.node_columns, now, self.wall())
        self.generation += 1
        if self.generation % _LOOK_AGAIN_TICKS == 0:
            self._look_again()
        self.counters.tick_seconds += time.perf_counter() - began

    def _find_counted_places(self) -> None:
        if self.layout == self._placed_layout or not (self.machines.doubles or self.counted_places):
            return
        self._placed_layout = self.layout
        places = self.machines.counted_places(self.identities.owner)
        if places != self.counted_places:
            self.counted_places = places
            self._rebook()

    def _look_again(self) -> None:
        for node in self._nodes.values():
            # An error of the hardware is held against a card for some time only.
            if self.gpu_columns.unhealthy[node.start : node.start + node.count].any():
                taking.judge(self, node)
            # Whoever had the UUIDs of its cards may be gone.
            if node.contested and self.node_columns.state[node.slot] == state.UP:
                taking.identify(self, node)
        renumbered = self.people_names.forget()
        if renumbered is not None:
            self.gpu_columns.person = renumbered[self.gpu_columns.person]

    # What is so now.

    def names(self) -> list[str]:
        """All nodes in natural order: gpu2 before gpu10."""
        if self._order is None:
            self._order = sorted(self._nodes, key=natural)
        return self._order

    def roster(self) -> Roster:
        """All GPUs, and nodes without any, in natural order."""
        if self._roster is None or self._roster[0] != self.layout:
            self._roster = self.layout, Roster([self._nodes[name] for name in self.names()])
        return self._roster[1]

    def node(self, name: str, detail: bool = False, sight: Sight = FULL) -> NodeView | None:
        node = self._nodes.get(name)
        return telling.node_view(self, node, detail, sight) if node is not None else None

    def nodes(self) -> list[NodeView]:
        return [telling.node_view(self, self._nodes[name], False, FULL) for name in self.names()]

    def gpus(self) -> list[GpuView]:
        return [gpu for name in self.names() for gpu in self.gpus_of(name)]

    def gpus_of(self, name: str, sight: Sight = FULL) -> list[GpuView]:
        node = self._nodes[name]
        return telling.gpu_views(self, node, node.earlier(), sight)

    def people(self) -> list[PersonView]:
        """Who holds what, those with most GPUs first."""
        holdings = Holdings(self, FULL)
        for name in self.names():
            holdings.add(self._nodes[name])
        return holdings.people()

    def narrowed(self, sight: Sight) -> Sight:
        """The same sight without those who had neither process nor reservation at this tick: more see the same then."""
        if not sight.own:
            return sight
        return sight._replace(own=sight.own & (self.logins | self.bookings.people))

    @property
    def logins(self) -> frozenset[str | None]:
        """Who had a process at this tick."""
        if self._logins is None or self._logins[0] != self.generation:
            found = frozenset(process.user for node in self._nodes.values() for process in node.processes)
            self._logins = self.generation, found
        return self._logins[1]

    def summary(self) -> Summary:
        return telling.summary(self)

    def unlisted_gpus(self) -> int:
        """Count the GPUs of nodes that report, of which nobody knows who is on them."""
        gpus = self.gpu_columns
        used = slice(gpus.used)
        there = gpus.counted[used] & (gpus.state[used] != state.DOWN) & ~gpus.processes_known[used]
        return int(there.sum())

    def log_of(self, name: str) -> list[LogEntry]:
        node = self._nodes.get(name)
        return list(node.log) if node is not None else []

    def has(self, name: str) -> bool:
        return name in self._nodes

    def known(self, name: str) -> Node:
        """A node's own data, for those who tell of it."""
        return self._nodes[name]

    def age(self, node: Node) -> float | None:
        """Seconds since the node's last line, by the hub's clock."""
        if node.snapshot is None:
            return None
        return max(0.0, self.clock() - float(self.node_columns.last_line[node.slot]))

    def model(self, name: str | None) -> str | None:
        """A model's short name."""
        return self.models.short(name)

    def node_of_gpu(self, gpu: str) -> str | None:
        """The name of the node that has the GPU of this id."""
        node = self.identities.owner(gpu)
        return node.place.name if node is not None else None

    def gpu_count(self, name: str) -> int:
        return self._nodes[name].count

    def _evaluate(self, node: Node) -> None:
        """The states of one node's GPUs at once, as it, or a reservation there, has just come or gone."""
        slots = slice(node.start, node.start + node.count)
        state.evaluate(self.gpu_columns, self.node_columns, self.settings.thresholds, self.clock(), slots)

    def new_layout(self, node: Node) -> None:
        """What live frames say of the node beside its figures, and filters look for, is another."""
        self.layout += 1
        node.described = None
        node.facts = None

    def _note(self, node: Node, message: str) -> None:
        node.log.append(LogEntry(time=round(self.wall(), 3), message=clean(message[:1000])))
