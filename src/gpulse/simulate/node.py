"""A simulated node: its cards, its host, and the processes of the jobs it was given."""

from random import Random
from typing import Any

from gpulse.simulate.cards import MIB, Card, Instance, Work
from gpulse.simulate.jobs import Job, Load
from gpulse.simulate.lines import Lines, Parts
from gpulse.simulate.machines import Demand, Host, Machine

Record = dict[str, Any]

# How an A100 40G is cut: profile and memory in MiB.
MIG_CUT = (("3g.20gb", 19968), ("2g.10gb", 9856), ("1g.5gb", 4864), ("1g.5gb", 4864))
# A full Snapshot comes at least that often, as from the probe.
FULL_EVERY_SECONDS = 300.0
# These are one process over all GPUs they have on a node; the others have their own on each.
_SPANNING = frozenset({"notebook", "serving", "simulation"})


class Process:
    """One process; `devices` are positions among the node's devices."""

    def __init__(self, facts: Record, devices: list[int], held_bytes: int | None = None):
        self.facts = facts
        self.devices = devices
        # Of one that is no job's: what it holds for ever.
        self.held_bytes = held_bytes
        self.cpu_seconds = 0.0


class Tenant:
    """A job's share of a node."""

    def __init__(self, job: Job, devices: list[int], rank: int, processes: list[Process]):
        self.job = job
        self.devices = devices
        self.rank = rank
        self.processes = processes


