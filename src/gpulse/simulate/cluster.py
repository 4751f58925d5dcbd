"""A simulated cluster: who starts what where, what breaks, and the lines its nodes send. The same at every run."""

import heapq
import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Literal, NamedTuple

from gpulse.fleet.places import Place
from gpulse.simulate.jobs import Job
from gpulse.simulate.machines import A100_40_NODE, MIX, Machine
from gpulse.simulate.node import Node
from gpulse.simulate.people import PEOPLE, Person

_SWING, _SWING_SECONDS = 0.05, 3 * 3600
# In fewer nodes than this nobody is given a whole one.
_FEW_NODES = 8
RACK_NODES = 8
# One of each thing that breaks for so many nodes.
_FAULT_NODES = 40
# A card that cannot be read is no surprise among so many nodes.
_UNREADABLE_NODES = 8
_ARRIVAL_SECONDS = 900.0


class Shares(NamedTuple):
    """How much of the cluster is given out at most."""

    # To all that work; this swings over hours.
    working: float = 0.69
    # Of these to jobs of whole nodes, and to all others, so that neither crowds the other out.
    wide: float = 0.32
    narrow: float = 0.44
    notebook: float = 0.09


SHARES = Shares()


class Condition(NamedTuple):
    """Whether a node's lines come: silent is without a word, down is known to be."""

    state: Literal["up", "silent", "down"]
    reason: str = ""


UP = Condition("up")


