"""Whether the time of a search tells hidden text: words that a hidden command has, beside words that nobody has.

    python -m bench.filter_timing [--nodes 200] [--rounds 40]

Somebody who may not see commands asks for guesses of a secret in them. Each ratio is the CPU time of a right guess to
that of a wrong one, the median of rounds in which both are asked in turn. Hidden text should give 1.00.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Sequence

import msgspec

from gpulse.fleet.filter import parse
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.places import Place
from gpulse.fleet.search import Search
from gpulse.fleet.sight import FULL, Level, Sight

HIDDEN = "--patient=mueller77"
LOGIN = "kowalski"
# Of the same length, and no text on any node has it.
WRONG = "--patient=mueller7#"
# On a busy machine the same question asked twice differs by this much.
BAR = 0.1
# Terms that are written twice once cost twice, which made small differences large.
REPEATED = 20
PROCESSES = 32


def secret_fleet(nodes: int) -> Fleet:
    """Every node has the secret in its last command, behind much other text."""
    fleet = Fleet()
    for number in range(nodes):
        name = f"gpu{number:04}"
        fleet.place(Place(name=name))
        processes = [
            {
                "pid": pid,
                "user": LOGIN,
                "name": "python3",
                "command": f"python3 {_options(number * PROCESSES + pid)} {HIDDEN}",
                "gpus": [{"uuid": f"GPU-{name}", "kinds": ["compute"], "memory_bytes": 1 << 30}],
            }
            for pid in range(PROCESSES)
        ]
        gpu = {"index": 0, "uuid": f"GPU-{name}", "name": "NVIDIA H100 80GB HBM3"}
        record = {"schema": 1, "seq": 0, "time": 1e9, "gpus": [gpu], "processes": processes}
        fleet.line(name, msgspec.json.encode(record))
    fleet.tick()
    return fleet


def _options(seed: int) -> str:
    """Text that is another one on each process."""
    return " ".join(f"--{(seed * 7919 + place) * 104_729 % (1 << 32):08x}" for place in range(20))


def seconds(fleet: Fleet, text: str, sight: Sight) -> float:
    began = time.thread_time()
    Search(fleet, parse(text, None, sight)).all()
    return time.thread_time() - began


def ratio(fleet: Fleet, right: str, wrong: str, sight: Sight, rounds: int) -> float:
    """CPU time of the right guess to that of the wrong one."""
    for text in (right, wrong):
        seconds(fleet, text, sight)
    found = []
    for number in range(rounds):
        first, second = (right, wrong) if number % 2 else (wrong, right)
        spent = {text: seconds(fleet, text, sight) for text in (first, second)}
        found.append(spent[right] / spent[wrong])
    return statistics.median(found)


def report(nodes: int, rounds: int) -> bool:
    fleet = secret_fleet(nodes)
    hidden: Sequence[tuple[Level, str, str]] = (
        ("names", HIDDEN, WRONG),
        ("names", HIDDEN[:-4], WRONG[:-5] + "#"),
        ("names", " ".join([HIDDEN] * REPEATED), " ".join([WRONG] * REPEATED)),
        ("anonymous", HIDDEN, WRONG),
        ("anonymous", LOGIN, LOGIN[:-1] + "#"),
        ("anonymous", f"user:{LOGIN}", f"user:{LOGIN[:-1]}#"),
    )
    print(f"{nodes} nodes, {PROCESSES} processes each, {rounds} rounds\n")
    print("| sight | guess | right : wrong |")
    print("|---|---|---|")
    worst = 0.0
    for level, right, wrong in hidden:
        told = ratio(fleet, right, wrong, Sight(level), rounds)
        worst = max(worst, abs(told - 1))
        shown = right if len(right) < 40 else f"{right.split()[0]} × {REPEATED}"
        print(f"| {level} | `{shown}` | {told:.2f} |")
    told = ratio(fleet, HIDDEN, WRONG, FULL, rounds)
    print(f"| full, who may see it | `{HIDDEN}` | {told:.2f} |\n")
    met = worst <= BAR
    print(f"- hidden text: farthest from 1.00 is {worst:.2f} (bar {BAR:.2f}) {'met' if met else 'MISSED'}")
    return met


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    return 0 if report(options.nodes, options.rounds) else 1


if __name__ == "__main__":
    sys.exit(main())