class Node:
    def __init__(self, name: str, number: int, machine: Machine, seed: int, start: float, *, cut: int = 0):
        """`cut` cards, from the first, are split into MIG instances."""
        self.name = name
        self.machine = machine
        self.random = random = Random(f"{seed}/{name}")  # noqa: S311 - it shall be the same at every run
        self.identity = f"{random.randrange(1 << 32):08x}"
        self.host = Host(machine, name, number, random)
        self.cards = [
            Card(machine.card, index, self.identity, random, machine.driver) for index in range(machine.cards)
        ]
        self.devices: list[Card | Instance] = []
        self.free_cards: list[int] = []
        self.free_instances: list[int] = []
        for card in self.cards:
            self.devices.append(card)
            if card.facts["index"] >= cut:
                self.free_cards.append(len(self.devices) - 1)
                continue
            card.facts["mig_enabled"] = True
            for place, (profile, memory) in enumerate(MIG_CUT):
                self.free_instances.append(len(self.devices))
                self.devices.append(Instance(card, place, profile, memory))
        self.slots = len(self.free_cards) + len(self.free_instances)
        self.tenants: list[Tenant] = []
        self.lingering: list[Process] = []
        self.reports: list[Record] = []
        self._pid = random.randrange(3000, 400_000)
        self._time = start
        self._full_time = start
        # The set of processes or a fact is another than in the line before.
        self.changed = True
        self._lines = self._new_lines()
        if machine.desktop:
            self.lingering.append(self._desktop(start))

    def _new_lines(self) -> Lines:
        return Lines(self.name, self.host.boot_id, infiniband=self.machine.infiniband > 0)

    # What happens to it.

    def take_in(self, job: Job, devices: list[int], rank: int, now: float) -> None:
        """Start a job's processes on these devices, the first of which has this rank in the job."""
        groups = [devices] if job.kind in _SPANNING else [[device] for device in devices]
        processes = []
        for group in groups:
            for _ in range(job.processes):
                process = Process(self._facts(job), group)
                process.cpu_seconds = job.cores * 0.8 * (now - job.start) / job.processes
                processes.append(process)
        self.tenants.append(Tenant(job, devices, rank, processes))
        for free in (self.free_cards, self.free_instances):
            free[:] = [device for device in free if device not in devices]
        self.changed = True

    def put_out(self, job: Job) -> None:
        for tenant in [tenant for tenant in self.tenants if tenant.job is job]:
            self.tenants.remove(tenant)
            for device in tenant.devices:
                free = self.free_cards if isinstance(self.devices[device], Card) else self.free_instances
                free.append(device)
                free.sort()
        self.changed = True

    def add_vanished(self, job: Job, device: int, held_bytes: int) -> None:
        """A process of this job died, and the driver did not give its memory back."""
        process = Process({**self._facts(job), "vanished": True, "children": [self._next_pid()]}, [device], held_bytes)
        self.lingering.append(process)
        self.free_cards.remove(device)
        self.changed = True

    def tell_xid(self, card: Card, xid: int, time: float) -> None:
        card.xid_events = [*card.xid_events[-15:], {"time": round(time, 3), "xid": xid}]
        card.facts["xid_events"] = card.xid_events
        self.changed = True

    def reboot(self, now: float) -> None:
        """It comes up again: nothing runs, and what it counts begins anew."""
        self._time = now
        self.host.restart()
        for card in self.cards:
            card.restart()
            card.facts.pop("xid_events", None)
        self._lines = self._new_lines()
        self.changed = True

    # What its probe tells.

    def full_line(self, now: float) -> bytes:
        values, uses_of = self._step(now)
        self.changed = False
        self._full_time = now
        processes = list(self._processes())
        facts = Parts(
            self.host.facts,
            [device.facts for device in self.devices],
            [process.facts for process in processes],
            [
                {
                    "uuid": self.devices[device].uuid,
                    "kinds": ["graphics" if process.facts["name"] == "Xorg" else "compute"],
                }
                for process in processes
                for device in process.devices
            ],
        )
        return self._lines.full(now, facts, values, uses_of, reports=self.reports)

    def update_line(self, now: float) -> bytes | None:
        """What is not as in the last full one; None: it takes another."""
        if self.changed or now - self._full_time >= FULL_EVERY_SECONDS:
            return None
        return self._lines.update(now, self._step(now)[0], self.reports)

    def restated_line(self) -> bytes:
        """The last full Snapshot again."""
        return self._lines.restated(self._time, self.reports)

    def settle(self, now: float) -> None:
        """As warm as cards are after an hour of this work."""
        works = self._works(self._loads(now))
        for device, work in zip(self.devices, works, strict=True):
            if isinstance(device, Card):
                device.settle(work, 3600.0)

    # How it moves.

    def _step(self, now: float) -> tuple[Parts, list[int]]:
        seconds = max(0.001, now - self._time)
        self._time = now
        loads = self._loads(now)
        works = self._works(loads)
        gpus = [
            device.step(work, seconds) if isinstance(device, Card) else device.step(work.memory_bytes)
            for device, work in zip(self.devices, works, strict=True)
        ]
        processes, uses, uses_of = [], [], []
        cores = nice_cores = 0.0
        memory = 0
        for tenant in self.tenants:
            job = tenant.job
            share = 1 / job.processes
            for process in tenant.processes:
                mine = [loads[device] for device in process.devices]
                spent = sum(load.cores for load, _ in mine) * share * self.random.uniform(0.95, 1.05)
                process.cpu_seconds += spent * seconds
                cores += spent
                nice_cores += spent if job.person.nice else 0.0
                held = int(job.host_bytes * share * (0.3 + 0.7 * mine[0][0].memory)) + self.random.randrange(1 << 22)
                memory += held
                processes.append(
                    {
                        "nice": job.person.nice,
                        "state": "R" if spent > 0.7 and self.random.random() < 0.8 else "S",
                        "cpu_seconds_total": round(process.cpu_seconds, 2),
                        "memory_bytes": held // 4096 * 4096,
                    }
                )
                uses_of.append(len(process.devices))
                uses += [
                    self._use(device, load, on_device, share)
                    for device, (load, on_device) in zip(process.devices, mine, strict=True)
                ]
        for process in self.lingering:
            processes.append({} if "vanished" in process.facts else {"nice": 0, "state": "S"})
            uses_of.append(1)
            uses.append({"memory_bytes": process.held_bytes})
        demand = Demand(
            cores,
            nice_cores,
            memory,
            network=sum(work.pcie for work in works) * 0.05,
            infiniband=sum(work.nvlink for work in works) * (0.15 if self._spans_nodes() else 0.0),
        )
        return Parts(self.host.step(demand, seconds), gpus, processes, uses), uses_of

    def _use(self, device: int, load: Load, held_bytes: int, share: float) -> Record:
        use: Record = {"memory_bytes": int(held_bytes * share) // (2 * MIB) * 2 * MIB}
        if isinstance(self.devices[device], Card):
            wanted = load.utilization * share
            use["sm_ratio"] = round(min(1.0, max(0.0, wanted + self.random.gauss(0, 0.02))), 2) if wanted else 0.0
        return use

    def _loads(self, now: float) -> dict[int, tuple[Load, int]]:
        """What each device in use is asked for, and the bytes held on it."""
        loads = {}
        for tenant in self.tenants:
            for place, device in enumerate(tenant.devices):
                load = tenant.job.load(now, tenant.rank + place)
                total = self.devices[device].facts["memory_total_bytes"]
                loads[device] = (load, int(load.memory * tenant.job.memory * total * 0.98))
        return loads

    def _works(self, loads: dict[int, tuple[Load, int]]) -> list[Work]:
        held = [0] * len(self.devices)
        for process in self.lingering:
            held[process.devices[0]] += process.held_bytes or 0
        works: list[Work] = []
        for device in range(len(self.devices)):
            load, memory = loads.get(device, (Load(0.0, 0.0, 0.0, 0.0), 0))
            busy = load.utilization * load.intensity
            works.append(Work(load.utilization, load.intensity, held[device] + memory, 6e9 * busy, 60e9 * busy))
        for device, one in enumerate(self.devices):
            if isinstance(one, Card) and one.facts.get("mig_enabled"):
                works[device] = self._of_instances(device, works)
        return works

    def _of_instances(self, parent: int, works: list[Work]) -> Work:
        """A split card does the work of its instances, each a part of it."""
        parts = works[parent + 1 : parent + 1 + len(MIG_CUT)]
        busy = sum(part.utilization * part.intensity for part in parts) / len(MIG_CUT)
        return Work(busy, 1.0, sum(part.memory_bytes for part in parts), 6e9 * busy, 0.0)

    def _spans_nodes(self) -> bool:
        return any(tenant.job.gpus > self.machine.cards for tenant in self.tenants)

    def _processes(self) -> list[Process]:
        return [process for tenant in self.tenants for process in tenant.processes] + self.lingering

    def _facts(self, job: Job) -> Record:
        person = job.person
        return {
            "pid": self._next_pid(),
            "parent_pid": self._pid - 1,
            "start_time": round(job.start + self.random.random(), 2),
            "name": job.program,
            "uid": person.uid,
            "user": person.user,
            "cgroup": f"/user.slice/user-{person.uid}.slice/session-{job.number % 4000}.scope"
            if self.machine.desktop
            else f"/system.slice/slurmstepd.scope/job_{480_000 + job.number}/step_0/user/task_0",
            "command": job.command,
        }

    def _desktop(self, now: float) -> Process:
        """Somebody could sit down at it: the first card draws the screen."""
        facts = {
            "pid": self._next_pid(),
            "parent_pid": 1,
            "start_time": round(now - self.host.uptime + 40, 2),
            "name": "Xorg",
            "uid": 0,
            "user": "root",
            "cgroup": "/system.slice/gdm.service",
            "command": "/usr/lib/xorg/Xorg -core :0 -seat seat0 -auth /run/lightdm/root/:0",
        }
        return Process(facts, [0], 84 * MIB)

    def _next_pid(self) -> int:
        self._pid += self.random.randrange(2, 90)
        return self._pid
