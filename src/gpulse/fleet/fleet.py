"""The fleet: takes the lines of all nodes and tells what is so now. The only truth about now."""

import time
from collections.abc import Callable, Collection, Mapping
from operator import attrgetter
from struct import Struct

import msgspec
from msgspec import UNSET

from gpulse.errors import BadLine
from gpulse.fleet import health, state, telling
from gpulse.fleet.columns import HOT, GpuColumns, NodeColumns, figures
from gpulse.fleet.counters import Counters
from gpulse.fleet.model import Gpu, Snapshot
from gpulse.fleet.names import natural, short_model
from gpulse.fleet.node import Node
from gpulse.fleet.people import People
from gpulse.fleet.places import Place
from gpulse.fleet.thresholds import Thresholds
from gpulse.fleet.updates import Arrival, Hot
from gpulse.fleet.views import GpuView, LogEntry, NodeView, PersonView, Summary
from gpulse.fleet.weight import check_weight
from gpulse_probe.schema import SCHEMA

__all__ = ["BadLine", "Fleet", "FleetSettings"]

_decode_snapshot = msgspec.json.Decoder(Snapshot).decode
_decode_arrival = msgspec.json.Decoder(Arrival).decode
_figures = attrgetter(*HOT)
_NOTHING_HOT = Hot()
_UPDATE = b'{"update":'
_MOST_MODELS = 1000
_JUDGE_AGAIN_TICKS = 60


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
        self._clock = clock
        self._wall = wall
        self._nodes: dict[str, Node] = {}
        self._order: list[str] | None = None
        self._reserved: frozenset[str] = frozenset()
        self._models: dict[str, str] = {}
        # A small number for each model, by which live frames name it.
        self.model_numbers: dict[str, int] = {}
        self.people_names = People(self.settings.people)
        self.gpu_columns = GpuColumns()
        self.node_columns = NodeColumns()
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
        self._set_patience(node)
        self._new_layout(node)

    def remove(self, name: str) -> None:
        node = self._nodes.pop(name, None)
        if node is None:
            return
        self.gpu_columns.give_back(node.start, node.count)
        self.node_columns.give_back(node.slot)
        self._order = None
        self.layout += 1

    # What transports tell.

    def connecting(self, name: str, detail: str) -> None:
        node = self._nodes.get(name)
        if node is not None:
            self._note(node, detail)
            if self.node_columns.state[node.slot] == state.NEW:
                node.reason = detail

    def line(self, name: str, data: bytes, age_seconds: float = 0.0) -> None:
        """One line of a node's probe: a Snapshot or an Update. BadLine where it is neither.

        `age_seconds`: how long ago it was told, by the hub's clock; what is too old does not make the node up.
        """
        node = self._nodes.get(name)
        if node is None:
            return
        try:
            self._take(node, data)
        except BadLine:
            self.counters.bad_lines += 1
            raise
        self.counters.lines += 1
        self.counters.line_bytes += len(data)
        told = self._clock() - age_seconds
        node.clock_difference = node.time - self._wall() + age_seconds
        self.node_columns.last_line[node.slot] = told
        if self.node_columns.state[node.slot] != state.UP:
            old = age_seconds > self.node_columns.patience[node.slot]
            self.node_columns.state[node.slot] = state.STALE_NODE if old else state.UP
            node.reason = ""
            self._note(node, "what it told last is old" if old else "up")
            self._evaluate(node)

    def _take(self, node: Node, data: bytes) -> None:
        check_weight(data)
        try:
            if data.startswith(_UPDATE):
                self._apply(node, _decode_arrival(data), data)
            else:
                snapshot = _decode_snapshot(data)
                if (snapshot.schema or 0) > SCHEMA:
                    raise BadLine(f"its probe speaks schema {snapshot.schema}, this hub {SCHEMA}: upgrade the hub")
                node.replace(snapshot)
                self._set_patience(node)
                self._take_over(node)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise BadLine(str(error)) from None
        except RecursionError:
            raise BadLine("it is nested too deeply") from None

    def down(self, name: str, reason: str) -> None:
        node = self._nodes.get(name)
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

    def reserve(self, ids: Collection[str]) -> None:
        """The GPUs that are booked now."""
        self._reserved = frozenset(ids)
        for node in self._nodes.values():
            self._mark_reserved(node)

    def tick(self) -> None:
        """Once a second: who is stale, and the state of every GPU."""
        began = time.perf_counter()
        now = self._clock()
        state.mark_stale(self.node_columns, now)
        state.evaluate(self.gpu_columns, self.node_columns, self.settings.thresholds, now)
        self.generation += 1
        if self.generation % _JUDGE_AGAIN_TICKS == 0:
            # An error of the hardware is held against a card for some time only.
            for node in self._nodes.values():
                if self.gpu_columns.unhealthy[node.start : node.start + node.count].any():
                    self._judge_health(node)
        self.counters.tick_seconds += time.perf_counter() - began

    # What is so now.

    def names(self) -> list[str]:
        """All nodes in natural order: gpu2 before gpu10."""
        if self._order is None:
            self._order = sorted(self._nodes, key=natural)
        return self._order

    def node(self, name: str, detail: bool = False) -> NodeView | None:
        node = self._nodes.get(name)
        return telling.node_view(self, node, detail) if node is not None else None

    def nodes(self) -> list[NodeView]:
        return [telling.node_view(self, self._nodes[name], False) for name in self.names()]

    def gpus(self) -> list[GpuView]:
        return [gpu for name in self.names() for gpu in self.gpus_of(name)]

    def gpus_of(self, name: str) -> list[GpuView]:
        node = self._nodes[name]
        return telling.gpu_views(self, node, node.earlier())

    def people(self) -> list[PersonView]:
        return telling.people(self)

    def summary(self) -> Summary:
        return telling.summary(self)

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
        return max(0.0, self._clock() - float(self.node_columns.last_line[node.slot]))

    def model(self, name: str | None) -> str | None:
        """A model's short name; there are few models and many GPUs."""
        if not name:
            return None
        short = self._models.get(name)
        if short is None:
            short = self._models[name] = short_model(name, self.settings.models)
            if len(self._models) > _MOST_MODELS:
                self._models = {}
        return short

    def model_number(self, model: str) -> int:
        return self.model_numbers.setdefault(model, len(self.model_numbers))

    def node_of_gpu(self, gpu: str) -> str | None:
        """The name of the node that has the GPU of this id."""
        for name, node in self._nodes.items():
            if gpu in node.uuids or any(telling.gpu_id(node, one) == gpu for one in node.gpus if not one.uuid):
                return name
        return None

    def gpu_count(self, name: str) -> int:
        return self._nodes[name].count

    # Taking over what a line says.

    def _apply(self, node: Node, update: Arrival, line: bytes) -> None:
        if update.update != node.seq:
            raise BadLine("an update of another snapshot than the last")
        hot = update.gpus or _NOTHING_HOT
        told = [(field, values) for field, values in zip(HOT, _figures(hot), strict=True) if values is not UNSET]
        # All of it is checked before any of it counts.
        for field, values in told:
            if len(values) != node.count:
                raise BadLine(f"{len(values)} values of {field} for {node.count} GPUs")
        node.apply(update, line)
        moved = tuple([field for field, _ in told])
        if moved != node.moved:
            self._put_back(node, set(node.moved).difference(moved))
            node.moved = moved
        for field, values in told:
            self.gpu_columns.write(field, node.start, values, node.packing)
        ill = _tells_of_health(hot)
        if ill or node.ill:
            node.ill = ill
            self._judge_health(node)

    def _put_back(self, node: Node, fields: Collection[str]) -> None:
        """Figures that are as in the Snapshot again."""
        for field in fields:
            self.gpu_columns.write(field, node.start, [getattr(gpu, field) for gpu in node.gpus], node.packing)

    def _take_over(self, node: Node) -> None:
        columns = self.gpu_columns
        gpus = node.gpus
        if len(gpus) != node.count:
            columns.give_back(node.start, node.count)
            node.count = len(gpus)
            node.packing = Struct(f"{node.count}f")
            node.start = columns.take(node.count, node.slot) if node.count else 0
            self._new_layout(node)
        elif [_described(gpu) for gpu in gpus] != node.layout_facts:
            self._new_layout(node)
        node.uuids = [gpu.uuid for gpu in gpus]
        node.layout_facts = [_described(gpu) for gpu in gpus]
        slots = slice(node.start, node.start + node.count)
        self._put_back(node, HOT)
        columns.memory_total[slots] = figures([gpu.memory_total_bytes for gpu in gpus])
        parents = {gpu.parent_uuid for gpu in gpus if gpu.parent_uuid}
        columns.counted[slots] = [not gpu.mig_enabled and (not gpu.uuid or gpu.uuid not in parents) for gpu in gpus]
        # A display on the card holds nobody up; its memory still counts.
        held = {use.uuid for use in node.uses if use.kinds != ["graphics"]}
        columns.occupied[slots] = [gpu.uuid in held for gpu in gpus]
        columns.person[slots] = self.people_names.main_person_numbers(node)
        self._judge_health(node)
        self._mark_reserved(node)

    def _evaluate(self, node: Node) -> None:
        """The states of one node's GPUs at once, as it has just come or gone."""
        slots = slice(node.start, node.start + node.count)
        state.evaluate(self.gpu_columns, self.node_columns, self.settings.thresholds, self._clock(), slots)

    def _new_layout(self, node: Node) -> None:
        self.layout += 1
        node.described = None

    def _set_patience(self, node: Node) -> None:
        """A node that can tell only every few seconds is not stale in between."""
        probe = node.snapshot.probe if node.snapshot is not None else None
        told = probe.interval_seconds if probe is not None and probe.interval_seconds else 0.0
        interval = max(node.place.interval_seconds, min(told, 3600.0))
        self.node_columns.patience[node.slot] = interval * self.settings.thresholds.stale_intervals

    def _judge_health(self, node: Node) -> None:
        thresholds = self.settings.thresholds
        self.gpu_columns.unhealthy[node.start : node.start + node.count] = [
            not health.UNHEALTHY.isdisjoint(health.flags(gpu, thresholds, node.time)) for gpu in node.current_gpus()
        ]

    def _mark_reserved(self, node: Node) -> None:
        self.gpu_columns.reserved[node.start : node.start + node.count] = [
            telling.gpu_id(node, gpu) in self._reserved for gpu in node.gpus
        ]

    def _note(self, node: Node, message: str) -> None:
        node.log.append(LogEntry(time=round(self._wall(), 3), message=message[:1000]))


def _described(gpu: Gpu) -> tuple[object, ...]:
    """What the layout of live frames says of a GPU."""
    return (gpu.uuid, gpu.index, gpu.name, gpu.memory_total_bytes, gpu.power_limit_watts, gpu.parent_uuid)


def _tells_of_health(hot: Hot) -> bool:
    """Whether it has one of health.HEALTH_FIELDS."""
    return (
        hot.fault is not UNSET
        or hot.remapped_rows_failed is not UNSET
        or hot.ecc_uncorrected_volatile_total is not UNSET
    )
