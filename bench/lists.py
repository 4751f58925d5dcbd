"""What filtered lists cost: 12,500 simulated nodes of 8 GPUs, each filter beside the list of everything.

    python -m bench.lists [--nodes 12500]

CPU is that of the one thread that is the hub. A slice is how long a list keeps the loop from everything else.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Callable
from typing import Any

import msgspec

from bench.fleet import MIX, PEOPLE, SHARES, START, TEMPLATES, Run, Spent, tune_gc
from gpulse.api.access import NOBODY
from gpulse.api.bodies import Incoming
from gpulse.api.free import ENDPOINTS as FREE
from gpulse.api.gpus import ENDPOINTS as GPUS
from gpulse.api.history import ENDPOINTS as HISTORY
from gpulse.api.hub import Hub
from gpulse.api.nodes import ENDPOINTS as NODES
from gpulse.api.people import ENDPOINTS as PEOPLE_THERE
from gpulse.fleet.sight import FULL
from gpulse.simulate.crowd import Crowd
from tests.api.people import open_access

BAR_SECONDS = 0.3
BAR_SLICE_SECONDS = 0.02
TIMES = 4
HANDLERS = {endpoint.name: endpoint for endpoint in (*NODES, *GPUS, *PEOPLE_THERE, *HISTORY, *FREE)}
# A word that is nowhere is the longest search.
QUESTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("listGpus", {}),
    ("listGpus", {"q": "free", "sort": "-free_memory"}),
    ("listGpus", {"q": "idle", "sort": "-idle"}),
    ("listGpus", {"q": "busy", "sort": "-temperature", "limit": 1000}),
    ("listGpus", {"q": "free_mem>40G model:h100"}),
    ("listGpus", {"q": "user:user07"}),
    ("listGpus", {"q": "job:1234"}),
    ("listGpus", {"q": "train.py"}),
    ("listGpus", {"q": "nowhere"}),
    ("listGpus", {"q": "flag:hot,throttled", "sort": "-temperature"}),
    ("listGpus", {"q": "-rack:r001"}),
    ("listNodes", {"q": "user:user07"}),
    ("listNodes", {"q": "node:gpu[00001-00400]"}),
    ("listNodes", {"sort": "-free"}),
    ("findFree", {"n": 4, "model": "h100"}),
    ("findFree", {"n": 9, "model": "h100", "same_node": True}),
    ("listUsers", {}),
    ("getHistory", {"nodes": "gpu[00001-00040]", "only": "utilization"}),
)


async def answer(hub: Hub, name: str, asked: dict[str, Any]) -> bytes:
    endpoint = HANDLERS[name]
    # As somebody who sees everything asks.
    incoming = Incoming(headers={}, media=endpoint.media, who=NOBODY, sight=FULL)
    more = (incoming,) if endpoint.takes_incoming else ()
    return msgspec.json.encode(await endpoint.handle(hub, msgspec.convert(asked, endpoint.query), {}, *more))


async def watched(question: Callable[[], Any]) -> tuple[float, float, bytes]:
    """CPU seconds of an answer, its longest slice, and the answer."""
    longest, last = 0.0, time.thread_time()

    async def others() -> None:
        nonlocal longest, last
        while True:
            now = time.thread_time()
            longest, last = max(longest, now - last), now
            await asyncio.sleep(0)

    watching = asyncio.create_task(others())
    await asyncio.sleep(0)
    began = last = time.thread_time()
    longest = 0.0
    text = await question()
    spent = time.thread_time() - began
    await asyncio.sleep(0)
    watching.cancel()
    return spent, longest, text


async def report(nodes: int) -> bool:
    crowd = Crowd(nodes, 1, START, templates=TEMPLATES, seconds=60, every=5, mix=MIX, people=PEOPLE, shares=SHARES)
    run = Run(crowd)
    run.ticks(45, Spent())
    tune_gc()
    hub = Hub(run.fleet, "bench", list, open_access())
    began = time.thread_time()
    gpus = run.fleet.gpus()
    whole = time.thread_time() - began
    print(f"{nodes} nodes, {len(gpus)} GPUs; all of them as views: {whole:.2f} s of CPU\n")
    print("| list | first | then | of the whole | longest slice | found | bytes |")
    print("|---|---|---|---|---|---|---|")
    met = True
    for name, asked in QUESTIONS:
        runs = [await watched(lambda name=name, asked=asked: answer(hub, name, asked)) for _ in range(TIMES)]
        spent, longest = min(each[0] for each in runs[1:]), min(each[1] for each in runs[1:])
        text = runs[-1][2]
        found = msgspec.json.decode(text).get("total", "")
        words = " ".join(f"{key}={value}" for key, value in asked.items())
        print(f"| {name} {words} | {runs[0][0] * 1e3:.0f} ms | {spent * 1e3:.0f} ms | {spent / whole:.1%} ", end="")
        print(f"| {longest * 1e3:.0f} ms | {found} | {len(text)} |", flush=True)
        # The others are no filters: who holds what reads every process, and what is missing all who could have it.
        if name in ("listGpus", "listNodes"):
            met = met and spent <= BAR_SECONDS and longest <= BAR_SLICE_SECONDS
    print(
        f"\nat most {BAR_SECONDS:g} s of CPU and {BAR_SLICE_SECONDS * 1e3:.0f} ms at once: {'met' if met else 'MISSED'}"
    )
    return met


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What filtered lists cost.")
    parser.add_argument("--nodes", type=int, default=12_500)
    sys.exit(0 if asyncio.run(report(parser.parse_args().nodes)) else 1)