class Cluster:
    """`advance` moves it to a moment; then each node can be asked for its line of that moment."""

    def __init__(
        self,
        nodes: int = 40,
        seed: int = 1,
        start: float = 1_700_000_000.0,
        *,
        mix: Sequence[tuple[Machine, float]] = MIX,
        people: Sequence[Person] = PEOPLE,
        shares: Shares = SHARES,
        faults: bool = True,
    ):
        self._shares = shares
        self._people = people
        self.now = start
        self._random = Random(seed)  # noqa: S311 - it shall be the same at every run
        self._numbers = itertools.count(1)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._conditions: dict[str, Condition] = {}
        self._on: dict[int, list[Node]] = {}
        self._held = {"wide": 0, "narrow": 0, "notebook": 0}
        self._places: list[Place] = []
        self.nodes: dict[str, Node] = {}
        self._build(nodes, seed, mix)
        self._slots = sum(node.slots for node in self.nodes.values())
        if faults:
            self._break_things()
        self._fill()
        for node in self.nodes.values():
            node.settle(start)
        self._next_arrival()

    def places(self) -> list[Place]:
        return self._places

    def advance(self, now: float) -> None:
        """Let everything happen that happens until then."""
        while self._events and self._events[0][0] <= now:
            self.now, _, happen = heapq.heappop(self._events)
            happen()
        self.now = max(self.now, now)

    def condition(self, name: str) -> Condition:
        return self._conditions.get(name, UP)

    def full_line(self, name: str) -> bytes:
        """A Snapshot, as the node's probe writes it now."""
        return self.nodes[name].full_line(self.now)

    def update_line(self, name: str) -> bytes | None:
        """An Update of the line before, or None where it takes a full one."""
        return self.nodes[name].update_line(self.now)

    def line(self, name: str) -> bytes:
        """What the node's probe writes next."""
        return self.update_line(name) or self.full_line(name)

    def new_stream(self, name: str) -> None:
        """Whoever reads this node begins anew: the next line is a full one."""
        self.nodes[name].changed = True

    # How it is built.

    def _build(self, count: int, seed: int, mix: Sequence[tuple[Machine, float]]) -> None:
        shares = sum(share for _, share in mix)
        bounds = list(itertools.accumulate(share / shares for _, share in mix))
        width = max(2, len(str(count)))
        cut = False
        for number in range(count):
            machine = next(
                (mix[place][0] for place, bound in enumerate(bounds) if (number + 0.5) / count < bound), mix[-1][0]
            )
            name = f"gpu{number + 1:0{width}d}"
            cards = 2 if machine is A100_40_NODE and not cut else 0
            cut = cut or cards > 0
            self.nodes[name] = Node(name, number, machine, seed, self.now, cut=cards)
            self._places.append(
                Place(name, group=machine.group, rack=f"r{number // RACK_NODES + 1:02d}", address="simulated")
            )

    def _break_things(self) -> None:
        nodes = list(self.nodes.values())
        for first in range(0, len(nodes), _FAULT_NODES):
            block = nodes[first : first + _FAULT_NODES]
            # Where there is a choice, on cards of which it is believed.
            fans = [node for node in block if node.machine.card.fans] or block
            ecc = [node for node in block if node.machine.card.ecc] or block
            hot = self._random.choice(fans)
            hot.cards[0].cooling = 2.1
            self._heat(hot)
            if ecc[0].machine.card.ecc:
                self._wear_out(self._random.choice(ecc))
            holder = self._random.choice([node for node in block if node is not hot] or block)
            device = holder.free_cards[-1]
            held = int(holder.devices[device].facts["memory_total_bytes"] * 0.71)
            job = Job(
                next(self._numbers), "training", self._random.choice(self._people), self.now - 80_000, self._random
            )
            holder.add_vanished(job, device, held)
            if len(block) >= _UNREADABLE_NODES:
                next(node for node in reversed(block) if node not in (hot, holder)).cards[-1].unreadable = True
            if len(block) >= 4:
                deaf = self._random.choice(block)
                deaf.reports.append(
                    {"collector": "disks", "message": "file system /data (nas2:/export/data) has not answered for 45 s"}
                )
                failing = self._random.choice([node for node in block if node not in (deaf, holder)])
                self._at(self.now + 120, partial(self._fall_silent, failing))

    def _wear_out(self, node: Node) -> None:
        card = self._random.choice([card for card in node.cards if not card.facts["mig_enabled"]])
        card.lasting |= {
            "ecc_uncorrected_volatile_total": 2,
            "ecc_corrected_aggregate_total": 214,
            "ecc_uncorrected_aggregate_total": 5,
            "remapped_rows_uncorrected_total": 1,
            "remapped_rows_pending": True,
        }
        for xid in (48, 63):
            node.tell_xid(card, xid, self.now - 1500)
        self._at(self.now + 1200, partial(self._err, node, card.facts["index"]))

    def _err(self, node: Node, index: int) -> None:
        """The worn card has another error."""
        card = node.cards[index]
        card.lasting["ecc_corrected_volatile_total"] += self._random.randrange(1, 9)
        node.tell_xid(card, 94, self.now)
        self._at(self.now + self._random.uniform(1200, 2400), partial(self._err, node, index))

    def _heat(self, node: Node) -> None:
        """Somebody always renders on the card that gets too little air."""
        again = self.now + 300
        if node.name not in self._conditions and node.free_cards[:1] == [0]:
            job = Job(next(self._numbers), "rendering", self._random.choice(self._people), self.now, self._random)
            job.gpus = 1
            self._occupy(job, [(node, [0])])
            again += job.end - job.start
        self._at(again, partial(self._heat, node))

    # A node that fails, and comes back.

    def _fall_silent(self, node: Node) -> None:
        self._conditions[node.name] = Condition("silent")
        self._at(self.now + 40, partial(self._go_down, node))

    def _go_down(self, node: Node) -> None:
        self._conditions[node.name] = Condition("down", f"node {node.name}: no answer from port 22 within 15 s")
        for tenant in list(node.tenants):
            self._end(tenant.job)
        self._at(self.now + self._random.uniform(120, 300), partial(self._come_back, node))

    def _come_back(self, node: Node) -> None:
        del self._conditions[node.name]
        node.reboot(self.now)
        self._at(self.now + self._random.uniform(600, 1500), partial(self._fall_silent, node))

    # Who starts what where.

    def _fill(self) -> None:
        """The jobs of the hours before: wide ones first, as they find no place later."""
        jobs = [self._new_job() for _ in range(2 * self._slots + 20)]
        for job in sorted(jobs, key=lambda job: -job.gpus):
            age = self._random.random() * (job.end - job.start)
            if self._wanted(job):
                job.start -= age
                job.end -= age
                self._begin(job)

    def _next_arrival(self) -> None:
        mean = _ARRIVAL_SECONDS / max(1, len(self.nodes))
        self._at(self.now + self._random.expovariate(1 / mean), self._arrive)

    def _arrive(self) -> None:
        job = self._new_job()
        if self._wanted(job):
            self._begin(job)
        self._next_arrival()

    def _new_job(self) -> Job:
        person = self._random.choice(self._people)
        kind = self._random.choices(list(person.habits), list(person.habits.values()))[0]
        return Job(next(self._numbers), kind, person, self.now, self._random)

    def _wanted(self, job: Job) -> bool:
        """Whether the cluster is not yet as full of such as it shall be."""
        held, shares, sort = self._held, self._shares, _sort(job)
        if sort == "notebook":
            return held[sort] + job.gpus <= max(1.0, shares.notebook * self._slots)
        if len(self.nodes) < _FEW_NODES:
            if sort == "wide":
                return False
        elif held[sort] + job.gpus > (shares.wide if sort == "wide" else shares.narrow) * self._slots:
            return False
        working = shares.working + _SWING * math.sin(2 * math.pi * self.now / _SWING_SECONDS)
        return held["wide"] + held["narrow"] + job.gpus <= working * self._slots

    def _begin(self, job: Job) -> None:
        """Start it where there is room; without room it goes elsewhere."""
        chosen = self._choose(job)
        if chosen:
            self._occupy(job, chosen)

    def _occupy(self, job: Job, chosen: list[tuple[Node, list[int]]]) -> None:
        rank = 0
        for node, devices in chosen:
            node.take_in(job, devices, rank, self.now)
            rank += len(devices)
        self._on[job.number] = [node for node, _ in chosen]
        self._held[_sort(job)] += rank
        self._at(job.end, partial(self._end, job))

    def _end(self, job: Job) -> None:
        for node in self._on.pop(job.number, ()):
            self._held[_sort(job)] -= sum(len(tenant.devices) for tenant in node.tenants if tenant.job is job)
            node.put_out(job)

    def _choose(self, job: Job) -> list[tuple[Node, list[int]]]:
        up = [node for node in self.nodes.values() if node.name not in self._conditions]
        if job.gpus > 8:
            whole = [node for node in up if node.machine.group == "h100" and len(node.free_cards) == 8]
            wanted = job.gpus // 8
            return [(node, list(node.free_cards)) for node in whole[:wanted]] if len(whole) >= wanted else []
        if job.gpus == 1 and job.kind in {"notebook", "sweep"}:
            split = [node for node in up if node.free_instances]
            if split and self._random.random() < 0.5:
                return [(split[0], split[0].free_instances[:1])]
        able = [node for node in up if len(node.free_cards) >= job.gpus]
        if not able:
            return []
        groups = job.person.groups
        # Whole nodes stay whole for wide jobs; then where they like to be, and where the gap is smallest.
        best = min(
            able,
            key=lambda node: (
                job.gpus < 8 and len(node.free_cards) >= 8,
                node.machine.group not in groups,
                len(node.free_cards),
                node.name,
            ),
        )
        return [(best, best.free_cards[: job.gpus])]

    def _at(self, moment: float, happen: Callable[[], None]) -> None:
        heapq.heappush(self._events, (moment, next(self._numbers), happen))


def _sort(job: Job) -> Literal["wide", "narrow", "notebook"]:
    if not job.works:
        return "notebook"
    return "wide" if job.gpus >= 8 else "narrow"
