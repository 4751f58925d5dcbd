"""What reservations cost a hub each second: 10,000 of them on 12,500 simulated nodes of 8 GPUs.

    python -m bench.desk [--nodes 12500] [--reservations 10000]

CPU is that of the one thread that is the hub; beside it stands what the same second costs the fleet itself.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from bench.fleet import MIX, PEOPLE, SHARES, START, TEMPLATES, Run, Spent, tune_gc
from gpulse.config.reservations import Reservations as Settings
from gpulse.reservations.desk import Desk
from gpulse.reservations.model import Changes, Place, Wanted
from gpulse.reservations.rules import By
from gpulse.reservations.table import Reservations
from gpulse.simulate.crowd import Crowd
from gpulse.store import Records

# Of a second of the hub: a hundredth where nothing is new, and no stall that anybody notices where something is.
BAR_SECONDS, CHANGE_BAR_SECONDS = 0.010, 0.050
TIMES = 20
GPUS = 8
HOUR, DAY = 3600.0, 86400.0
ADMIN = By("root", admin=True)


def some(chance: Random, names: list[str], count: int, now: float) -> list[Wanted]:
    """One to eight cards of one node each: a third are of now, the others of the two weeks to come."""
    found = []
    for number in range(count):
        node = chance.choice(names)
        first = chance.randrange(GPUS)
        start = now if number % 3 == 0 else now + chance.uniform(0, 14 * DAY)
        places = tuple(Place(node, str(index)) for index in range(first, chance.randint(first + 1, GPUS)))
        length = chance.uniform(HOUR, 2 * DAY)
        found.append(Wanted(person=f"user{number % 40:02}", places=places, start=start, end=start + length))
    return found


def spent(work: Callable[[], object]) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began


async def fill(table: Reservations, names: list[str], count: int, now: float) -> list[str]:
    """Their ids; what overlaps was refused, and others are tried."""
    chance = Random(7)  # noqa: S311 - the same reservations each time
    made: list[str] = []
    while len(made) < count:
        wanted = some(chance, names, count - len(made), now)
        made += [one.id for one in await table.make_many(wanted, ADMIN) if not isinstance(one, Exception)]
    return made


def report(nodes: int, count: int) -> bool:
    crowd = Crowd(nodes, 1, START, templates=TEMPLATES, seconds=60, every=5, mix=MIX, people=PEOPLE, shares=SHARES)
    run = Run(crowd)
    run.ticks(3, Spent())
    wall = run.clock.wall
    with tempfile.TemporaryDirectory() as folder, Records(Path(folder)) as records, asyncio.Runner() as runner:
        table = Reservations(records, wall)
        made = runner.run(fill(table, run.names, count, wall()))
        desk = Desk(table, run.fleet, Settings(), wall)
        first = spent(desk.look)
        tune_gc()
        desk.look()
        nothing = [spent(desk.look) for _ in range(TIMES)]
        seconds, fleet = [], Spent()
        for _ in range(TIMES):
            run.ticks(1, fleet)
            seconds.append(spent(desk.look))
        changed = []
        for identity in made[:TIMES]:
            one = table.by_id(identity)
            assert one is not None
            runner.run(table.change(identity, Changes(comment="another"), ADMIN))
            changed.append(spent(desk.look))
        running = len(table.current(wall()))
    whole = statistics.median(map(sum, zip(fleet.line, fleet.tick, fleet.frame, strict=True)))
    print(f"{nodes} nodes, {len(made)} reservations, {running} of them of now")
    print(f"a second of the fleet: {whole * 1e3:.0f} ms\n")
    print("| look | median | longest | of the fleet's second |")
    print("|---|---|---|---|")
    for name, times in (
        ("the first", [first]),
        ("nothing is new", nothing),
        ("a second later, all nodes have told", seconds),
        ("one reservation is another", changed),
    ):
        middle = statistics.median(times)
        print(f"| {name} | {middle * 1e3:.2f} ms | {max(times) * 1e3:.2f} ms | {middle / whole:.2%} |")
    bars = (("nothing is new", nothing, BAR_SECONDS), ("one reservation is another", changed, CHANGE_BAR_SECONDS))
    print()
    for name, times, bar in bars:
        middle = statistics.median(times)
        print(f"- {name}: {middle * 1e3:.1f} ms (bar {bar * 1e3:g} ms): {'met' if middle <= bar else 'MISSED'}")
    return all(statistics.median(times) <= bar for _, times, bar in bars)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What reservations cost a hub each second.")
    parser.add_argument("--nodes", type=int, default=12_500)
    parser.add_argument("--reservations", type=int, default=10_000)
    given = parser.parse_args()
    sys.exit(0 if report(given.nodes, given.reservations) else 1)
